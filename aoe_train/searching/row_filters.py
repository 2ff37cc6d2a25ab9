"""Filters of the rows of an index, by the values of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.dataset.labels import MISSING

if TYPE_CHECKING:
    from jaxtyping import Int

_DAY_FIRST = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2}"  # 31.05.2015
_BEGINNING = "0000-01-01"  # completes a year or month
_BOOLEANS = ("false", "true")


def allowed(
    rows: pl.DataFrame,
    where: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
) -> Int[np.ndarray, " row"] | None:
    """Ascending numbers of the rows that pass the filters; None without filters."""
    if not where and not before:
        return None
    keep = pl.repeat(value=True, n=rows.height, eager=True)
    for name, value in (where or {}).items():
        column = _filter_column(rows, "where", name)
        keep &= _equal(column, value).fill_null(value=False)
    for name, value in (before or {}).items():
        column, limit = _comparable(sortable(rows, name), _as_text(value))
        is_before = column < limit
        keep &= is_before.fill_null(value=False)
    return keep.arg_true().to_numpy().astype(np.int64)


def _filter_column(rows: pl.DataFrame, option: str, name: str) -> pl.Series:
    """A column to filter by, with times in UTC without a zone; raises ConfigError if it is missing."""
    if name not in rows.columns:
        names = one_line(", ".join(rows.columns))
        raise ConfigError(f"{option} {name}: no such column; choose from {names}")
    column = rows[name]
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone:
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column


def sortable(rows: pl.DataFrame, name: str) -> pl.Series:
    """A column by which rows are ordered, as numbers if all texts that aren't missing are, as in CSV.

    Raises ConfigError for lists, and for dates that don't sort as text.
    """
    column = _filter_column(rows, "before", name)
    if column.dtype.is_nested():
        raise ConfigError(
            f"before {name}: contains lists; choose a column of numbers, times or texts"
        )
    if column.dtype != pl.String:
        return column
    is_missing = column.str.contains(MISSING).fill_null(value=False)
    column = column.set(is_missing, None)
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() == column.null_count():
        return numbers
    dates = column.filter(column.str.contains(_DAY_FIRST))
    if dates.len():
        raise ConfigError(
            f"before {name}: dates such as {one_line(dates[0], 30)} don't sort as text; write them as"
            " 2015-05-31"
        )
    return column


def _equal(column: pl.Series, value: Any) -> pl.Series:
    """Compare with `value`: lists by any item, numbers and times by value, other types as text."""
    if isinstance(column.dtype, pl.List):
        return column.cast(pl.List(pl.String)).list.contains(_as_text(value))
    column, wanted = _comparable(column, _as_text(value))
    equal: pl.Series = column == wanted
    return equal


def _comparable(column: pl.Series, text: str) -> tuple[pl.Series, Any]:
    """A column and a value, both as numbers, times or texts; raises ConfigError if the value isn't one."""
    expected = "a number"
    try:
        if column.dtype.is_numeric():
            number = float(text)
            is_integer = text.lstrip("-").isdecimal() and abs(number) < 2**63
            return column, int(text) if is_integer else number
        if column.dtype == pl.Boolean:
            expected = "true or false"
            return column.cast(pl.Int8), _BOOLEANS.index(text.lower())
        if column.dtype == pl.Time:
            expected = "a time of day such as 09:30"
            return column, time.fromisoformat(text)
        if column.dtype not in (pl.Date, pl.Datetime):
            return column.cast(pl.String), text
        expected = "a time such as 2015, 2015-05-31 or 2015-05-31T09:30"
        instant = datetime.fromisoformat(text + _BEGINNING[len(text) :])
        if instant.tzinfo is not None:
            instant = instant.astimezone(UTC).replace(tzinfo=None)
        return column.cast(pl.Datetime("us")), instant
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{column.name}={one_line(text, 100)}: expected {expected}"
        ) from error


def _as_text(value: Any) -> str:
    """A value as texts and JSON write it."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
