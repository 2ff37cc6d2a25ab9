"""The negatives of a row: in one column, numbered columns or a list; blank texts are ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.labels import MISSING

NEGATIVES = "negatives"  # a column of lists of texts
ROW = "row of the source"  # a column of row numbers, for messages
FILE = "file of the source"  # a column with the name of each row's file
_NAME = re.compile(
    r"(?:hard[_-]?)?neg(?:ative)?s?(?:[_-](?:text|sentence|passage|document|doc|answer|example)s?)?[_-]?(\d*)",
    re.IGNORECASE,
)
_LIST = (
    r"""(?s)^\s*\[\s*(["'].*["'])?\s*\]\s*$"""  # a list of texts in the syntax of JSON or Python
)


def negative_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns named as negatives, such as `negative_2` or `hard_negatives`, in order of their numbers."""
    numbers = {name: match[1] for name in names if (match := _NAME.fullmatch(name))}
    return tuple(sorted(numbers, key=lambda name: by_number(numbers[name])))


def by_number(digits: str) -> tuple[int, str]:
    """A sort key for digits by number, of any length; the empty text comes first."""
    number = digits.lstrip("0") or digits[-1:]
    return len(number), number


def lists_of_negatives(frame: pl.DataFrame, names: Sequence[str], where: str) -> pl.Series:
    """The negatives of each row, in the order of the columns; may be empty."""
    lists = [_as_lists(frame[name], frame[ROW], where).fill_null([]).alias(name) for name in names]
    text = pl.element()
    return (
        pl.DataFrame(lists)
        .select(
            pl.concat_list(names)
            .list.eval(text.filter(~text.str.contains(MISSING)))
            .alias(NEGATIVES)
        )
        .to_series()
    )


def has_lists(column: pl.Series) -> bool:
    """Whether values are lists, also as texts in the syntax of JSON or Python."""
    filled = column.drop_nulls()
    is_written = column.dtype == pl.String and len(filled) > 0 and filled.str.contains(_LIST).all()
    return is_written or isinstance(column.dtype, pl.List | pl.Array)


def _as_lists(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    if isinstance(column.dtype, pl.Array):
        column = column.cast(pl.List(column.dtype.inner))
    if not isinstance(column.dtype, pl.List):
        if has_lists(column):
            return _parsed(column, rows, where)
        return column.to_frame().select(pl.concat_list(column.name)).to_series()
    inner = column.dtype.inner
    if isinstance(inner, (pl.List, pl.Array, pl.Struct)) or inner == pl.Binary:
        raise DataError(
            f"the lists in {one_line(column.name)} don't hold texts; expected texts or lists of texts",
            path=where,
        )
    return column.cast(pl.List(pl.String))


def _parsed(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    """Lists from their JSON texts."""
    lists: list[list[str | None] | None] = []
    for row, value in zip(rows, column, strict=True):
        try:
            parsed = None if value is None else json.loads(value)
        except (ValueError, RecursionError):
            parsed = value
        if parsed is not None and not (
            isinstance(parsed, list) and all(isinstance(text, str | None) for text in parsed)
        ):
            raise DataError(
                f"{one_line(column.name)} has a list that isn't JSON; write it as JSON, or give the rows as"
                " JSON lines or Parquet",
                path=where,
                row=row,
            )
        lists.append(parsed)
    return pl.Series(column.name, lists, pl.List(pl.String))
