"""The report's counts: by split (the papers' Table 7), source and kind, with mean lengths and overlaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from pairkit._report.overlap import ORDERS
from pairkit._report.rows import SIDE, Rows
from pairkit.gap import gap_auc
from pairkit.length import LONG_TOKENS

EVERYTHING = "all"


def count_splits(rows: Rows) -> dict[str, dict[str, Any]]:
    """Pairs, distinct texts, tokens and how far the gap in time gives the side away, by split and for all."""
    parts = {split: rows.frame.filter(pl.col("split") == split) for split in rows.splits}
    return {split: _count(part, rows) for split, part in (parts | {EVERYTHING: rows.frame}).items()}


def count_sources(rows: Rows) -> dict[str, dict[str, int]]:
    """Pairs of either side by source, the largest first; empty if the dataset doesn't tell sources."""
    if rows.named_by is None:
        return {}
    grouped = rows.frame.group_by(pl.col("source").fill_null("unknown")).agg(
        (pl.col(SIDE) == 0).sum().alias("low"), (pl.col(SIDE) == 1).sum().alias("high"), pl.len()
    )
    ordered = grouped.sort("len", "source", descending=[True, False])
    return {name: _sides(rows, low, high) for name, low, high, _ in ordered.iter_rows()}


def count_kinds(rows: Rows, side: int) -> dict[str, dict[str, Any]]:
    """Pairs of one side by kind, the most frequent first, with each kind's mean overlaps."""
    part = rows.side(side)
    grouped = part.group_by("kind").agg(pl.len()).sort("len", "kind", descending=[True, False])
    return {
        kind: {"pairs": pairs, "overlap": mean_overlaps(part.filter(pl.col("kind") == kind))}
        for kind, pairs in grouped.iter_rows()
    }


def count_overlaps(rows: Rows) -> dict[str, list[float | None]]:
    """Mean overlap of 1-, 2- and 3-grams by side, in per cent."""
    return {key: mean_overlaps(rows.side(side)) for side, key in enumerate(rows.keys)}


def mean_overlaps(part: pl.DataFrame) -> list[float | None]:
    """The mean of each order over the pairs that have one; None if none has."""
    means = (part[f"overlap{order}"].mean() for order in ORDERS)
    return [round(mean, 2) if isinstance(mean, float) else None for mean in means]


def text_tokens(part: pl.DataFrame) -> pl.Series:
    """Tokens of both texts of every pair."""
    return pl.concat([part["tokens1"], part["tokens2"].alias("tokens1")])


def distinct_texts(frames: Iterable[pl.Series]) -> int:
    """How many different texts there are."""
    return pl.concat(series.alias("text") for series in frames).n_unique()


def long_share(tokens: pl.Series) -> float:
    """Share of texts over 512 tokens, in [0, 1]; 0 for no texts."""
    return float((tokens > LONG_TOKENS).sum()) / max(1, len(tokens))


def _count(part: pl.DataFrame, rows: Rows) -> dict[str, Any]:
    high = int(part[SIDE].sum())
    tokens = text_tokens(part)
    return {
        **_sides(rows, part.height - high, high),
        "total": part.height,
        "texts": distinct_texts([part["text1"], part["text2"]]),
        "median_tokens": round(float(np.median(tokens.to_numpy()))),
        "long_share": round(long_share(tokens), 4),
        "gap_auc": gap_auc(part, SIDE),
    }


def _sides(rows: Rows, low: int, high: int) -> dict[str, int]:
    return {rows.keys[1]: high, rows.keys[0]: low}
