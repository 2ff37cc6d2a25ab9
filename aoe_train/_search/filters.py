"""Which rows of an index may be found: those with certain values, and those before a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train._search.folder import DIGEST
from aoe_train._search.values import is_value
from pairkit.errors import ConfigError
from pairkit.printable import one_line

if TYPE_CHECKING:
    from jaxtyping import Int


def allowed(
    rows: pl.DataFrame, where: Mapping[str, Any], before: Mapping[str, Any]
) -> Int[np.ndarray, " row"] | None:
    """Ascending places of the rows that may be found; None where nothing is asked for.

    Args:
        rows: Of the index.
        where: Columns with the value that a row has to have.
        before: Columns with a value that a row's has to be smaller than, as times or numbers are.

    Raises:
        ConfigError: No such column, or a value that is none of it.
    """
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
    """Refuse a column that is not there.

    Raises:
        ConfigError: It isn't.
    """
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
