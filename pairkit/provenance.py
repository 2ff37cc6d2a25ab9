"""What a dataset may tell of where its rows come from, in the types that we write it in.

Anybody's dataset may have a column of such a name and hold anything in it.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from pairkit.records import PairDataset

_TEXTS = ("repo", "number1", "number2", "url1", "url2", "cluster", "relation", "negative_kind")
WRITTEN_BY = ("llms", "prompt_hashes")
"""Columns of a dataset whose texts LLMs or rules wrote."""
_EVIDENCE = ("kind", "url", "who", "when")


def with_provenance(dataset: PairDataset) -> PairDataset:
    """The dataset with its known columns in known types, see `typed_rows`."""
    return replace(dataset, splits={name: typed_rows(rows) for name, rows in dataset.splits.items()})


def written_rows(rows: pl.DataFrame) -> int:
    """How many rows hold a text that LLMs or rules wrote: those that name them in `llms`, as `label` does."""
    if not {*WRITTEN_BY} <= {*rows.columns}:
        return 0
    named = rows["llms"]
    if isinstance(named.dtype, pl.List):
        return int((named.list.len() > 0).sum())
    return 0 if named.dtype != pl.String else int((~named.is_in(["", "[]"])).sum())  # as CSV has lists


def typed_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with their known columns in known types.

    repo, number1, number2, url1, url2, cluster, relation and negative_kind are texts, confidence is a float,
    evidence a structure of the texts kind, url, who and when. A value that is none becomes null, and a column
    of another shape is left out.
    """
    kinds: dict[str, type[pl.DataType]] = {**dict.fromkeys(_TEXTS, pl.String), "confidence": pl.Float64}
    known = [name for name in (*kinds, "evidence") if name in rows.columns]
    plain = [name for name in known if name in kinds and _is_plain(rows.schema[name])]
    columns = [rows[name].cast(kinds[name], strict=False) for name in plain]
    if "evidence" in known and (evidence := _evidence(rows["evidence"])) is not None:
        columns.append(evidence)
    return rows.drop(known).with_columns(columns)


def _is_plain(dtype: DataType | DataTypeClass) -> bool:
    """Whether each value can be one text; bytes may be anything."""
    return not dtype.is_nested() and dtype != pl.Binary


def _evidence(column: pl.Series) -> pl.Series | None:
    if not isinstance(column.dtype, pl.Struct):
        return None
    parts = dict(column.dtype)
    if any(name not in parts or not _is_plain(parts[name]) for name in _EVIDENCE):
        return None
    fields = [pl.col(column.name).struct.field(name).cast(pl.String, strict=False) for name in _EVIDENCE]
    typed = pl.when(pl.col(column.name).is_not_null()).then(pl.struct(fields))
    return column.to_frame().select(typed.alias(column.name)).to_series()
