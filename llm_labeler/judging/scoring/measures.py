"""The measures, by their definitions; None where one is undefined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a prediction and the gold label coincide, seen from one class."""

    right: int  # predicted and true
    false: int  # predicted, not true
    missed: int  # true, not predicted

    @property
    def precision(self) -> float | None:
        """Share of what was predicted that is true."""
        return _ratio(self.right, self.right + self.false)

    @property
    def recall(self) -> float | None:
        """Share of what is true that was predicted."""
        return _ratio(self.right, self.right + self.missed)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.right, 2 * self.right + self.false + self.missed)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; undefined where either is constant."""
    frame = pl.DataFrame({"one": one, "other": other}, schema={"one": pl.Float64, "other": pl.Float64})
    if frame["one"].n_unique() < 2 or frame["other"].n_unique() < 2:
        return None
    ranks = frame.select(pl.all().rank("average"))
    return float(ranks.select(pl.corr("one", "other")).item())


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
