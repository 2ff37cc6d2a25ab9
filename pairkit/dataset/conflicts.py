"""Pairs that occur several times, in either order, and whether their labels conflict."""

from __future__ import annotations

import polars as pl

from pairkit.dataset.labels import SCORE_MAX

PAIR = ("low text", "high text")  # columns, as `unordered` makes them

# Labels that are closer than this share of the scale agree: a fifth, but for rounding.
_GRADE = 0.199


def label_scale(labels: pl.Series) -> float:
    """The highest label of the scale of these labels."""
    return SCORE_MAX if (labels > 1).any() else 1.0


def labels_differ(scale: float) -> pl.Expr:
    """Whether a row's pair has labels that are a fifth of the scale or more apart."""
    label = pl.col("label")
    return (label.max() - label.min()).over(PAIR) > _GRADE * scale


def differs_from_first(scale: float) -> pl.Expr:
    """Whether a row's label differs from that of the first row of its pair.

    The least difference is that of `labels_differ`.
    """
    label = pl.col("label")
    first = label.first().over(PAIR)
    return (label - first).abs() > _GRADE * scale


def unordered(first: str | pl.Expr, second: str | pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The columns `PAIR`, which are equal for a row and its reverse."""
    low = pl.min_horizontal(first, second)
    high = pl.max_horizontal(first, second)
    low_name, high_name = PAIR
    return low.alias(low_name), high.alias(high_name)
