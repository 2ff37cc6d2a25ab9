"""How well two rows of numbers agree. A constant row agrees with nothing: an error, never NaN."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aoe_train.evaluate.vectors import ROUNDING
from pairkit.errors import DataError


@dataclass(frozen=True, slots=True)
class Correlation:
    """Agreement of `n` cosines with `n` labels, each figure in [-1, 1]."""

    spearman: float
    pearson: float
    n: int


def correlation(cosines: np.ndarray, labels: np.ndarray, where: str) -> Correlation:
    """Both coefficients at once.

    Args:
        cosines: (pair,)
        labels: (pair,), on any scale.
        where: The task, for messages.

    Raises:
        DataError: Fewer than two pairs, a value that is no number, or only one value on either side.
    """
    if len(labels) < 2:
        raise DataError(f"{len(labels)} pairs; a correlation needs two or more", path=where)
    if not np.isfinite(cosines).all():
        raise DataError("the model gives vectors that are not numbers (NaN, infinity)", path=where)
    if _constant(labels):
        raise DataError(f"every label is {labels[0]:g}; a correlation needs labels that differ", path=where)
    if _constant(cosines):
        raise DataError(
            f"every cosine is {cosines[0]:g}: the model tells no text from another, so nothing correlates",
            path=where,
        )
    return Correlation(spearman(cosines, labels), pearson(cosines, labels), len(labels))


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's r of two rows of numbers, neither of them constant."""
    x, y = _centred(x), _centred(y)
    r = x @ y / np.sqrt((x @ x) * (y @ y))
    return float(np.clip(r, -1, 1))  # rounding may carry a perfect agreement past 1


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rho: Pearson's r of the ranks, where equal values share the mean of their ranks."""
    return pearson(average_ranks(x), average_ranks(y))


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 as float64; equal values share the mean of the ranks they take up."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: np.ndarray = np.cumsum(counts) - (counts - 1) / 2
    return shared[place]


def _centred(values: np.ndarray) -> np.ndarray:
    exact = values.astype(np.float64)
    exact -= exact.mean()
    return exact


def _constant(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= ROUNDING)
