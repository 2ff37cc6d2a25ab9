"""`label generate --shard` and `label merge` from the command line: what one run makes, whoever asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_labeler._emulator import Faults
from tests.contract.label_command import killed_at, run_label, sentences, tree
from tests.contract.test_label import KEYS, PASSING, ensemble, flags


def shards_and_one_run(
    tmp_path: Path, texts: int, shards: int, kills: int, merges: int, faults: Faults | None
) -> None:
    source = sentences(tmp_path / "s.txt", texts)
    with ensemble(tmp_path, faults, latency_s=0.01) as (config, servers):
        alone = flags(source, config, tmp_path / "alone", "--strategy", "vote", "--json", "-q")
        assert run_label(*alone, keys=KEYS).code == 0
        for server in servers:
            server.stats.answers.clear()
            server.stats.answered = 0
        shared = flags(source, config, tmp_path / "shared", "--strategy", "vote", "--json", "-q")
        for turn in range(kills):
            part = f"{turn % shards + 1}/{shards}"
            assert killed_at([*shared, "--shard", part], servers, 10 + turn, keys=KEYS)
        spent = 0.0
        for number in range(1, shards + 1):
            done = run_label(*shared, "--shard", f"{number}/{shards}", keys=KEYS)
            assert done.code == 0, done.err
            assert done.result["left"] == 0
            spent += done.result["cost_in_all"]
        assert not (tmp_path / "shared").exists()
        assert sum(server.stats.asked_again for server in servers) <= kills * 3 * 16
        calls = sum(server.stats.requests for server in servers)
        for _ in range(merges):
            merged = run_label("merge", "--out", str(tmp_path / "shared"), "--json")
            assert merged.code == 0, merged.err
            assert tree(tmp_path / "shared") == tree(tmp_path / "alone")
            assert merged.result["cost_in_all"] == pytest.approx(spent, abs=1e-12)
        assert sum(server.stats.requests for server in servers) == calls


def test_shards_make_what_one_run_makes(tmp_path: Path) -> None:
    shards_and_one_run(tmp_path, texts=16, shards=2, kills=1, merges=1, faults=None)


@pytest.mark.slow
def test_shards_that_are_killed_twenty_times(tmp_path: Path) -> None:
    shards_and_one_run(tmp_path, texts=400, shards=5, kills=20, merges=2, faults=PASSING)
