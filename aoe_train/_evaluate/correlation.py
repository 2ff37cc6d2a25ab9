"""How well two rows of numbers agree. A constant row agrees with nothing: an error, never NaN."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aoe_train._evaluate.resample import Judged
from aoe_train._similarity import ROUNDING
from pairkit.errors import DataError


@dataclass(frozen=True)
class Correlation(Judged):
    """Agreement of cosines with labels; `spearman` and `pearson`, each in [-1, 1].

    Attributes:
        cosines: (pair,), not constant.
        labels: (pair,), not constant, on any scale.
    """

    cosines: np.ndarray
    labels: np.ndarray

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.labels)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Both coefficients, pairs weighted by the counts."""
        return {
            "spearman": self.spearman(counts),
            "pearson": _weighted_pearson(self.cosines, self.labels.astype(float), counts),
        }

    def spearman(self, counts: np.ndarray) -> np.ndarray:
        """(draw,), pairs weighted by the counts (draw, pair)."""
        ranks, label_ranks = (_weighted_ranks(order, counts) for order in self._orders)
        return _weighted_pearson(ranks, label_ranks, counts)

    @cached_property
    def _orders(self) -> tuple[_Order, _Order]:
        return _order(self.cosines), _order(self.labels)


def correlation(cosines: np.ndarray, labels: np.ndarray, where: str) -> Correlation:
    """Cosines and labels whose agreement can be told.

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
            f"every cosine is {cosines[0]:g}: the model does not tell texts apart",
            path=where,
        )
    return Correlation(cosines, labels)


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


class _Order(NamedTuple):
    """What ranks of weighted values rest on, whatever the weights.

    Attributes:
        place: int64 (example,), which of the distinct values an example has, smallest first.
        order: int64 (example,), the examples, smallest value first.
        begins: int64 (value,), where in that order each distinct value begins.
    """

    place: np.ndarray
    order: np.ndarray
    begins: np.ndarray


def _order(values: np.ndarray) -> _Order:
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    return _Order(place, order, np.flatnonzero(np.diff(place[order], prepend=-1)))


def _weighted_ranks(values: _Order, counts: np.ndarray) -> np.ndarray:
    """Ranks (draw, example) where example e stands counts[d, e] times; equal values share their mean rank."""
    together = np.add.reduceat(counts[:, values.order], values.begins, axis=1)
    shared: np.ndarray = np.cumsum(together, axis=1) - (together - 1) / 2
    return shared[:, values.place]


def _weighted_pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(draw,); NaN where a draw holds one value only."""
    total = counts.sum(axis=1, keepdims=True)
    x = x - (counts * x).sum(axis=1, keepdims=True) / total
    y = y - (counts * y).sum(axis=1, keepdims=True) / total
    together = (counts * x * y).sum(axis=1)
    apart = np.sqrt((counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1))
    r = np.divide(together, apart, out=np.full(len(counts), np.nan), where=apart > ROUNDING)
    clipped: np.ndarray = np.clip(r, -1, 1)  # rounding may carry a perfect agreement past 1
    return clipped


def _centred(values: np.ndarray) -> np.ndarray:
    exact = values.astype(np.float64)
    exact -= exact.mean()
    return exact


def _constant(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= ROUNDING)
