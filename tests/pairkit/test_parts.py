from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pairkit import ConfigError, DataError
from pairkit.dataset.reading.parts import files_of, parts_of
from pairkit.dataset.reading.reader import read_pairs, read_rows, split_names

ROWS = "text1,text2,label\n{0},b,1\nc,d,0\n"


def put(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one\n" if name.endswith(".txt") else ROWS.format(path.stem))
    return folder


def found(source: str | Path) -> dict[str, list[str]]:
    parts = parts_of(source, lines=True)
    return {split: [Path(part.where).name for part in own] for split, own in parts.items()}


def test_shards(tmp_path: Path) -> None:
    put(tmp_path, "part-00001-ab1.c000.csv", "part-00000-ab1.c000.csv", "_SUCCESS")
    assert found(tmp_path) == {"train": ["part-00000-ab1.c000.csv", "part-00001-ab1.c000.csv"]}
    assert read_pairs(tmp_path)["train"]["text1"].to_list() == [
        *("part-00000-ab1.c000", "c", "part-00001-ab1.c000", "c")
    ]
    put(tmp_path, "notes.csv")
    with pytest.raises(DataError, match="no data files named after a split"):
        parts_of(tmp_path)


def test_glob_pattern(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a/one.csv",
        "b/two.csv",
        "b/three.md",
        "c/train-1.csv",
        "c/dev-1.csv",
        "c/other.csv",
        "d/x.txt",
    )
    assert found(f"{tmp_path}/[ab]/*") == {"train": ["one.csv", "two.csv"]}
    assert found(tmp_path / "c" / "*-1.csv") == {"train": ["train-1.csv"], "validation": ["dev-1.csv"]}
    assert split_names(f"{tmp_path}/c/d*") == ["validation"]
    assert read_rows(f"{tmp_path}/d/*")["train"]["text"].to_list() == ["one"]
    with pytest.raises(DataError, match=r"matches dev-1\.csv, which is named after a split, and other\.csv"):
        parts_of(f"{tmp_path}/c/*")
    with pytest.raises(DataError, match="no table matches this pattern"):
        parts_of(f"{tmp_path}/b/*.md")


def test_file_name_that_looks_like_a_pattern(tmp_path: Path) -> None:
    put(tmp_path, "a[1].csv", "a1.csv")
    assert found(tmp_path / "a[1].csv") == {"train": ["a[1].csv"]}
    with pytest.raises(ConfigError, match="no such file or folder"):
        parts_of("nowhere")


def test_files_of_a_source(tmp_path: Path) -> None:
    put(tmp_path, "data/train.csv", "triplet/train.csv", "x.md")
    assert files_of(tmp_path) == [tmp_path / "data/train.csv", tmp_path / "triplet/train.csv"]
    assert files_of(f"{tmp_path}/*/train.csv") == files_of(tmp_path)
    assert files_of(str(tmp_path / "x.md")) == [tmp_path / "x.md"]
    assert files_of("owner/dataset") == []
    assert files_of([{"text": "a"}]) == []


SAVED = [{"text1": "a plane", "text2": "an aeroplane", "label": 1}, {"text1": "b", "text2": "c", "label": 0}]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list(SAVED)
    datasets.DatasetDict(test=table, validation=table.select([1]), train=table).save_to_disk(tmp_path / "all")
    table.save_to_disk(tmp_path / "one", num_shards=2)
    return tmp_path


def test_all_splits_or_one(saved: Path) -> None:
    pairs = read_pairs(saved / "all")
    assert {name: frame.to_dicts() for name, frame in pairs.splits.items()} == {
        "train": SAVED,
        "validation": SAVED[1:],
        "test": SAVED,
    }
    assert pairs.label_kind == "binary"
    assert split_names(saved / "one") == ["train"]
    assert read_pairs(saved / "one")["train"].to_dicts() == SAVED  # both files in order
    assert read_pairs(saved / "all" / "test")["train"].height == 2
    assert read_pairs(saved / "all" / "test" / "data-00000-of-00001.arrow")["train"].height == 2


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("dataset_dict.json", {"splits": ["../one"]}, r"dataset_dict\.json: names '\.\./one'"),
        ("dataset_dict.json", {"splits": []}, "lists no data"),
        ("dataset_dict.json", [], "expected one JSON object"),
        ("train/state.json", {"_data_files": [{"filename": "/etc/passwd"}]}, "names '/etc/passwd'"),
        ("train/state.json", {"_data_files": [{"filename": "gone.arrow"}]}, r"gone\.arrow: no such file"),
        ("train/state.json", {"_data_files": [7]}, "names None"),
        ("train/state.json", {"_indices_data_files": [{"filename": "i.arrow"}]}, "selects rows by indices"),
    ],
)
def test_invalid_saved_datasets(saved: Path, file: str, content: Any, message: str) -> None:
    (saved / "all" / file).write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        read_pairs(saved / "all")
