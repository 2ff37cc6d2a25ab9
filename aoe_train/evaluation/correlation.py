"""Spearman and Pearson correlations of cosines with labels. A constant row is an error, never NaN."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aoe_train.evaluation.resample import Metrics
from aoe_train.model.similarity import ROUNDING
from pairkit.app.errors import DataError


@dataclass(frozen=True)
class Correlation(Metrics):
    """Agreement of cosines with labels; `spearman` and `pearson`, each in [-1, 1]."""

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
    """Cosines and labels, refused if no correlation is defined for them."""
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


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rho of two rows of numbers, neither of them constant."""
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


class _Order(NamedTuple):
    """The sorted order of values, from which ranks follow for any weights."""

    place: np.ndarray
    order: np.ndarray
    begins: np.ndarray


def _order(values: np.ndarray) -> _Order:
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    return _Order(place, order, np.flatnonzero(np.diff(place[order], prepend=-1)))


def _weighted_ranks(values: _Order, counts: np.ndarray) -> np.ndarray:
    """Ranks (draw, example) with example e repeated counts[d, e] times; ties share their mean rank."""
    together = np.add.reduceat(counts[:, values.order], values.begins, axis=1)
    shared: np.ndarray = np.cumsum(together, axis=1) - (together - 1) / 2
    return shared[:, values.place]


def _weighted_pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(draw,); NaN if a draw holds one value only."""
    total = counts.sum(axis=1, keepdims=True)
    x = x - (counts * x).sum(axis=1, keepdims=True) / total
    y = y - (counts * y).sum(axis=1, keepdims=True) / total
    together = (counts * x * y).sum(axis=1)
    apart = np.sqrt((counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1))
    r = np.divide(together, apart, out=np.full(len(counts), np.nan), where=apart > ROUNDING)
    clipped: np.ndarray = np.clip(r, -1, 1)  # rounding may carry a perfect agreement past 1
    return clipped


def _constant(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= ROUNDING)
