from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pairkit
from pairkit import DataError

ROWS = [
    {"sentence1": "a plane", "sentence2": "an aeroplane", "score": 4.5},
    {"sentence1": "a plane", "sentence2": "a dog", "score": 0.0},
]


def _pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame(ROWS, index=[7, 8])


def _hub() -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(ROWS)


@pytest.mark.parametrize(
    "make",
    [lambda: ROWS, lambda: pl.DataFrame(ROWS), lambda: pl.LazyFrame(ROWS), _pandas, _hub],
    ids=["dicts", "polars", "lazy", "pandas", "datasets"],
)
def test_tables_are_read_like_files(make: Any, tmp_path: Path) -> None:
    pl.DataFrame(ROWS).write_parquet(tmp_path / "rows.parquet")
    expected = pairkit.read(tmp_path / "rows.parquet")
    found = pairkit.read(make())
    assert found.label_kind == expected.label_kind == "graded"
    assert found.splits["train"].equals(expected.splits["train"])


def test_tables_by_split() -> None:
    splits = {"test": ROWS, "dev": pl.DataFrame(ROWS), "train": ROWS[:1]}
    assert [*pairkit.read(splits).splits] == ["train", "validation", "test"]
    assert pairkit.read(splits).splits["train"].height == 1
    assert pairkit.read(splits, split="dev")["validation"].height == 2
    datasets = pytest.importorskip("datasets")
    assert [*pairkit.read(datasets.DatasetDict(validation=_hub(), train=_hub())).splits] == [
        "train",
        "validation",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (7, "found int"),
        ([], "^the list given: is empty; expected a dict for each row"),
        ({"train": []}, "^the dict given, train: is empty; expected"),
        (["one", {"text": "two"}], "a dict for each row"),
        ([{"text1": "", "text2": "b", "label": 1}], "the list given:1"),
        (pl.DataFrame({"a": [1]}), "the DataFrame given: found the columns a"),
        ({"train": ROWS, "test": b"x"}, "the dict given, test"),
        ({}, "the dict given: is empty"),
        ({1: ROWS}, "the split 1 has no name"),
    ],
)
def test_invalid_tables(source: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pairkit.read(source)


def test_streamed_dataset() -> None:
    with pytest.raises(DataError, match="is streamed"):
        pairkit.read(_hub().to_iterable_dataset())
