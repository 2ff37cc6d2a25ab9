"""The origin of rows: known columns in known types."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.frames import as_written, is_plain
from pairkit.dataset.records import PairDataset

_TEXTS = (
    "repo",
    "repo2",
    "number1",
    "number2",
    "url1",
    "url2",
    "cluster",
    "relation",
    "negative_kind",
)
_TYPED = (*_TEXTS, "confidence")
WRITTEN_BY = ("llms", "prompt_hashes")  # columns of datasets with generated texts
_EVIDENCE = ("kind", "url", "who", "when")


def with_provenance(dataset: PairDataset) -> PairDataset:
    """The dataset with known columns in known types, see `typed_rows`."""
    splits = {name: typed_rows(rows) for name, rows in dataset.splits.items()}
    return replace(dataset, splits=splits)


def count_generated_rows(rows: pl.DataFrame) -> int:
    """The number of rows with generated texts, which name LLMs or rules in `llms`."""
    if not {*WRITTEN_BY} <= {*rows.columns}:
        return 0
    named = rows["llms"]
    if isinstance(named.dtype, pl.List):
        has_names = named.list.len() > 0
    elif named.dtype == pl.String:
        has_names = ~named.is_in(["", "[]"])  # an empty list in CSV
    else:
        return 0
    return int(has_names.sum())


def typed_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with known columns in known types, or without them if they can't be cast."""
    columns = []
    for name in _TYPED:
        if name in rows.columns and is_plain(rows.schema[name]):
            column = rows[name]
            columns.append(as_written(column) if name in _TEXTS else _numbers(column))
    if "evidence" in rows.columns:
        columns += _typed_evidence(rows["evidence"])
    return rows.drop(*_TYPED, "evidence", strict=False).with_columns(columns)


def _numbers(column: pl.Series) -> pl.Series:
    """The numbers of a column; other values become null, with a warning."""
    numbers = column.cast(pl.Float64, strict=False)
    others = column.filter(numbers.is_null() & column.is_not_null()).cast(pl.String)
    others = others.filter(others.str.strip_chars() != "")
    if len(others):
        example = one_line(others[0])
        note_once(
            "%s: values that are not numbers are left out: %s", column.name, example
        )
    return numbers


def _typed_evidence(column: pl.Series) -> list[pl.Series]:
    """The evidence in known types, if it has all fields."""
    types = dict(column.dtype) if isinstance(column.dtype, pl.Struct) else {}
    plain = {name for name, dtype in types.items() if is_plain(dtype)}
    if not plain.issuperset(_EVIDENCE):
        return []
    texts = pl.Struct(dict.fromkeys(_EVIDENCE, pl.String))
    return [column.cast(texts, strict=False)]
