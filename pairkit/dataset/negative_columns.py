"""The negatives of a row: in one column, numbered columns or a list; missing texts are ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.frames import MIXED
from pairkit.dataset.labels import MISSING

NEGATIVES = "negatives"  # a column of lists of texts
ROW = "row of the source"  # a column of row numbers, for messages
FILE = "file of the source"  # a column with the name of each row's file
_NAME = re.compile(
    r"(?:hard[_-]?)?neg(?:ative)?s?(?:[_-](?:text|sentence|passage|document|doc|answer|example)s?)?[_-]?(\d{0,9})",
    re.IGNORECASE,
)
# A list of texts in the syntax of JSON or Python.
_LIST = r"""(?s)^\s*\[\s*(["'].*["'])?\s*\]\s*$"""


def negative_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns named as negatives, such as `negative_2` or `hard_negatives`, in order of their numbers."""
    numbers = {}
    for name in names:
        if match := _NAME.fullmatch(name):
            numbers[name] = int(match[1] or -1)
    return tuple(sorted(numbers, key=numbers.__getitem__))


def lists_of_texts(frame: pl.DataFrame, names: Sequence[str], where: str) -> pl.Series:
    """The texts of each row in the order of the columns, without blank ones and placeholders such as `NaN`."""
    columns = {}
    for name in names:
        columns[name] = _as_lists(frame[name], frame[ROW], where).fill_null([])
    lists = pl.DataFrame(columns)
    is_text = ~pl.element().str.contains(MISSING)
    texts = pl.concat_list(names).list.eval(pl.element().filter(is_text))
    return lists.select(texts).to_series()


def has_lists(column: pl.Series) -> bool:
    """Whether values are lists, also as texts in the syntax of JSON or Python, or some of them are."""
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List | pl.Array) or column.dtype == MIXED
    filled = column.drop_nulls()
    return len(filled) > 0 and filled.str.contains(_LIST).all()


def _as_lists(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    """A column as lists of texts; a single text becomes a list of one."""
    if not has_lists(column):
        return column.to_frame().select(pl.concat_list(column.name)).to_series()
    if column.dtype == pl.String:
        return _parse_json_lists(column, rows, where)
    if column.dtype == MIXED:
        cells = column.struct.unnest()
        lists = _parse_json_lists(cells["json"].alias(column.name), rows, where)
        is_text = pl.col("text").is_not_null()
        either = pl.when(is_text).then(pl.concat_list("text")).otherwise(lists)
        return cells.select(either).to_series()
    inner = column.dtype.inner  # type: ignore[attr-defined]
    if inner.is_nested() or inner == pl.Binary:
        raise DataError(
            f"the lists in {one_line(column.name)} don't hold texts; expected texts or lists of texts",
            path=where,
        )
    return column.cast(pl.List(pl.String))


def _parse_json_lists(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    """Parse texts of JSON lists; raises DataError for the first one that isn't JSON."""
    lists = []
    for row, value in zip(rows, column, strict=True):
        try:
            parsed = json.loads(value or "[]")
            has_texts = isinstance(parsed, list)
            has_texts &= all(isinstance(text, str | None) for text in parsed)
        except (ValueError, RecursionError):
            has_texts = False
        if not has_texts:
            raise DataError(
                f"{one_line(column.name)} has a value that isn't a JSON list of texts; write it as JSON, or"
                " give the rows as JSON lines or Parquet",
                path=where,
                row=row,
            )
        lists.append(parsed)
    return pl.Series(column.name, lists, pl.List(pl.String))
