"""The rows that a dataset has of collected candidates, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.dataset import card
from llm_labeler.dataset.card import write
from llm_labeler.dataset.splits import DatasetRows, DatasetSplits
from llm_labeler.records import POLARITIES, Candidate, JudgeVote, LabelledPair, Text
from pairkit.app.errors import ConfigError
from pairkit.dataset.reader import read_rows
from pairkit.dataset.records import SPLITS
from tests.llm_labeler.test_dataset import record

Drawn = list[list[tuple[Any, ...]]]
Collected = list[tuple[Text, list[LabelledPair]]]

_PAIRS = st.tuples(
    st.sampled_from("abcdeé\x00"),
    st.sampled_from(POLARITIES),
    st.sampled_from((0.0, 1.0, 0.25)),
    st.sampled_from((("x",), ("x", "y"), ("y",))),
    st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from(("same", "unsure"))), max_size=2),
    st.sampled_from((None, None, None, "outvoted")),
    st.sampled_from((None, "entity", "negation")),
)
RUNS = st.lists(st.lists(_PAIRS, max_size=7), max_size=8)


def collected(drawn: Drawn) -> Collected:
    """Texts with pairs of every kind."""
    found: Collected = []
    for number, pairs in enumerate(drawn):
        text = Text.of(f"Text {number}.", number)
        made = [
            LabelledPair(
                Candidate(text.text_id, said, polarity, llms, ("aa", *llms), change),
                polarity,
                label,
                tuple(JudgeVote("", judge, vote) for judge, vote in votes),
                reason,
            )
            for said, polarity, label, llms, votes, reason, change in pairs
        ]
        found.append((text, made))
    return found


def rows_of(run: Collected, *, triplets: bool = False) -> DatasetRows:
    rows = DatasetRows("union", 3, triplets=triplets)
    for text, pairs in run:
        rows.add(text, pairs)
    return rows


def splits_of(run: Collected) -> dict[str, str]:
    return {text.text_id: SPLITS[text.row % 3] for text, _ in run}


@settings(max_examples=40)
@given(RUNS, st.booleans())
def test_rows_are_counted(drawn: Drawn, triplets: bool) -> None:
    run = collected(drawn)
    made = DatasetSplits(rows_of(run, triplets=triplets), splits_of(run), graded=False)
    counts = made.counts()
    for split in SPLITS:
        rows, counted = made.frames.get("default", {}).get(split), counts["splits"][split]
        assert counted["triplets"] == len(made.frames.get("triplet", {}).get(split, ()))
        if rows is not None:
            assert counted["texts"] == rows["text_id"].n_unique()
            assert [counted[name] for name in POLARITIES] == [
                (rows["polarity"] == p).sum() for p in POLARITIES
            ]


@settings(max_examples=40)
@given(RUNS, st.booleans())
def test_each_pair_that_is_kept_is_one_row_with_all_that_is_known_of_it(drawn: Drawn, triplets: bool) -> None:
    run = collected(drawn)
    frames = DatasetSplits(rows_of(run, triplets=triplets), splits_of(run), graded=True).frames
    for text, pairs in run:
        kept: dict[str, LabelledPair] = {}
        for pair in pairs:
            if pair.reason is None:
                kept.setdefault(pair.candidate.candidate, pair)
        sides = {p: {said for said, pair in kept.items() if pair.polarity == p} for p in POLARITIES}
        split = splits_of(run)[text.text_id]
        triples = frames.get("triplet", {}).get(split)
        triples = [] if triples is None else triples.filter(anchor=text.text).to_dicts()
        if all(sides.values()):
            assert ({t["positive"] for t in triples}, {t["negative"] for t in triples}) == (
                sides["positive"],
                sides["negative"],
            )
            assert len(triples) == max(map(len, sides.values()))
        else:
            assert triples == []
        if triplets:
            for triple in triples:
                both = [kept[triple[polarity]].candidate for polarity in POLARITIES]
                assert triple["negative_kind"] == both[1].change
                assert triple["llms"] == sorted({*both[0].llms, *both[1].llms})
                assert triple["prompt_hashes"] == sorted({*both[0].prompt_hashes, *both[1].prompt_hashes})
            continue
        rows = frames["default"][split].filter(text_id=text.text_id).to_dicts() if kept else []
        assert {row["text2"]: row["label"] for row in rows} == {
            said: pair.label for said, pair in kept.items()
        }
        for row in rows:
            pair = kept[row["text2"]]
            assert (row["text1"], row["polarity"], row["strategy"]) == (text.text, pair.polarity, "union")
            assert row["llms"] == list(pair.candidate.llms)
            assert row["votes"] == [{"judge": vote.judge, "vote": vote.vote} for vote in pair.votes]


def a_run(texts: int) -> Collected:
    kinds = (("same", "positive", 1.0), ("other", "negative", 0.0), ("again", "positive", 1.0))
    return collected(
        [[(said, p, label, ("x",), [], None, None) for said, p, label in kinds] for _ in range(texts)]
    )


def written(out: Path, run: Collected, shard: int = card.SHARD_ROWS) -> Path:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(card, "SHARD_ROWS", shard)
        statistics = {"texts": len(run)}
        write(out, rows_of(run), splits_of(run), graded=False, statistics=statistics, run=record())
    return out


def test_a_large_dataset_is_written_in_shards_and_read_as_one(tmp_path: Path) -> None:
    run = a_run(30)
    whole = written(tmp_path / "whole", run)
    shards = written(tmp_path / "shards", run, 12)
    assert sorted(path.name for path in (shards / "data").iterdir()) == [
        f"{split}-{place:05}-of-00003.parquet" for split in sorted(SPLITS) for place in range(3)
    ]
    assert len(list((whole / "data").iterdir())) == 3
    for name in ("README.md", "statistics.json", "run.json"):
        assert (whole / name).read_bytes() == (shards / name).read_bytes()
    one, other = read_rows(whole), read_rows(shards)
    assert all(one[split].equals(other[split]) for split in SPLITS)


def test_what_fails_half_way_leaves_what_stood_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = written(tmp_path / "out", a_run(3))
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    rows, run = rows_of(a_run(30)), a_run(30)
    monkeypatch.setattr(DatasetSplits, "_positives", lambda _: pl.DataFrame({"other": [1], "split": [0]}))
    with pytest.raises(ConfigError, match="no column anchor"):
        write(out, rows, splits_of(run), graded=False, statistics={}, run=record())
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def texts_of(run: Collected) -> Sequence[Text]:
    return [text for text, _ in run]


@settings(max_examples=25)
@given(RUNS)
def test_sentences_are_texts_and_what_was_not_turned_down(drawn: Drawn) -> None:
    run = collected(drawn)
    expected = [text.text for text in texts_of(run)]
    expected += [pair.candidate.candidate for _, pairs in run for pair in pairs if pair.reason is None]
    assert rows_of(run).emitted(texts_of(run)).to_list() == expected
