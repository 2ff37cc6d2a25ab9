"""Pairs of an index's rows, with what both rows are."""

from __future__ import annotations

import polars as pl


def with_rows(pairs: pl.DataFrame, ones: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """The pairs with the columns of both rows, which have _1 and _2 behind their names."""
    sides = [
        side.rename({name: f"{name}_{number}" for name in side.columns})
        for number, side in enumerate((ones, others), 1)
    ]
    return pl.concat([pairs, *sides], how="horizontal")
