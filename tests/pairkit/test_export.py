from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from pairkit import DataError, PairDataset
from pairkit.dataset.making.made import export_pairs
from pairkit.dataset.reading.reader import read_pairs

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
    (lines,) = export_pairs(dataset, tmp_path, "jsonl")
    assert [json.loads(line) for line in lines.read_text().splitlines()] == ROWS.to_dicts()
    (sheet,) = export_pairs(dataset, tmp_path, "csv")
    assert sheet.name == "train.csv"
    assert read_pairs(sheet).splits["train"].rows() == [
        ("a", "d", 1, '{"kind": "x", "n": 1}'),
        ('b,\n"c"', "é", 0, None),
    ]


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_formulas_are_escaped(tmp_path: Path, mark: str) -> None:
    text = mark + 'cmd|"/c calc"!A1'
    frame = pl.DataFrame(
        {"text1": [text, "1=1"], "text2": ["b", " -"], "label": [1.0, -0.5], mark + "more": [None, text]}
    )
    (sheet,) = export_pairs(PairDataset({"train": frame}, "x"), tmp_path / "a", "csv")
    with sheet.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["text1", "text2", "label", f"'{mark}more"]
    assert rows == [[f"'{text}", "b", "1.0", ""], ["1=1", " -", "-0.5", f"'{text}"]]
    (sheet,) = export_pairs(PairDataset({"train": frame}, "x"), tmp_path / "b", "csv", raw=True)
    with sheet.open(encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["text1", text, "1=1"]
    (lines,) = export_pairs(PairDataset({"train": frame}, "x"), tmp_path / "c", "jsonl")
    assert json.loads(lines.read_text(encoding="utf-8").splitlines()[0])["text1"] == text


@pytest.mark.parametrize("value", [b"x", [b"x"], {"a": [b"x"]}])
@pytest.mark.parametrize("file_format", ["jsonl", "csv"])
def test_columns_of_bytes_are_refused(tmp_path: Path, value: object, file_format: str) -> None:
    frame = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1], "raw": [value]})
    with pytest.raises(DataError, match=f"x: column raw has bytes, which {file_format} can't"):
        export_pairs(PairDataset({"train": frame}, "x"), tmp_path, file_format)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
