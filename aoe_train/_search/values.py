"""Rows that have a certain value in a column, as a person writes it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

_LONGEST = 40  # digits before the point of a number that a column may hold


def is_value(column: str, dtype: pl.DataType, value: Any) -> pl.Expr:
    """Whether a row has `value` in a column: 3 and 3.0 are one number, and all else is compared as text."""
    given = str(value).lower() if isinstance(value, bool) else str(value)
    if not dtype.is_numeric():
        return pl.col(column).cast(pl.String) == given
    number = _number(given)
    if number is None:
        return pl.lit(value=False)
    if dtype.is_float():
        return pl.col(column) == float(number)
    # As text, since a number may be larger than its column's.
    written = _digits(number, dtype.scale if isinstance(dtype, pl.Decimal) else 0)
    return pl.lit(value=False) if written is None else pl.col(column).cast(pl.String) == written


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return None if number.is_snan() else number  # which no float is


def _digits(number: Decimal, scale: int) -> str | None:
    """A number as a column with so many digits behind the point writes it; None where it can't hold it."""
    if not number.is_finite() or number.adjusted() > _LONGEST:
        return None
    written = f"{number:.{scale}f}"
    return written if Decimal(written) == number else None
