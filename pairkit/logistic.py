"""Logistic regression of yes or no on a few numbers (Platt, 1999), and how well its probabilities tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_RIDGE = 1e-3  # so that numbers which part the two kinds wholly have an answer, too
_STEPS, _ENOUGH = 100, 1e-9
_STEEPEST = 60  # beyond it a float's exponential is 0 or overflows
TENTHS = 10
_Array = NDArray[np.float64]


class Tenth(NamedTuple):
    """Cases of like probability.

    Attributes:
        low: The lowest probability; it is a tenth wide.
        cases: How many.
        told: Their mean probability.
        seen: The share that is true.
    """

    low: float
    cases: int
    told: float
    seen: float


def fit(numbers: NDArray[np.floating], truth: NDArray[np.floating]) -> _Array:
    """The weights of 1 and of each number, by Newton's method with a little ridge.

    Args:
        numbers: (case, number).
        truth: (case,), 1 or 0, of both kinds.
    """
    rows = _with_one(numbers)
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        told = logistic(rows @ weights)
        slope = rows.T @ (told - truth) + _RIDGE * weights
        bend = (rows * (told * (1 - told))[:, None]).T @ rows + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights = weights - step
        if np.abs(step).max() < _ENOUGH:
            break
    return weights


def probability(numbers: NDArray[np.floating], weights: NDArray[np.floating]) -> _Array:
    """How probable each case is, (case,).

    Args:
        numbers: (case, number).
        weights: Of 1 and of each number.
    """
    return logistic(_with_one(numbers) @ weights)


def logistic(values: NDArray[np.floating]) -> _Array:
    """From log odds to probabilities."""
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -_STEEPEST, _STEEPEST))), np.float64)


def reliability(told: NDArray[np.floating], truth: NDArray[np.floating]) -> tuple[float, list[Tenth]]:
    """Brier's score (the mean square of the difference), and told and seen by tenths that have cases."""
    tenths = np.minimum((told * TENTHS).astype(int), TENTHS - 1)
    found = [
        Tenth(tenth / TENTHS, int(own.sum()), float(told[own].mean()), float(truth[own].mean()))
        for tenth in range(TENTHS)
        if (own := tenths == tenth).any()
    ]
    return float(((told - truth) ** 2).mean()) if len(told) else 0.0, found


def _with_one(numbers: NDArray[np.floating]) -> _Array:
    return np.column_stack([np.ones(len(numbers)), numbers.astype(np.float64)])
