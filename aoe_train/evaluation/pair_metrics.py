"""Metrics of cosines against labels: correlations, and how well cosines separate labels 1 and 0."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aoe_train.evaluation.resample import Metrics
from aoe_train.model.similarity import ROUNDING
from pairkit.app.errors import DataError

_FOLDS = 10


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


class Thresholds(NamedTuple):
    """Cosines from which on a pair is taken to be of label 1, for the best F1 and for the best accuracy."""

    f1: float
    accuracy: float


@dataclass(frozen=True)
class Binary(Metrics):
    """Cosines against labels of 0 and 1.

    `spearman` and `pearson` are in [-1, 1], the thresholds are cosines, all others are in [0, 1]:

    * `roc_auc`: how often the pair of label 1 has the larger cosine of two; a tie counts half.
    * `average_precision`: precision at each cosine, weighted by what recall gains there.
    * `f1`, `accuracy`: at thresholds that were chosen on other pairs, which stand beside them as
      `f1_threshold`, `accuracy_threshold`; all four only where there are such thresholds.
    * `best_f1`, `best_accuracy`: at thresholds that suit these pairs best, cross-validated: each tenth of the
      pairs is judged by the thresholds that suit the other nine, so that no pair chooses its own. The tenths
      have the labels in like shares and are the same whatever the cosines. Thresholds are chosen once, on
      the pairs as they are, and kept in resamples: intervals and comparisons say nothing of how sure the
      choice is.
    """

    cosines: np.ndarray
    labels: np.ndarray
    thresholds: Thresholds | None = None
    likely: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.labels)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """All metrics, pairs weighted by the counts; NaN for draws without one of the labels."""
        curve = self._curve(counts)
        return {
            "spearman": self._correlation.spearman(counts),
            "roc_auc": curve.roc_auc(),
            "average_precision": curve.average_precision(),
            **self._at_thresholds(counts),
            "best_f1": self._f1(counts, self._held_out[0]),
            "best_accuracy": self._accuracy(counts, self._held_out[1]),
            "pearson": self._correlation.figures(counts)["pearson"],
        }

    def roc_auc(self, counts: np.ndarray) -> np.ndarray:
        """(draw,); also of labels between 0 and 1, whose pairs count as so much of one of label 1."""
        return self._curve(counts).roc_auc()

    def best_thresholds(self) -> Thresholds:
        """Halfway between the cosines that the best threshold parts; the highest where several are best."""
        cosines = self.cosines[self._order][self._ends]
        limits = np.append((cosines[:-1] + cosines[1:]) / 2, cosines[-1])
        limits = np.concatenate([[np.nextafter(cosines[0], np.inf)], limits])  # nothing reaches the first
        return Thresholds(*(float(limits[place]) for place in self._best))

    def _at_thresholds(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        if self.thresholds is None:
            return {}
        ones = np.ones(len(counts))
        return {
            "f1": self._f1(counts, self.cosines >= self.thresholds.f1),
            "accuracy": self._accuracy(counts, self.cosines >= self.thresholds.accuracy),
            "f1_threshold": self.thresholds.f1 * ones,
            "accuracy_threshold": self.thresholds.accuracy * ones,
        }

    def _f1(self, counts: np.ndarray, accepted: np.ndarray) -> np.ndarray:
        positive = self.labels == 1
        both = counts @ accepted + counts @ positive  # 2 TP + FP + FN
        return _ratio(2 * (counts @ (accepted & positive)), both)

    def _accuracy(self, counts: np.ndarray, accepted: np.ndarray) -> np.ndarray:
        share: np.ndarray = counts @ (accepted == (self.labels == 1)) / counts.sum(axis=1)
        return share

    def _curve(self, counts: np.ndarray) -> _Curve:
        """What each threshold lets through, were pairs to stand as often as the counts say."""
        ordered = counts[:, self._order]
        positive = self.labels[self._order]
        true, false = (np.cumsum(ordered * side, axis=1)[:, self._ends] for side in (positive, 1 - positive))
        start = np.zeros((len(counts), 1))
        return _Curve(np.hstack([start, true]), np.hstack([start, false]))

    @cached_property
    def _best(self) -> tuple[int, int]:
        """Which of the curve's thresholds give the best F1 and the best accuracy, each pair counting once."""
        curve = self._curve(np.ones((1, self.n)))
        return int(curve.f1()[0].argmax()), int(curve.accuracy()[0].argmax())

    @cached_property
    def _held_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Which pairs are accepted at the thresholds that the other folds choose: for F1 and for accuracy."""
        folds = min(_FOLDS, self.n)
        fold = np.empty(self.n, np.int64)
        fold[np.argsort(self.labels, kind="stable")] = np.arange(self.n) % folds
        accepted = np.empty((2, self.n), bool)
        for number in range(folds):
            own = fold == number
            limits = Binary(self.cosines[~own], self.labels[~own]).best_thresholds()
            accepted[:, own] = self.cosines[own] >= np.array(limits)[:, None]
        return accepted[0], accepted[1]

    @cached_property
    def _correlation(self) -> Correlation:
        return Correlation(self.cosines, self.labels)

    @cached_property
    def _order(self) -> np.ndarray:
        """The pairs, largest cosine first."""
        return np.argsort(-self.cosines, kind="stable")

    @cached_property
    def _ends(self) -> np.ndarray:
        """The last place of each distinct cosine in that order: no threshold parts equal ones."""
        return np.flatnonzero(np.diff(self.cosines[self._order], append=-np.inf))


@dataclass(frozen=True)
class _Curve:
    """Pairs at or above each threshold, (draw, threshold); the first threshold lets none through."""

    true: np.ndarray
    false: np.ndarray

    def roc_auc(self) -> np.ndarray:
        """(draw,), the area under the curve by trapezia."""
        area = (np.diff(self.false) * (self.true[:, 1:] + self.true[:, :-1]) / 2).sum(axis=1)
        return _ratio(area, self.true[:, -1] * self.false[:, -1])

    def average_precision(self) -> np.ndarray:
        """(draw,), the area under the precision by steps of recall."""
        gained = np.diff(self.true)
        through = (self.true + self.false)[:, 1:]
        precision = np.divide(self.true[:, 1:], through, out=np.zeros_like(through), where=through > 0)
        return _ratio((gained * precision).sum(axis=1), self.true[:, -1])

    def f1(self) -> np.ndarray:
        """(draw, threshold)."""
        return _ratio(2 * self.true, self.true + self.false + self.true[:, -1:])

    def accuracy(self) -> np.ndarray:
        """(draw, threshold)."""
        right = self.true + self.false[:, -1:] - self.false
        share: np.ndarray = right / (self.true[:, -1:] + self.false[:, -1:])
        return share


def binary(
    cosines: np.ndarray,
    labels: np.ndarray,
    where: str,
    thresholds: Thresholds | None = None,
    likely: np.ndarray | None = None,
) -> Binary:
    """Cosines and labels of 0 and 1 that can be told apart or not."""
    other = labels[(labels != 0) & (labels != 1)]
    if len(other):
        raise DataError(
            f"found the label {other[0]:g}, expected 0 and 1 only; score graded pairs with `aoe evaluate"
            " --data`, without a suite",
            path=where,
        )
    correlation(cosines, labels, where)
    return Binary(cosines, labels, thresholds, likely)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """`part` / `whole`; NaN where `whole` is 0."""
    found: np.ndarray = np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
    return found
