"""Rows that say different things of one pair are found whichever way round they stand, and dealt with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.conflicts import settle
from aoe_train.data.examples import read_examples
from aoe_train.records import Conflicts, Examples, Kind
from pairkit.app.errors import DataError


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(examples: Examples) -> list[tuple[Any, ...]]:
    texts = [tuple(examples.texts[number] for number in row) for row in examples.rows]
    return texts if examples.labels is None else list(zip(texts, examples.labels.tolist(), strict=True))


CONTRADICTING = "text1,text2,label\na,b,1\nc,d,0\nb,a,0\na,b,1\ne,e,0\n"


@pytest.mark.parametrize(
    ("conflicts", "left"),
    [
        ("keep", [("a", "b", 1), ("c", "d", 0), ("b", "a", 0), ("a", "b", 1), ("e", "e", 0)]),
        ("drop", [("c", "d", 0)]),
        ("first", [("a", "b", 1), ("c", "d", 0), ("a", "b", 1)]),
    ],
)
def test_pairs_with_two_labels(tmp_path: Path, conflicts: Conflicts, left: list[Any]) -> None:
    path, told = put(tmp_path / "a.csv", CONTRADICTING), list[str]()
    examples = read_examples(path, conflicts=conflicts, say=told.append)
    assert rows_of(examples) == [((one, other), label) for one, other, label in left]
    assert [*examples.texts] == list(dict.fromkeys(text for one, other, _ in left for text in (one, other)))
    lost = 5 - len(left)
    assert examples.reading.record() == {
        "labels": "0 and 1",
        "conflicts": 2,
        "left_out": {"conflicting_labels": lost} if lost else {},
    }
    done = f"{lost} rows are left out" if lost else "they are kept"
    assert told == [
        f"2 pairs have different labels, such as 'a' and 'b' (1 in {path}:2, 0 in {path}:4); {done}"
    ]


def test_an_error_names_both_rows_and_the_remedy(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", CONTRADICTING)
    with pytest.raises(DataError, match=r"1 in .*a\.csv:2, 0 in .*a\.csv:4\); set conflicts to drop"):
        read_examples(path, conflicts="error")
    alone = put(tmp_path / "b.csv", "text1,text2,label\na,b,1\nb,a,0\n")
    with pytest.raises(DataError, match="no row would be left"):
        read_examples(alone, conflicts="drop")


def test_rows_are_named_as_the_file_has_them_though_some_were_skipped(tmp_path: Path) -> None:
    text = "premise,hypothesis,label\nx,y,neutral\na,b,entailment\nx,y,neutral\na,b,contradiction\n"
    told: list[str] = []
    for name in ("train-0.csv", "train-1.csv"):
        put(tmp_path / name, text if name == "train-1.csv" else "premise,hypothesis,label\nu,v,neutral\n")
    examples = read_examples(tmp_path, say=told.append)
    assert "train-1.csv:3, 0 in" in told[0]
    assert "train-1.csv:5)" in told[0]
    assert examples.reading.record()["left_out"] == {"neutral": 3}


def test_scores_that_differ(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "text1,text2,score\na,b,4.5\nb,a,4.75\nc,c,1.5\nc,d,1\nc,d,1\n")
    found = read_examples(path, conflicts="first")
    assert rows_of(found) == [(("a", "b"), 4.5), (("c", "c"), 1.5), (("c", "d"), 1), (("c", "d"), 1)]


@pytest.mark.parametrize(
    ("conflicts", "left"), [("drop", [("a", "b", "c")]), ("first", [("a", "b", "c"), ("g", "h", "i")])]
)
def test_triplets_whose_texts_contradict(tmp_path: Path, conflicts: Conflicts, left: list[Any]) -> None:
    lines = ["a,b,c", "d,e,d", "f,g,g", "g,h,i", "i,g,x"]  # i is the negative of g, and its positive
    path = put(tmp_path / "a.csv", "\n".join(["anchor,positive,negative", *lines, ""]))
    told: list[str] = []
    assert rows_of(read_examples(path, conflicts=conflicts, say=told.append)) == left
    assert told[0].startswith(
        "3 pairs have different labels, such as 'd' and 'd' (1 as a text and itself, 0 in"
    )


def test_rows_that_cannot_contradict(tmp_path: Path) -> None:
    told: list[str] = []
    for text in (
        "anchor,positive\na,b\nb,a\na,a\n",
        "text\na\na\n",
        "text1,text2,label\na,a,1\nb,c,0\nc,b,0\n",
    ):
        examples = read_examples(put(tmp_path / "a.csv", text), conflicts="error", say=told.append)
        assert examples.reading.conflicts == 0
    assert not told


def test_a_negative_that_a_row_lacks_says_nothing() -> None:
    rows = np.array([[0, 1, 2, -1], [3, 4, -1, -1], [0, 3, 1, -1]])
    examples = Examples(list("abcde"), rows, None, "triplet")
    found = settle(examples, "drop", place=str, say=lambda _: None)
    assert ([*found.texts], found.rows.tolist()) == (["d", "e"], [[0, 1, -1, -1]])


@given(
    st.sampled_from(["binary", "graded"]),
    st.lists(st.tuples(*[st.sampled_from("abc")] * 2, st.integers(0, 1)), min_size=1, max_size=8),
)
def test_what_is_left_agrees(kind: Kind, said: list[tuple[str, str, int]]) -> None:
    rows = np.array([["abc".index(text) for text in pair] for *pair, _ in said])
    examples = Examples(list("abc"), rows, np.array([label for *_, label in said], np.float32), kind)
    labels: dict[frozenset[str], list[int]] = {}
    for one, other, label in said:
        known = [1] if kind == "binary" and one == other else []
        labels.setdefault(frozenset((one, other)), known).append(label)
    agreed = {pair: found[0] for pair, found in labels.items() if len({*found}) == 1}
    first = [row for row in said if row[2] == labels[frozenset(row[:2])][0]]

    def left(conflicts: Conflicts) -> list[tuple[str, str, int]]:
        found = settle(examples, conflicts, place=str, say=lambda _: None)
        assert found.reading.conflicts == len(labels) - len(agreed)
        return [(*texts, label) for texts, label in rows_of(found)]

    assert left("keep") == said
    if agreed:
        assert left("drop") == [row for row in said if frozenset(row[:2]) in agreed]
    if first:
        assert left("first") == first
