"""Promise 1: a killed `label` command continues when it is run again, and asks nothing twice."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest

import pairkit
from tests.contract.conftest import environment, killed_when
from tests.contract.label_command import (
    BRIEF,
    KEYS,
    MEMBERS,
    PASSING,
    ensemble,
    generate,
    requests,
    sentences,
    tree,
)
from tests.llm_labeler.test_api import TEXTS
from tests.llm_labeler.test_api import generate as generate_from
from tests.llm_labeler.test_judge_command import judged


@pytest.mark.parametrize(
    ("kills", "texts"),
    [(1, 12), pytest.param(20, 400, marks=pytest.mark.slow)],
    ids=["one", "twenty"],
)
def test_kills_lose_nothing(tmp_path: Path, kills: int, texts: int) -> None:
    source = sentences(tmp_path / "s.txt", texts)
    with ensemble(tmp_path, BRIEF, latency_s=0.01) as (flags, servers):
        calm = generate(source, tmp_path / "calm", *flags)
        assert calm.code == 0, calm.err
        for server in servers:
            server.stats.answers.clear()
            server.stats.answered = 0
        files = ("--data", str(source), "--out", str(tmp_path / "killed"))
        random = Random(7)
        for _ in range(kills):
            most = requests(servers) + 10 + int(min(texts, 80) * random.random())
            assert killed_when(
                lambda most=most: requests(servers) >= most,
                *("llm_labeler", "generate", *files, *flags),
                environ=environment(**KEYS),
            )
        done = generate(source, tmp_path / "killed", *flags)
        assert done.code == 0, done.err
        # Only answers that were in flight at a kill are requested again.
        assert sum(server.stats.asked_again for server in servers) <= kills * 3 * 16
        assert done.result["pairs"] == calm.result["pairs"]
    assert tree(tmp_path / "killed") == tree(tmp_path / "calm")


def test_a_faulty_ensemble_loses_no_answer_and_repeats_no_question(
    tmp_path: Path,
) -> None:
    source = sentences(tmp_path / "s.txt", 12)
    with ensemble(tmp_path, PASSING) as (flags, servers):
        done = generate(source, tmp_path / "out", *flags)
        assert done.code == 0, done.err
        assert done.result["texts"] == 12
        assert (
            done.result["pairs"]
            == done.result["positives"] + done.result["negatives"]
            > 0
        )
        assert done.result["calls"] == requests(servers) > 72
        for server in servers:
            assert server.stats.faults
            assert len(server.stats.answers) == 24
            assert server.stats.asked_again == 0
        again = generate(source, tmp_path / "out", *flags)
        assert (again.result["calls"], again.result["cached"]) == (0, 72)
        assert sum(server.stats.answered for server in servers) == 72
    dataset = pairkit.read(tmp_path / "out")
    assert {"text_id", "polarity", "llms", "prompt_hashes", "votes"} <= {
        *dataset.rows.columns
    }
    rows = pl.concat(dataset.splits.values())
    assert rows["text_id"].n_unique() == 12
    assert {name for names in rows["llms"].to_list() for name in names} == set(MEMBERS)


def test_sentences_in_memory_are_resumed_like_a_file(tmp_path: Path) -> None:
    asked: list[str] = []
    first = generate_from(
        TEXTS,
        tmp_path / "out",
        asked,
        max_requests=3,
        settings={"llm.mine.local": True},
    )
    assert (len(asked), first.asked.stopped) == (3, "max_requests")
    assert any("max_requests=" in note for note in first.messages)
    second = generate_from(
        [*TEXTS], tmp_path / "out", asked, settings={"llm.mine.local": True}
    )
    assert len(asked) == len(set(asked)) == 6
    assert (second.asked.cached, second.asked.spent.requests, second.cost) == (
        3,
        3,
        0.0,
    )
    with pytest.raises(pairkit.ConfigError, match="made from other inputs"):
        generate_from(TEXTS[:1], tmp_path / "out")


def test_judging_continues_where_it_stopped(tmp_path: Path) -> None:
    first = judged(tmp_path / "out", max_requests=1)
    again = judged(tmp_path / "out")
    assert first.asked.stopped == "max_requests"
    assert (again.asked.cached, again.asked.spent.requests) == (1, 5)
    data = (tmp_path / "out" / "data" / "train-00000-of-00001.parquet").read_bytes()
    judged(tmp_path / "other")
    assert (
        tmp_path / "other" / "data" / "train-00000-of-00001.parquet"
    ).read_bytes() == data
