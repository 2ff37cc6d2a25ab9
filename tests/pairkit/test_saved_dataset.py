"""Folders that `datasets` saved are read as the rows that were saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pairkit.errors import DataError
from pairkit.reader import read_pairs, split_names

ROWS = [{"text1": "a plane", "text2": "an aeroplane", "label": 1}, {"text1": "b", "text2": "c", "label": 0}]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list(ROWS)
    datasets.DatasetDict(test=table, validation=table.select([1]), train=table).save_to_disk(tmp_path / "all")
    table.save_to_disk(tmp_path / "one", num_shards=2)
    return tmp_path


def test_all_splits_or_one(saved: Path) -> None:
    pairs = read_pairs(saved / "all")
    assert {name: frame.to_dicts() for name, frame in pairs.splits.items()} == {
        "train": ROWS,
        "validation": ROWS[1:],
        "test": ROWS,
    }
    assert pairs.label_kind == "binary"
    assert split_names(saved / "one") == ["train"]
    assert read_pairs(saved / "one")["train"].to_dicts() == ROWS  # of both files, in order
    assert read_pairs(saved / "all" / "test")["train"].height == 2
    assert read_pairs(saved / "all" / "test" / "data-00000-of-00001.arrow")["train"].height == 2


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("dataset_dict.json", {"splits": ["../one"]}, r"dataset_dict\.json: names '\.\./one'"),
        ("dataset_dict.json", {"splits": []}, "lists no data"),
        ("dataset_dict.json", [], "expected one JSON object"),
        ("train/state.json", {"_data_files": [{"filename": "/etc/passwd"}]}, "names '/etc/passwd'"),
        ("train/state.json", {"_data_files": [{"filename": "gone.arrow"}]}, r"gone\.arrow: no such file"),
        ("train/state.json", {"_data_files": [7]}, "names None"),
        ("train/state.json", {"_indices_data_files": [{"filename": "i.arrow"}]}, "picked by indices"),
    ],
)
def test_what_a_stranger_may_have_put_there(saved: Path, file: str, content: Any, said: str) -> None:
    (saved / "all" / file).write_text(json.dumps(content))
    with pytest.raises(DataError, match=said):
        read_pairs(saved / "all")
