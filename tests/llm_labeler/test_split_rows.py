"""Rows dealt in shards are those that would be made of everything in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.dataset.rows import ROWS, DatasetRows
from llm_labeler.dataset.write import SplitRows, write
from llm_labeler.records import POLARITIES, Candidate, JudgeVote, LabelledPair, Text
from pairkit.app.errors import ConfigError
from pairkit.dataset.reader import read_rows
from pairkit.dataset.records import SPLITS
from pairkit.system.seeded import keyed_hash
from tests.llm_labeler.test_dataset import record
from tests.pairkit.peak import peak_mib

Frames = Mapping[str, Mapping[str, pl.DataFrame]]
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


def rows_of(run: Collected, *, triplets: bool = False, shard: int = ROWS) -> DatasetRows:
    rows = DatasetRows("union", 3, triplets=triplets, shard=shard)
    for text, pairs in run:
        rows.add(text, pairs)
    return rows


def splits_of(run: Collected) -> dict[str, str]:
    return {text.text_id: SPLITS[text.row % 3] for text, _ in run}


def in_memory(run: Collected, *, triplets: bool) -> Frames:
    """The rows of all configurations, made of whole tables by joins."""
    split_of, rows = splits_of(run), []
    for text, pairs in run:
        kept: dict[str, LabelledPair] = {}
        for pair in pairs:
            if pair.reason is None:
                kept.setdefault(pair.candidate.candidate, pair)
        if triplets and len({pair.polarity for pair in kept.values()}) < 2:
            continue
        rows += [
            {
                "text1": text.text,
                "text2": said,
                "label": pair.label,
                "text_id": text.text_id,
                "polarity": pair.polarity,
                "llms": list(pair.candidate.llms),
                "prompt_hashes": list(pair.candidate.prompt_hashes),
                "votes": [{"judge": vote.judge, "vote": vote.vote} for vote in pair.votes],
                "strategy": "union",
                "negative_kind": pair.candidate.change,
                "split": split_of[text.text_id],
                "key": keyed_hash(3, "row", text.text_id, said),
            }
            for said, pair in kept.items()
        ]
    if not rows:
        return {}
    schema = {
        "label": pl.Float64,
        "votes": pl.List(pl.Struct({"judge": pl.String, "vote": pl.String})),
        "negative_kind": pl.String,
        "key": pl.UInt64,
    }
    table = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None).sort("key")
    graded = table["label"].is_in([0.0, 1.0]).not_().any()
    table = table.with_columns(pl.col("label").cast(pl.Float32 if graded else pl.Int64))
    found: dict[str, dict[str, pl.DataFrame]] = {"default": {}, "positive": {}, "triplet": {}}
    for split in SPLITS:
        part = table.filter(split=split)
        found["default"][split] = part.drop("split", "key", "negative_kind")
        positive = part.filter(polarity="positive")
        found["positive"][split] = positive.select(anchor="text1", positive="text2")
        found["triplet"][split] = _matched(part, triplets=triplets)
    if triplets:
        found = {"triplet": found["triplet"]}
    sized = {c: {split: f for split, f in splits.items() if f.height} for c, splits in found.items()}
    return {config: splits for config, splits in sized.items() if splits}


def _matched(part: pl.DataFrame, *, triplets: bool) -> pl.DataFrame:
    rows = part.to_dicts()
    schema = {"anchor": pl.String, "positive": pl.String, "negative": pl.String}
    if triplets:
        names = pl.List(pl.String)
        schema |= {"negative_kind": pl.String, "text_id": pl.String}
        schema |= {"llms": names, "prompt_hashes": names, "strategy": pl.String}
    made = []
    for row in rows:
        own = [each for each in rows if each["text_id"] == row["text_id"]]
        sides = {polarity: [each for each in own if each["polarity"] == polarity] for polarity in POLARITIES}
        leads = max(POLARITIES, key=lambda polarity: len(sides[polarity]))  # the first of equal ones
        (other,) = {*POLARITIES} - {leads}
        if not sides[other] or row["polarity"] != leads:
            continue
        met = sides[other][sides[leads].index(row) % len(sides[other])]
        positive, negative = (row, met) if leads == "positive" else (met, row)
        both = {name: sorted({*row[name], *met[name]}) for name in ("llms", "prompt_hashes")}
        told = {"negative_kind": negative["negative_kind"], "text_id": row["text_id"], "strategy": "union"}
        texts = {"anchor": row["text1"], "positive": positive["text2"], "negative": negative["text2"]}
        made.append(texts | told | both)
    return pl.DataFrame([{name: each[name] for name in schema} for each in made], schema=schema)


def together(dealt: SplitRows) -> Frames:
    """The shards of each configuration and split, one behind the other."""
    found: dict[str, dict[str, list[pl.DataFrame]]] = {config: {} for config in dealt.sizes}
    for config, splits in found.items():
        for split, place, count, rows in dealt.shards(config):
            shards = splits.setdefault(split, [])
            assert (place, len(shards) < count) == (len(shards), True)
            shards.append(rows)
    return {config: {split: pl.concat(s) for split, s in splits.items()} for config, splits in found.items()}


@given(RUNS, st.integers(1, 9), st.booleans())
def test_shards_together_are_the_rows_of_everything_in_memory(
    drawn: Drawn, shard: int, triplets: bool
) -> None:
    run = collected(drawn)
    dealt = SplitRows(rows_of(run, triplets=triplets, shard=shard), splits_of(run), graded=False)
    found, expected = together(dealt), in_memory(run, triplets=triplets)
    assert found.keys() == expected.keys()
    for config, splits in expected.items():
        assert found[config].keys() == splits.keys()
        for split, rows in splits.items():
            assert found[config][split].equals(rows, null_equal=True)
            assert found[config][split].schema == rows.schema
            assert dealt.sizes[config][split] == rows.height


@given(RUNS, st.booleans())
def test_counts_are_those_of_the_rows(drawn: Drawn, triplets: bool) -> None:
    run = collected(drawn)
    dealt = SplitRows(rows_of(run, triplets=triplets), splits_of(run), graded=False)
    frames, counts = in_memory(run, triplets=triplets), dealt.counts()
    for split in SPLITS:
        rows, told = frames.get("default", {}).get(split), counts["splits"][split]
        if rows is not None:
            assert told["texts"] == rows["text_id"].n_unique()
            assert [told[name] for name in POLARITIES] == [(rows["polarity"] == p).sum() for p in POLARITIES]
        found = frames.get("triplet", {}).get(split)
        assert told["triplets"] == (0 if found is None else found.height)
    if triplets:
        kinds = [
            kind or "unknown" for rows in frames.get("triplet", {}).values() for kind in rows["negative_kind"]
        ]
        assert counts["negative_kinds"] == {kind: kinds.count(kind) for kind in sorted({*kinds})}
    for llm, told in counts["llms"].items():
        said = [r for rows in frames.get("default", {}).values() for r in rows.to_dicts() if llm in r["llms"]]
        if not triplets:
            assert told == {p: sum(row["polarity"] == p for row in said) for p in POLARITIES}


def a_run(texts: int) -> Collected:
    kinds = (("same", "positive", 1.0), ("other", "negative", 0.0), ("again", "positive", 1.0))
    return collected(
        [[(said, p, label, ("x",), [], None, None) for said, p, label in kinds] for _ in range(texts)]
    )


def written(out: Path, run: Collected, shard: int = ROWS) -> Path:
    rows = rows_of(run, shard=shard)
    write(out, rows, splits_of(run), graded=False, statistics={"texts": len(run)}, run=record())
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
    rows, run = rows_of(a_run(30), shard=12), a_run(30)
    monkeypatch.setattr(SplitRows, "_positives", lambda *_: pl.DataFrame({"other": [1]}))
    with pytest.raises(ConfigError, match="no column anchor"):
        write(out, rows, splits_of(run), graded=False, statistics={}, run=record())
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def texts_of(run: Collected) -> Sequence[Text]:
    return [text for text, _ in run]


@given(RUNS)
def test_sentences_are_texts_and_what_was_not_turned_down(drawn: Drawn) -> None:
    run = collected(drawn)
    expected = [text.text for text in texts_of(run)]
    expected += [pair.candidate.candidate for _, pairs in run for pair in pairs if pair.reason is None]
    found = rows_of(run).emitted(texts_of(run))
    assert [*iter(found)] == expected == [found[place] for place in range(len(found))]


KILLED = """
import os, signal, sys
from pathlib import Path
from pairkit.dataset.records import DatasetFolder
from tests.llm_labeler.test_split_rows import a_run, written

add, added = DatasetFolder.add, []
def add_then_die(self, *given):
    add(self, *given)
    added.append(given)
    if len(added) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
DatasetFolder.add = add_then_die
written(Path(sys.argv[1]), a_run(30), 12)
"""


def test_a_kill_between_two_shards_leaves_no_half_dataset(tmp_path: Path) -> None:
    out, root = tmp_path / "out", str(Path(__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(out)], check=False, env={**os.environ, "PYTHONPATH": root}
    )
    assert (ran.returncode, out.exists()) == (-signal.SIGKILL, False)
    again, undisturbed = written(out, a_run(30), 12), written(tmp_path / "other", a_run(30), 12)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["other", "out"]
    files = [path.relative_to(again) for path in sorted(again.rglob("*.*"))]
    assert len(files) > 20
    assert all((again / name).read_bytes() == (undisturbed / name).read_bytes() for name in files)


MANY = """
import random, sys
from pathlib import Path
from llm_labeler.dataset.write import write
from llm_labeler.records import Candidate, LabelledPair, Text
from llm_labeler.dataset.rows import DatasetRows
from tests.llm_labeler.test_dataset import record

rows = DatasetRows("union", 3, shard=10_000)
for number in range(25_000):
    text = Text.of(f"Text {number}.", number)
    rows.add(text, [
        LabelledPair(
            Candidate(text.text_id, f"{number} {each} " + "long " * 120, polarity, ("x",)), polarity, 1.0
        )
        for each in range(3) for polarity in ("positive", "negative")
    ])
rows.write_candidates(Path(sys.argv[1]).with_name("candidates.parquet"))
splits = {text.text_id: "train" for text in rows.texts}
write(Path(sys.argv[1]), rows, splits, graded=False, statistics={"texts": 25_000}, run=record())
"""


def test_rows_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (program := tmp_path / "program.py").write_text(MANY)
    code = "sys.argv[1] = sys.argv[1] + '.out'; runpy.run_path(sys.argv[1][:-4])"
    says, mib = peak_mib("import runpy\nimport tests.llm_labeler.test_dataset", code, program)
    assert says == "done"
    assert mib < 215  # 173, and 180 of twice as many; 288 with all rows in frames
