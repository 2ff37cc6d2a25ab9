"""Promise 1: a killed `gis` command continues when it is run again, and ends with the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gis_builder
from pairkit import ConfigError
from tests.contract.conftest import (
    SAMPLE,
    SAMPLE_REPOS,
    Gis,
    environment,
    killed_when,
)
from tests.contract.label_command import tree
from tests.gis_builder.archive_world import (
    HOURS,
    MORE,
    build,
    command,
    files,
    times,
    world,
    write_hours,
)
from tests.support.github import FaultPlan, Rule, serve

REPO = "quarryhq/quarry"


TWO_REPOS = f"lumenbase/lumen,{REPO}"


FAULTS = {
    **dict.fromkeys(("502", "partial", "dropped", "truncated"), 0.04),
    **dict.fromkeys(("504", "rate_limited_200", "secondary_403", "too_many_429"), 0.01),
    "stalled": 0.005,
}


# The sample's repositories are so small that a search would sweep them.
SETTINGS = (
    "all_if_small=false",
    "backoff_s=0.01",
    "secondary_wait_s=0.05",
    "timeout_s=2",
)


@pytest.mark.parametrize(
    ("kills", "repos", "strategy"),
    [
        (1, REPO, "search"),
        (1, TWO_REPOS, "all"),
        pytest.param(20, SAMPLE_REPOS, "search", marks=pytest.mark.slow),
        pytest.param(20, SAMPLE_REPOS, "all", marks=pytest.mark.slow),
    ],
)
def test_a_killed_build_continues_to_the_same_bytes(
    gis: Gis, kills: int, repos: str, strategy: str, tmp_path: Path
) -> None:
    """Whatever the moment, and with faults of the server."""
    settings = [flag for setting in SETTINGS for flag in ("--set", f"crawl.{setting}")]
    common = ("build", "--repos", repos, "--strategy", strategy, *settings)
    with serve(SAMPLE) as server:
        assert (
            gis(*common, "--api-url", server.url, "--out", str(tmp_path / "calm")).code
            == 0
        )
        most = server.stats.requests
    rules = tuple(Rule(kind=kind, probability=share) for kind, share in FAULTS.items())
    plan = FaultPlan(seed=11, retry_after_s=0.05, stall_s=1.0, rules=rules)
    moments = random.Random(11)
    with serve(SAMPLE, faults=plan) as server:
        arguments = (
            *common,
            "--api-url",
            server.url,
            "--out",
            str(tmp_path / "killed"),
        )
        while kills:
            until = server.stats.requests + moments.randrange(1, most // 2)
            killed = killed_when(
                lambda until=until: server.stats.requests >= until,
                *("gis_builder", *arguments, "--fresh"),
                environ=environment(GITHUB_TOKEN="any"),
            )
            kills -= killed
            if not killed:  # it ended first: start again, so that kills are spread
                shutil.rmtree(tmp_path / "killed.work")
        while (done := gis(*arguments)).code == 4:
            pass
    assert done.code == 0, done.err
    assert tree(tmp_path / "killed") == tree(tmp_path / "calm")


@pytest.mark.parametrize("kind", ["stalled", "secondary_403"])
def test_ctrl_c_does_not_wait_for_a_server_that_hangs_or_lets_wait(
    tmp_path: Path, kind: str
) -> None:
    plan = FaultPlan(
        stall_s=60, retry_after_s=600, rules=(Rule(kind=kind, probability=1),)
    )
    with serve(SAMPLE, faults=plan) as server:
        flags = (
            "--repos",
            REPO,
            "--api-url",
            server.url,
            "--work",
            str(tmp_path / "w"),
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "gis_builder", "crawl", *flags],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(GITHUB_TOKEN="any"),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        while process.poll() is None and not server.stats.requests:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    *waits, last = said.splitlines()
    assert last == "interrupted; run the same command again to continue"
    assert all(line.startswith("waiting 600 s") for line in waits)


def test_a_second_archive_reuses_every_file(source: Path, tmp_path: Path) -> None:
    first = build(source, tmp_path / "gis")
    before, dataset = times(first.work), files(first.out)
    again = gis_builder.archive(
        "2015-01-01-0 .. 2015-02-01-2",
        source,
        tmp_path / "gis",
        workers=1,
        progress=False,
    )
    assert again.positives
    assert (times(first.work), files(first.out)) == (before, dataset)


def test_an_added_hour_reuses_the_other_hours(threads: Any, tmp_path: Path) -> None:
    lines = world(threads)
    source, whole = tmp_path / "hours", tmp_path / "whole"
    write_hours(source, lines[:-40], HOURS)
    first = build(source, tmp_path / "gis")
    kept = {
        path: at for path, at in times(first.work).items() if path.startswith("hours/")
    }
    shutil.copytree(source, whole)
    write_hours(whole, [*lines[-40:], lines[0]], [MORE])  # with a repeated line
    with pytest.raises(ConfigError, match="fresh=True"):
        build(whole, tmp_path / "gis")
    more = build(whole, tmp_path / "gis", fresh=True)
    assert kept.items() < times(more.work).items()
    scratch = build(whole, tmp_path / "other")
    assert files(more.out) == files(scratch.out)
    # Superseded files are gone.
    assert times(more.work).keys() == times(scratch.work).keys()
    write_hours(whole, lines[-60:-20], [MORE])  # another file of this hour
    replaced = build(whole, tmp_path / "gis", fresh=True)
    assert (
        files(replaced.out)
        == files(build(whole, tmp_path / "third").out)
        != files(scratch.out)
    )


@pytest.mark.parametrize(
    "places", [("judged",), pytest.param(("hours", "judged"), marks=pytest.mark.slow)]
)
def test_a_killed_archive_continues_to_the_same_bytes(
    built: Any, source: Path, tmp_path: Path, places: tuple[str, ...]
) -> None:
    """Kill the driver in several stages; its workers end, too."""
    out = tmp_path / "gis"
    for place in places:
        driver = subprocess.Popen(
            command(source, out, "--workers", "2"),
            env={**os.environ, "RUN_OF": str(out)},
        )
        while (
            not list((tmp_path / "gis.work" / place).rglob("*.*"))
            and driver.poll() is None
        ):
            time.sleep(0.01)
        driver.kill()
        driver.wait()
    assert files(build(source, out, fresh=True).out) == files(built.out)
    until = time.monotonic() + 60
    while list(_with_mark(f"RUN_OF={out}")) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(_with_mark(f"RUN_OF={out}"))


def _with_mark(mark: str) -> Iterator[int]:
    """The processes with this mark in their environment."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in variables:
            yield int(process.name)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_an_archive_in_one_line(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "gis"
    driver = subprocess.Popen(
        command(source, out, "--workers", "2"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while (
        not list((tmp_path / "gis.work").glob("hours/*.parquet"))
        and driver.poll() is None
    ):
        time.sleep(0.01)
    os.killpg(driver.pid, signal.SIGINT)  # like a terminal
    assert (
        driver.communicate(timeout=300)[1]
        == "interrupted; run the same command again to continue\n"
    )
    assert driver.returncode == 130
    assert not out.exists()
