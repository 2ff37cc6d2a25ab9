"""Rows in memory, such as DataFrames in a notebook, as tables by split."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import polars as pl
from polars.exceptions import PolarsError

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.frames import frame_of
from pairkit.dataset.reading.separated import column_names
from pairkit.dataset.records import PairDataset

# Such as `train`, `dev_set`, `TEST` or `trainA`, but not `trainee` or `TRAINEE`.
_SPLIT_NAME = re.compile(
    r"(?i:train|val|dev|test)(?i:ing|id|idation|elopment|s|set)?(?![a-z]|(?<=[A-Z])[A-Z])"
)


class ArrowTable(Protocol):
    """A table of any library that exports Arrow: pandas, pyarrow, duckdb."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """An Arrow stream of the rows."""


class HubTable(Protocol):
    """A `datasets.Dataset`."""

    def with_format(self, kind: str) -> Any:
        """The same rows in another format."""


class Result(Protocol):
    """A result of a public function, such as `pairkit.extract`: its folder or file, or rows in memory."""

    @property
    def out(self) -> Path | None:
        """Its folder or file; None if nothing was written."""


Table: TypeAlias = (
    pl.DataFrame
    | pl.LazyFrame
    | ArrowTable
    | HubTable
    | Sequence[Mapping[str, Any]]
    | Sequence[str]
)
"""Rows: a DataFrame of polars or pandas, a `datasets.Dataset`, a list of dicts, or a list of single texts."""
InMemory: TypeAlias = PairDataset | Table | Mapping[str, Table]
"""Rows in memory: one table, or tables by split such as a `DatasetDict`."""
Source: TypeAlias = str | Path | InMemory | Result
"""A path, a Hub id, rows in memory, or the result of another function."""


def contents_of(source: Source) -> str | Path | InMemory:
    """The file, folder or rows of a result; other sources as they are."""
    if isinstance(source, str | Path | PairDataset):
        return source
    if hasattr(source, "to_frame"):  # a Series of polars or pandas
        return cast("list[str]", _with_none(source).to_list())
    # `out` is what was written. Without it, made datasets have `pairs`, and mined rows `splits`. A `Review`
    # has a `path`.
    for name in ("out", "pairs", "splits", "path"):
        part = getattr(source, name, None)
        if isinstance(part, Path | PairDataset | pl.DataFrame | Mapping):
            return part
    return cast("InMemory", source)


def path_of(source: Source) -> str | None:
    """The path or Hub id of a source, also of one that was read; None for other rows in memory."""
    contents = contents_of(source)
    if isinstance(contents, PairDataset):
        return contents.source
    return str(contents) if isinstance(contents, str | Path) else None


def source_name(source: Source) -> str:
    """The name of a source in messages and records."""
    return path_of(source) or f"the {type(contents_of(source)).__name__} given"


def tables_in_memory(source: InMemory) -> dict[str, pl.DataFrame]:
    """Tables by split; a single one is `train`."""
    if isinstance(source, PairDataset):
        return tables_by_split(source)
    where = source_name(source)
    if not isinstance(source, Mapping) or _has_columns(source):
        return {"train": _named_frame(source, where)}
    if not source:
        raise DataError("is empty; expected at least one split", path=where)
    tables = {}
    for name, table in source.items():
        if not isinstance(name, str) or "/" in name:
            raise DataError(
                f"the split {name!r} can't be in a path; expected a str such as 'train'",
                path=where,
            )
        tables[name] = _named_frame(table, f"{where}, {name}")
    return tables


def _has_columns(source: Mapping[str, Any]) -> bool:
    """Whether a mapping has columns, such as `{"text": [...], "id": [...]}`, and not tables by split."""
    has_split_names = all(_SPLIT_NAME.match(str(name)) for name in source)
    return not has_split_names and all(map(_is_column, source.values()))


def _is_column(values: Any) -> bool:
    """Whether these are the values of a column: a sequence, an array or a Series, and not rows."""
    is_array = hasattr(values, "tolist") or hasattr(values, "to_frame")
    is_listed = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_listed and not (is_array and getattr(values, "ndim", True)):
        return False
    return not isinstance(next(iter(values), None), Mapping)


def tables_by_split(pairs: PairDataset) -> dict[str, pl.DataFrame]:
    """The tables by split; if the source had no labels and all pairs are positives, as anchor and positive."""
    splits = dict(pairs.splits)
    if pairs.labels is not None or not len(pairs):
        return splits
    for frame in splits.values():
        has_negatives = {*frame["label"].unique()} - {1}
        if has_negatives or {"anchor", "positive"} & {*frame.columns}:
            return splits
    names = {"text1": "anchor", "text2": "positive"}
    return {name: frame.drop("label").rename(names) for name, frame in splits.items()}


def _named_frame(source: Any, where: str) -> pl.DataFrame:
    """A table with column names as they are read from a file."""
    table = _to_frame(source, where)
    names = column_names(table.columns)
    return table.rename(dict(zip(table.columns, names, strict=True)))


def _to_frame(source: Any, where: str) -> pl.DataFrame:
    """Convert any kind of table; raises DataError for other objects, and for rows that make no table."""
    try:
        if hasattr(source, "to_frame"):  # a Series
            source = source.to_frame()
        if isinstance(source, pl.DataFrame):
            return source
        if isinstance(source, Mapping):
            return pl.DataFrame(source, strict=False)
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        if hasattr(source, "with_format"):
            return _from_hub(source, where)
        if hasattr(source, "__arrow_c_stream__"):
            return _from_arrow(source)
        if isinstance(source, Sequence) and not isinstance(source, str | bytes):
            return _from_rows(source, where)
    except (PolarsError, TypeError, ValueError, OverflowError, OSError) as error:
        message = f"isn't a table ({one_line(str(error), 100)})"
        raise DataError(message, path=where) from error
    raise DataError(
        f"expected a path, a Hub id, a DataFrame, a Dataset, a list of dicts or texts, or a PairDataset;"
        f" found {type(source).__name__}",
        path=where,
    )


def _from_hub(source: Any, where: str) -> pl.DataFrame:
    if not hasattr(source, "__len__"):
        raise DataError(
            "is streamed; load it with streaming=False, or give a list of its rows",
            path=where,
        )
    frame: pl.DataFrame = source.with_format("polars")[:]
    return frame


def _from_arrow(source: Any) -> pl.DataFrame:
    try:
        return pl.DataFrame(source)
    except (TypeError, ValueError):
        if not hasattr(source, "to_dict"):
            raise
    # Of pandas: values of several kinds in a column become texts, and equal names differ, as in a file.
    objects = _with_none(source)
    objects.columns = column_names(map(str, objects.columns))
    return frame_of(objects.to_dict("records"))


def _with_none(values: Any) -> Any:
    """A table or column of pandas with None for missing values; one of polars as it is."""
    if hasattr(values, "notna"):
        return values.astype(object).where(values.notna(), None)
    return values


def _from_rows(rows: Sequence[Any], where: str) -> pl.DataFrame:
    if not rows:
        raise DataError(
            "is empty; expected a dict for each row, or a text for each row", path=where
        )
    given = (row for row in rows if row is not None)
    has_texts = isinstance(next(given, None), str)
    expected = (str | None) if has_texts else Mapping
    for number, row in enumerate(rows, 1):
        if not isinstance(row, expected):
            raise DataError(
                f"row {number} is {type(row).__name__}; expected a dict for each row, such as"
                " {'text1': …, 'text2': …, 'label': 1}, or a text for each row",
                path=where,
            )
    if has_texts:
        return pl.DataFrame({"text": list(rows)}, schema={"text": pl.String})
    return frame_of(rows)
