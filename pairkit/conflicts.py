"""The same two texts with different labels, whichever of them comes first."""

from __future__ import annotations

import polars as pl

PAIR = ("low text", "high text")  # columns, as `unordered` makes them

DIFFER = pl.col("label").n_unique().over(PAIR) > 1
"""Whether a row's pair has another label elsewhere."""

AGAINST_FIRST = pl.col("label") != pl.col("label").first().over(PAIR)
"""Whether the first row of a row's pair has another label."""


def unordered(one: str, other: str) -> tuple[pl.Expr, pl.Expr]:
    """The columns `PAIR`, alike for a row and for one with its two texts exchanged."""
    low, high = PAIR
    return pl.min_horizontal(one, other).alias(low), pl.max_horizontal(one, other).alias(high)
