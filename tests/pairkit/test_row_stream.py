"""Rows that are read a few at a time are those that are read all at once, refusals included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.app.errors import ConfigError, PairkitError
from pairkit.dataset import row_stream
from pairkit.dataset.labels import AS_FOUND, LabelRules, label_rules
from pairkit.dataset.reader import read_rows
from pairkit.dataset.row_stream import RowStream, files_of_split, open_rows


def put(folder: Path, *tables: Mapping[str, list[Any]], group: int = 2) -> Path:
    """Shards whose row groups have so many rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        path = folder / f"train-{number:05}-of-{len(tables):05}.parquet"
        pl.DataFrame(table, strict=False).write_parquet(path, row_group_size=group)
    return folder


def all_of(stream: RowStream) -> pl.DataFrame:
    pieces = [piece for stretch in stream.stretches for piece in stream.read(stretch)]
    return pl.concat([piece.rows for piece in pieces], how="diagonal_relaxed")


def outcome(source: Path, rules: LabelRules, *, streamed: bool) -> Any:
    """The rows and what was made of their labels, or the refusal."""
    try:
        if streamed:
            stream = open_rows(source, rules=rules)
            frame, labels = all_of(stream), stream.labels
            assert not frame.height or set(frame.columns) == set(stream.names)
            binary = stream.binary
        else:
            rows = read_rows(source, rules=rules)
            frame, labels = rows["train"], rows.labels
            binary = "label" not in frame.columns or frame["label"].dtype == pl.Int64
    except PairkitError as error:
        return type(error), str(error).replace("the files of train differ", "its files differ")
    if "label" in frame.columns:
        frame = frame.with_columns(pl.col("label").cast(pl.Float32))
    return frame.select(sorted(frame.columns)).to_dicts(), labels, binary


@pytest.fixture(autouse=True)
def _small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_stream, "_STRETCH", 3)
    monkeypatch.setattr("pairkit.dataset.reader._JOINED", 2)
    monkeypatch.setattr("pairkit.dataset.parquet_batches.ROWS", 2)


texts = st.sampled_from(["a", "b", "ü", '["x"]', '["y", "z"]', "[]"])
labels = st.sampled_from(
    [
        *(
            [0, 1],
            [0.0, 2.5, 5.0],
            ["yes", "no"],
            ["entailment", "neutral", "contradiction"],
            [0, 1, 2],
            [0, 7],
        ),
        *([True, False], ["0", "1", "?"], [1.0, float("nan")], [0.25, None]),
    ]
)
rules = st.sampled_from(
    [AS_FOUND, label_rules("0=1,1=skip,2=0,yes=1,no=skip", None), label_rules(None, "0,10")]
)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, list[Any]]]:
    kind = draw(st.sampled_from(["pairs", "positives", "triplets", "lists", "single"]))
    values = draw(labels)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        rows = draw(st.integers(0 if found else 1, 6))
        column = st.lists(texts, min_size=rows, max_size=rows)
        table: dict[str, list[Any]] = {"anchor": draw(column), "positive": draw(column)}
        match kind:
            case "pairs":
                names = draw(st.sampled_from(["text1 text2", "premise hypothesis"])).split()
                table = dict(zip(names, table.values(), strict=True))
                table["label"] = draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))
            case "triplets":
                table["negative"] = draw(column)
                if draw(st.booleans()):
                    table["negative_2"] = draw(st.lists(texts | st.none(), min_size=rows, max_size=rows))
            case "lists":
                table["negatives"] = draw(st.lists(st.lists(texts, max_size=3), min_size=rows, max_size=rows))
            case "single":
                table = {"text": draw(column)}
        found.append(table)
    return found


@settings(max_examples=50)
@given(tables(), rules)
def test_the_rows_of_a_stream_are_those_that_are_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, made: list[dict[str, list[Any]]], given_rules: LabelRules
) -> None:
    folder = put(tmp_path_factory.mktemp("t"), *made)
    assert outcome(folder, given_rules, streamed=True) == outcome(folder, given_rules, streamed=False)


PLAIN = {"text1": [*"abcd"], "text2": [*"abcd"], "label": [0, 1, 0, 1]}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (PLAIN | {"text1": ["a", "b", "c", None]}, r"00001.*:4: text1 is empty"),
        (PLAIN | {"text2": ["a", " ", "b", "c"]}, r"00001.*:2: text2 is empty"),
        (PLAIN | {"label": [0, 1, None, 1]}, r"00001.*:3: label None: there is"),
        (PLAIN | {"label": [0, 1, 1, 9]}, r"00001.*:4: label 9; expected 0 or 1"),
        ({"text1": [*"abcd"], "body": [*"abcd"]}, r"00001.*: found the columns text1, body, expected"),
        ({"anchor": [*"abcd"], "positive": [*"abcd"]}, "its files differ in what their rows are"),
        (PLAIN | {"text1": [["a"]] * 4}, "text1 holds lists or structures"),
    ],
)
def test_file_and_row_of_what_is_wrong(tmp_path: Path, bad: dict[str, list[Any]], says: str) -> None:
    folder = put(tmp_path, {name: column[:3] for name, column in PLAIN.items()}, bad)
    with pytest.raises(PairkitError, match=says) as streamed:
        all_of(open_rows(folder))
    with pytest.raises(PairkitError) as at_once:
        read_rows(folder)
    assert str(streamed.value) == str(at_once.value).replace("the files of train differ", "its files differ")


def test_a_truncated_shard_is_named_before_any_text_is_read(tmp_path: Path) -> None:
    good = {"text1": [*"abc"], "text2": [*"abc"], "label": [0, 1, 0]}
    folder = put(tmp_path, good, good, good)
    path = folder / "train-00002-of-00003.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(PairkitError, match=r"train-00002.*not readable as parquet"):
        open_rows(folder)


def test_texts_that_are_no_unicode(tmp_path: Path) -> None:
    column = pa.array([b"a", b"b", b"c\xff", b"d"], pa.binary()).view(pa.string())
    table = pa.table({"text1": pa.array([*"abcd"]), "text2": column, "label": pa.array([0, 1, 0, 1])})
    pq.write_table(table, tmp_path / "train.parquet", row_group_size=2)
    stream = open_rows(tmp_path)
    with pytest.raises(PairkitError, match=r"train\.parquet:3: not readable as parquet .*UTF8"):
        all_of(stream)


def test_one_long_text_in_ever_so_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairkit.dataset.tables.FREE_BYTES", 1000)
    table = {"anchor": ["x" * 10_000] * 2000, "positive": ["y"] * 2000}
    put(tmp_path, table, group=2000)
    monkeypatch.setattr("pairkit.dataset.parquet_batches.ROWS", 100)
    with pytest.raises(PairkitError, match="its texts are more than 200 times its size"):
        all_of(open_rows(tmp_path))


def test_where_rows_are_from_whatever_is_left_out(tmp_path: Path) -> None:
    table = {"text1": [*"abcde"], "text2": [*"vwxyz"], "label": ["yes", "no", "?", "yes", "?"]}
    folder = put(tmp_path, table, table)
    stream = open_rows(folder, rules=label_rules("yes=1,no=0,?=skip", None))
    found = [(s.table, n) for s in stream.stretches for p in stream.read(s) for n in p.numbers.tolist()]
    assert found == [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 3)]
    assert stream.place(1, 3) == f"{folder}/train-00001-of-00002.parquet:4"
    assert stream.labels is not None
    assert (stream.labels.skipped, stream.binary) == ({"?": 4}, True)


def test_stretches_are_whole_row_groups(tmp_path: Path) -> None:
    table = {"text": [*"abcdefg"]}
    stream = open_rows(put(tmp_path, table, table, group=2))
    assert [tuple(stretch) for stretch in stream.stretches] == [
        *((0, (0, 1), 0), (0, (1, 2), 2), (0, (2, 4), 4)),
        *((1, (0, 1), 0), (1, (1, 2), 2), (1, (2, 4), 4)),
    ]
    numbers = [piece.numbers for stretch in stream.stretches[3:] for piece in stream.read(stretch)]
    assert np.concatenate(numbers).tolist() == [*range(7)]


def test_files_of_other_kinds_are_read_one_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "part-1.csv").write_text("anchor,positive\na,b\nc,d\ne,f\n")
    (tmp_path / "part-2.csv").write_text("anchor,positive\ng,h\n\n")
    assert files_of_split(tmp_path, None) == [tmp_path / "part-1.csv", tmp_path / "part-2.csv"]
    with pytest.raises(PairkitError, match=r"part-2\.csv:3: anchor is empty"):
        all_of(open_rows(tmp_path))
    (tmp_path / "part-2.csv").write_text("anchor,positive\ng,h\n")
    assert all_of(open_rows(tmp_path))["anchor"].to_list() == [*"aceg"]


def test_rows_in_memory_are_there_already() -> None:
    with pytest.raises(ConfigError, match="its rows are in memory already; leave streaming out"):
        open_rows([{"anchor": "a", "positive": "b"}])
    assert files_of_split([{"anchor": "a", "positive": "b"}], None) == []


def test_a_dataset_of_the_hub_is_not_fetched_to_see_that_it_is_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr("pairkit.dataset.parts.fetch_dataset", fetched.append)
    assert files_of_split("me/pairs", "train") == []
    assert fetched == []
