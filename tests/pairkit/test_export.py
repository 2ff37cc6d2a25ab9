from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

import pairkit
from pairkit import DataError, PairDataset

ROWS = pl.DataFrame(
    {
        "text1": ["a", 'b,\n"c"'],
        "text2": ["d", "é"],
        "label": [1, 0],
        "evidence": [{"kind": "x", "n": 1}, None],
    }
)


def test_export(tmp_path: Path) -> None:
    dataset = PairDataset({"train": ROWS}, "x")
    (lines,) = pairkit.export(dataset, tmp_path)
    assert [json.loads(line) for line in lines.read_text().splitlines()] == ROWS.to_dicts()
    (sheet,) = pairkit.export(dataset, tmp_path, format="csv")
    assert sheet.name == "train.csv"
    assert pairkit.read(sheet).splits["train"].rows() == [
        ("a", "d", 1, '{"kind": "x", "n": 1}'),
        ('b,\n"c"', "é", 0, None),
    ]


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_formulas_are_escaped(tmp_path: Path, mark: str) -> None:
    text = mark + 'cmd|"/c calc"!A1'
    frame = pl.DataFrame(
        {
            "text1": [text, "1=1"],
            "text2": ["b", " -"],
            "label": [1, 0],
            "n": [-1, 2],
            mark + "more": [None, text],
        }
    )
    (sheet,) = pairkit.export(PairDataset({"train": frame}, "x"), tmp_path / "a", format="csv")
    with sheet.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["text1", "text2", "label", "n", f"'{mark}more"]
    assert rows == [[f"'{text}", "b", "1", "-1", ""], ["1=1", " -", "0", "2", f"'{text}"]]
    (sheet,) = pairkit.export(PairDataset({"train": frame}, "x"), tmp_path / "b", format="csv", raw=True)
    with sheet.open(encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["text1", text, "1=1"]
    (lines,) = pairkit.export(PairDataset({"train": frame}, "x"), tmp_path / "c")
    assert json.loads(lines.read_text(encoding="utf-8").splitlines()[0])["text1"] == text


@pytest.mark.parametrize("value", [b"x", [b"x"], {"a": [b"x"]}])
@pytest.mark.parametrize("file_format", ["jsonl", "csv"])
def test_columns_of_bytes_are_refused(tmp_path: Path, value: object, file_format: str) -> None:
    frame = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1], "raw": [value]})
    with pytest.raises(DataError, match=f"x: column raw has bytes, which {file_format} can't"):
        pairkit.export(PairDataset({"train": frame}, "x"), tmp_path, format=file_format)
    assert list(tmp_path.iterdir()) == []
