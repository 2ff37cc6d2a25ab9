"""Rows that are streamed take memory by the number, not by the texts; measured in processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from tests.pairkit.peak import peak_mib

_IMPORTS = """
import pyarrow.parquet
from aoe_train.data.examples import read_examples
"""
_FEW = 10_000  # a whole shard, of several pieces


def write(folder: Path, rows: int, chars: int) -> Path:
    """Labelled pairs of random texts, in shards of 10,000 rows."""
    folder.mkdir()
    for start in range(0, rows, 10_000):
        count = min(10_000, rows - start)
        texts = [[os.urandom(chars // 2).hex() for _ in range(count)] for _ in range(2)]
        table = pl.DataFrame({"text1": texts[0], "text2": texts[1], "label": [0, 1] * (count // 2)})
        table.write_parquet(folder / f"part-{start:09}.parquet", row_group_size=2_000)
    return folder


def growth(tmp_path: Path, code: str, rows: int, chars: int) -> float:
    """MiB that so many rows take beyond those that a few take."""
    few, many = (write(tmp_path / str(count), count, chars) for count in (_FEW, rows))
    took = []
    for folder in (few, many):
        words, mib = peak_mib(_IMPORTS, code, folder)
        assert words == "done"
        took.append(mib)
    return took[1] - took[0]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


def test_texts_are_not_held(tmp_path: Path) -> None:
    # 20,000 rows more have 23 MiB of texts: 57 MiB where they are read into memory.
    assert growth(tmp_path, 'read_examples(sys.argv[1], streaming="on")', 30_000, 600) < 15


@pytest.mark.slow
def test_a_million_texts(tmp_path: Path) -> None:
    # 95 MiB of texts. What there is: a share of the digests while it is sorted, and pages of mapped files.
    assert growth(tmp_path, 'read_examples(sys.argv[1], streaming="on")', 500_000, 100) < 150
