"""A choice of pairs to look at: some of every kind, decided by the seed and nothing else."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import polars as pl

from pairkit._report.rows import Rows
from pairkit.keyed import keyed_hash
from pairkit.strata import in_turns

_OF_EACH_SIDE = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """Pairs of one side and kind, as rows by column name."""

    side: int
    kind: str
    pairs: list[dict[str, Any]]


def choose_samples(rows: Rows, seed: int) -> list[Sample]:
    """About ten positives and ten negatives, spread over the kinds of either; positives first."""
    return [sample for side in (1, 0) for sample in _of_side(rows.side(side), side, seed)]


def _of_side(part: pl.DataFrame, side: int, seed: int) -> list[Sample]:
    sizes = part.group_by("kind").len().sort("len", "kind", descending=[True, False])
    quotas = in_turns(dict(sizes.iter_rows()), max(_OF_EACH_SIDE, sizes.height))  # some of every kind
    return [
        Sample(side, kind, _chosen(part.filter(pl.col("kind") == kind), wanted, seed))
        for kind, wanted in quotas.items()
    ]


def _chosen(part: pl.DataFrame, wanted: int, seed: int) -> list[dict[str, Any]]:
    texts = part.select("text1", "text2").iter_rows()
    keys = [(keyed_hash(seed, "sample", *pair), place) for place, pair in enumerate(texts)]
    return [part.row(place, named=True) for _, place in heapq.nsmallest(wanted, keys)]
