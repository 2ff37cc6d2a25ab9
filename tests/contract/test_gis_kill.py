"""Promise 1: killed at any moment, with faults of the server, a build continues to the same bytes."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.contract.conftest import SAMPLE, SAMPLE_REPOS, Gis, environment, killed_when
from tests.contract.label_command import tree
from tests.support.github import FaultPlan, Rule, serve

FAULTS = {
    **dict.fromkeys(("502", "partial", "dropped", "truncated"), 0.04),
    **dict.fromkeys(("504", "rate_limited_200", "secondary_403", "too_many_429"), 0.01),
    "stalled": 0.005,
}
# The sample's repositories are so small that a search would sweep them.
SETTINGS = ("all_if_small=false", "backoff_s=0.01", "secondary_wait_s=0.05", "timeout_s=2")


@pytest.mark.parametrize(
    ("kills", "repos", "strategy"),
    [
        (1, "quarryhq/quarry", "search"),
        (1, SAMPLE_REPOS, "all"),
        pytest.param(20, SAMPLE_REPOS, "search", marks=pytest.mark.slow),
        pytest.param(20, SAMPLE_REPOS, "all", marks=pytest.mark.slow),
    ],
)
def test_kills_leave_the_same_bytes(gis: Gis, kills: int, repos: str, strategy: str, tmp_path: Path) -> None:
    settings = [word for one in SETTINGS for word in ("--set", f"crawl.{one}")]
    common = ("build", "--repos", repos, "--strategy", strategy, *settings)
    with serve(SAMPLE) as server:
        assert gis(*common, "--api-url", server.url, "--out", str(tmp_path / "calm")).code == 0
        most = server.stats.requests
    rules = tuple(Rule(kind=kind, probability=share) for kind, share in FAULTS.items())
    plan = FaultPlan(seed=11, retry_after_s=0.05, stall_s=1.0, rules=rules)
    moments = random.Random(11)
    with serve(SAMPLE, faults=plan) as server:
        command = (*common, "--api-url", server.url, "--out", str(tmp_path / "killed"))
        while kills:
            until = server.stats.requests + moments.randrange(1, most // 2)
            killed = killed_when(
                lambda until=until: server.stats.requests >= until,
                *("gis_builder", *command, "--fresh"),
                environ=environment(GITHUB_TOKEN="any"),
            )
            kills -= killed
            if not killed:  # it ended first: start again, so that kills are spread
                shutil.rmtree(tmp_path / "killed.work")
        while (done := gis(*command)).code == 4:
            pass
    assert done.code == 0, done.err
    assert tree(tmp_path / "killed") == tree(tmp_path / "calm")
