"""The tables of both papers, from published.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from pairkit.base.errors import ConfigError

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
