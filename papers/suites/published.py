"""What is published: the tables of both papers, from published.toml, and the sizes of test sets."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.tables import read_table

MEAN = "mean"

_FILE = Path(__file__).with_name("published.toml")


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper: scores times 100 by row, or the row of another table with the same scores."""

    source: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[float] | str]
    suite: str = ""
    metric: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)

    def scores(self, row: str) -> dict[str, float]:
        """The scores of a row by column."""
        found = self.rows[row]
        if isinstance(found, str):
            return published_row(found)
        by_column = dict(zip(self.columns, found, strict=True))
        return {
            column: score for column, score in by_column.items() if not isnan(score)
        }


_TABLES = [
    PublishedTable(**table)
    for table in tomllib.loads(_FILE.read_text(encoding="utf-8"))["tables"]
]
PUBLISHED = {table.source: table for table in _TABLES}


def published_row(reference: str) -> dict[str, float]:
    """The scores of a row by column, such as `AoE, Table 1: USE`."""
    source, _, row = reference.partition(": ")
    if source not in PUBLISHED or row not in PUBLISHED[source].rows:
        known = PUBLISHED[source].rows if source in PUBLISHED else PUBLISHED
        raise ConfigError(
            f"no published scores {reference!r}; expected one of {', '.join(known)}"
        )
    return PUBLISHED[source].scores(row)


def table_path(path: Path) -> Path:
    """A table of --data-dir; if it is absent, its packed form with `.gz`."""
    return path if path.is_file() else path.with_name(f"{path.name}.gz")


def read_columns(path: Path, *columns: str) -> pl.DataFrame:
    """These columns of a table."""
    frame = read_table(path)
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise DataError(
            f"no column {', '.join(absent)}; found {', '.join(frame.columns)}",
            path=path,
            row=1,
        )
    return frame.select(columns)


def check_size(path: Path, rows: int, published: int) -> None:
    """Refuse a file that isn't whole."""
    if rows != published:
        raise DataError(
            f"{rows:,} rows, expected {published:,}; download it again", path=path
        )
