"""The measures, by their definitions; None where one is undefined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations


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


def wilson(right: int, n: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a share; unlike the normal approximation sound for small and extreme ones."""
    if not n:
        return None
    share, square = right / n, _Z * _Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def cohen_kappa(one: Sequence[bool], other: Sequence[bool]) -> float | None:
    """Cohen's kappa: agreement beyond chance, 1 at most; undefined where both know one and the same class."""
    n = len(one)
    if not n:
        return None
    seen = sum(a == b for a, b in zip(one, other, strict=True)) / n
    p, q = sum(one) / n, sum(other) / n
    chance = p * q + (1 - p) * (1 - q)
    return None if chance >= 1 else (seen - chance) / (1 - chance)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; undefined where either is constant."""
    frame = pl.DataFrame({"one": one, "other": other}, schema={"one": pl.Float64, "other": pl.Float64})
    if frame["one"].n_unique() < 2 or frame["other"].n_unique() < 2:
        return None
    ranks = frame.select(pl.all().rank("average"))
    return float(ranks.select(pl.corr("one", "other")).item())


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
