"""Readers of rows and texts, which training, encoding and labelling use, and their memory."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.encoding.source import open_source
from aoe_train.searching.text_rows import read_rows as read_index_rows
from llm_labeler.dataset.texts import read_values
from pairkit import ConfigError, DataError, PairkitError, audit, read
from pairkit.dataset.labels import label_rules
from pairkit.dataset.reading import parts, untrusted_tables
from pairkit.dataset.reading.parts import files_of
from pairkit.dataset.reading.reader import read_rows, split_names
from pairkit.dataset.reading.tables import read_table, table_rows
from tests.pairkit.test_tables import ROWS, SAME, put, spreadsheet


@pytest.mark.parametrize("case", SAME)
def test_the_same_rows_for_every_reader(tmp_path: Path, case: str) -> None:
    path, first = put(tmp_path, *SAME[case]), [text for text, *_ in ROWS]
    assert [row["text1"] for _, row in table_rows(path)] == first
    assert [value for _, _, value in read_values(path, {"text": "text1"})] == first
    assert read_index_rows(path, {"text": "text1"}).texts == first


def test_sheets_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastexcel")
    path = spreadsheet(tmp_path / "a.xlsx", {"A": [("text",)], "B": [("text",), ("x",)]})
    assert [*table_rows(tmp_path / "a.xlsx:B")] == [(2, {"text": "x"})]
    assert [*read_values(f"{path}:B", None)] == [(f"{path}:B", 2, "x")]
    assert read_index_rows(f"{path}:B").texts == ["x"]
    sheet = open_source(tmp_path / "a.xlsx:B")
    assert (sheet.path, [*sheet.values()]) == (path, [(2, "x")])
    monkeypatch.setattr(untrusted_tables, "FREE_BYTES", 0)
    monkeypatch.setattr(untrusted_tables, "MAX_RATIO", 0)
    with pytest.raises(DataError, match="more than 0 times its size"):
        read_table(path)


def test_blank_lines_of_a_text_file_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = put(tmp_path, "a.txt", b"one\n\n two\n\n")
    assert [*open_source(path).values()] == [(1, "one"), (3, " two")]
    assert "blank lines left out: 2" in caplog.text
    for source in (path, ["one", "", " two", ""]):
        assert read_rows(source)["train"]["text"].to_list() == ["one", " two"]


def test_lists_of_positives() -> None:
    rows = [
        {"query": "q", "pos": ["a", "b"], "neg": ["c"], "pos_scores": [0.9, 0.8]},
        {"query": "r", "pos": [], "neg": ["d"], "pos_scores": []},
        {"query": "s", "pos": ["e"], "neg": ["f", ""], "pos_scores": [0.5]},
    ]
    with pytest.raises(DataError, match=r":2: positive is empty"):
        read_rows(rows)
    skip = label_rules(None, None, "skip")
    found = read_rows(rows, rules=skip)
    assert found["train"].rows() == [("q", "a", ["c"]), ("q", "b", ["c"]), ("s", "e", ["f"])]
    assert [found.place("train", row).rpartition(":")[2] for row in range(3)] == ["1", "1", "3"]
    pairs = read(rows, bad_rows="skip")["train"].select("text1", "text2", "label")
    assert pairs.rows() == [("q", "a", 1), ("q", "b", 1), ("q", "c", 0), ("s", "e", 1), ("s", "f", 0)]


def test_single_texts(tmp_path: Path) -> None:
    lone = put(tmp_path, "a.csv", b"sentence\none\n")
    assert read_rows(lone)["train"].to_dicts() == [{"text": "one"}]
    titles = put(tmp_path, "b.csv", b"id,title\n1,one\n")
    found = read_rows(titles, columns={"text": "title"})
    assert (found["train"].to_dicts(), found.place("train", 0)) == ([{"text": "one"}], f"{titles}:2")
    with pytest.raises(DataError, match="found the columns id, title"):
        read_rows(titles)
    with pytest.raises(DataError, match=r"or give columns=\{'text': 'text'\}"):
        read_rows(put(tmp_path, "c.csv", b"intent,text\nx,one\n"))
    with pytest.raises(ConfigError, match="perhaps negatives, or only text; found text1"):
        read_rows(titles, columns={"text1": "title"})


def test_text_files(tmp_path: Path) -> None:
    path = put(tmp_path, "dev.txt", "one\x0c\u2028\ttwo\r\n\nthree\n".encode())
    found = read_rows(path, rules=label_rules(None, None, "skip"))
    assert found["validation"]["text"].to_list() == ["one\x0c\u2028\ttwo", "three"]
    assert found.bad_rows.select("row", "reason").rows() == [(2, "empty_text")]
    assert split_names(path) == ["validation"]


def test_files_with_different_numbers_of_negatives(tmp_path: Path) -> None:
    put(tmp_path, "train-0.csv", b"anchor,positive,negative\na,b,c\n")
    put(tmp_path, "train-1.csv", b"anchor,positive,negative_1,negative_2\nd,e,f,g\n")
    assert read_rows(tmp_path)["train"]["negatives"].to_list() == [["c"], ["f", "g"]]


def rows_or_error(read: Any) -> Any:
    try:
        return read()
    except PairkitError as error:
        return str(error)


CELL = st.text('a",;\t\n\r\x1c \xe9', max_size=4)
QUOTED_CELL = st.builds(lambda text: '"' + text.replace('"', '""') + '"', CELL)
LINE = st.lists(st.sampled_from(["a", "b c"]) | QUOTED_CELL | CELL, min_size=1, max_size=3)


@settings(max_examples=300)
@given(
    st.sampled_from(["a.csv", "a.tsv"]),
    st.lists(LINE, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_a_whole_table_has_the_rows_that_are_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, name: str, lines: list[list[str]], end: str, well_formed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    separator = "\t" if name == "a.tsv" else ","
    shown = [["h", "i"], *([(line * 2)[:2] for line in lines] if well_formed else lines)]
    path.write_bytes(end.join(map(separator.join, [*shown, []])).encode())
    one_by_one = rows_or_error(lambda: [[*row.values()] for _, row in table_rows(path)])
    whole = rows_or_error(lambda: [[cell or "" for cell in row] for row in read_table(path).rows()])
    assert whole == one_by_one


def test_memory_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: set[object] = set()
    counts: list[int] = []

    def counted(path: Path, **options: Any) -> pl.DataFrame:
        table = read_table(path, **options)
        key = object()
        alive.add(key)
        weakref.finalize(table, alive.discard, key)
        counts.append(len(alive))
        return table

    row = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1]})
    for place in range(6):
        row.write_parquet(tmp_path / f"train-{place:05d}-of-00006.parquet")
    monkeypatch.setattr(parts, "read_table", counted)
    audit(tmp_path)
    assert len(counts) == 18  # each for its labels, and in both passes
    assert max(counts) <= 2  # the one that is read, and the one before it


@pytest.mark.parametrize(
    ("llms", "count"),
    [
        ([["chatgpt"], ["llama", "chatgpt"], [], None], 2),
        (['["wordnet"]', "[]", "", None], 1),  # as in CSV
        ([1, 2, 3, 4], 0),
    ],
)
def test_rows_with_generated_texts(llms: list[object], count: int) -> None:
    rows = pl.DataFrame({"text": ["a"] * 4, "llms": llms, "prompt_hashes": [["x"]] * 4})
    columns = {"text": "text"}
    assert read_rows(rows, columns=columns).written == {"train": count}
    assert read_rows(rows.drop("prompt_hashes"), columns=columns).written == {"train": 0}  # another column


def test_files_of_a_source(tmp_path: Path) -> None:
    for name in ("data/train.csv", "triplet/train.csv", "x.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert files_of(tmp_path) == [tmp_path / "data/train.csv", tmp_path / "triplet/train.csv"]
    assert files_of(f"{tmp_path}/*/train.csv") == files_of(tmp_path)
    assert files_of(str(tmp_path / "x.md")) == [tmp_path / "x.md"]
    assert files_of("owner/dataset") == []
    assert files_of([{"text": "a"}]) == []
