"""Which rows of an index may be found: those with certain values, and those before a value."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train.searching.folder import DIGEST
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    from jaxtyping import Int


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


def allowed(
    rows: pl.DataFrame, where: Mapping[str, Any], before: Mapping[str, Any]
) -> Int[np.ndarray, " row"] | None:
    """Ascending places of the rows that may be found; None where nothing is asked for."""
    if not where and not before:
        return None
    keep = pl.lit(value=True)
    for name, value in where.items():
        check_column(rows, "where", name)
        keep = keep & is_value(name, rows.schema[name], value)
    for name, value in before.items():
        check_column(rows, "before", name)
        keep = keep & (pl.col(name) < _of_column(rows, name, value))
    return rows.select(keep.fill_null(value=False).arg_true()).to_series().to_numpy().astype(np.int64)


def check_column(rows: pl.DataFrame, what: str, name: str) -> None:
    """Refuse a column that is not there."""
    names = [known for known in rows.columns if known != DIGEST]
    if name not in names:
        raise ConfigError(f"{what} {name}: no such column; there are {one_line(', '.join(names))}")


def _of_column(rows: pl.DataFrame, name: str, value: Any) -> pl.Expr:
    """A value as the column has them, whether it came as a word or not."""
    kind = rows.schema[name]
    try:
        return pl.lit(pl.Series([value]).cast(kind)).first()
    except (pl.exceptions.PolarsError, TypeError, OverflowError, UnicodeError) as error:
        raise ConfigError(
            f"before {name}={one_line(str(value), 100)}: no value of this column, which holds {kind}"
        ) from error
