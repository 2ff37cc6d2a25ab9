"""Metrics of cosines against labels: correlations, and classification by cosine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aoe_train.evaluation.resample import Metrics
from aoe_train.model.similarity import ROUNDING
from pairkit.base.errors import DataError

_FOLDS = 10


@dataclass(frozen=True)
class PairMetrics(Metrics):
    """Metrics of cosines against labels."""

    cosines: np.ndarray
    labels: np.ndarray

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.labels)


class Correlation(PairMetrics):
    """Agreement of cosines with labels; `spearman` and `pearson`, each in [-1, 1]."""

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Both coefficients, with weighted pairs."""
        return {"spearman": self.spearman(counts), "pearson": self.pearson(counts)}

    def pearson(self, counts: np.ndarray) -> np.ndarray:
        """(draw,), with pairs weighted by `counts` (draw, pair)."""
        return _weighted_pearson(self.cosines, self.labels.astype(float), counts)

    def spearman(self, counts: np.ndarray) -> np.ndarray:
        """(draw,), with pairs weighted by `counts` (draw, pair)."""
        cosine_ranks, label_ranks = (order.ranks(counts) for order in self._orders)
        return _weighted_pearson(cosine_ranks, label_ranks, counts)

    @cached_property
    def _orders(self) -> tuple[_Order, _Order]:
        return _order(self.cosines), _order(self.labels)


def correlation(cosines: np.ndarray, labels: np.ndarray, where: str) -> Correlation:
    """Refuse cosines and labels that have no correlation."""
    if len(labels) < 2:
        raise DataError(f"{len(labels)} pairs; a correlation needs at least two", path=where)
    if not np.isfinite(cosines).all():
        raise DataError("the model's vectors contain NaN or infinity", path=where)
    if _constant(labels):
        raise DataError(
            f"all labels are {labels[0]:g}; a correlation needs different labels", path=where
        )
    if _constant(cosines):
        raise DataError(
            f"all cosines are {cosines[0]:g}: the model's vectors have collapsed", path=where
        )
    return Correlation(cosines, labels)


class _Order(NamedTuple):
    """The sorted order of values, from which ranks are computed for any weights."""

    dense_rank: np.ndarray
    order: np.ndarray
    starts: np.ndarray  # of each distinct value in the order

    def ranks(self, counts: np.ndarray) -> np.ndarray:
        """Ranks (draw, example) with example e repeated counts[d, e] times; ties share their mean rank."""
        ties = np.add.reduceat(counts[:, self.order], self.starts, axis=1)
        ranks: np.ndarray = np.cumsum(ties, axis=1) - (ties - 1) / 2
        return ranks[:, self.dense_rank]


def _order(values: np.ndarray) -> _Order:
    _, dense_rank = np.unique(values, return_inverse=True)
    order = np.argsort(dense_rank, kind="stable")
    return _Order(dense_rank, order, np.flatnonzero(np.diff(dense_rank[order], prepend=-1)))


def _weighted_pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(draw,); NaN if all values of a draw are equal."""
    total = counts.sum(axis=1, keepdims=True)
    x = x - (counts * x).sum(axis=1, keepdims=True) / total
    y = y - (counts * y).sum(axis=1, keepdims=True) / total
    covariance = (counts * x * y).sum(axis=1)
    scale = np.sqrt((counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1))
    r = np.divide(covariance, scale, out=np.full(len(counts), np.nan), where=scale > ROUNDING)
    clipped: np.ndarray = np.clip(r, -1, 1)  # rounding may exceed 1
    return clipped


def _constant(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= ROUNDING)


class Thresholds(NamedTuple):
    """The lowest cosines of pairs with predicted label 1, for the best F1 and for the best accuracy."""

    f1: float
    accuracy: float


class _Accepted(NamedTuple):
    """Masks of the pairs with predicted label 1, by the thresholds for F1 and for accuracy."""

    f1: np.ndarray
    accuracy: np.ndarray


@dataclass(frozen=True)
class Binary(PairMetrics):
    """Cosines against labels of 0 and 1.

    `spearman` and `pearson` are in [-1, 1], thresholds are cosines, and the others are in [0, 1]:

    * `roc_auc`: the probability that a pair of label 1 has a larger cosine than one of label 0.
    * `average_precision`: precision at each cosine, weighted by the increase of recall.
    * `f1`, `accuracy`: at the thresholds `f1_threshold` and `accuracy_threshold`, which were chosen on other
      pairs; absent without these.
    * `best_f1`, `best_accuracy`: at the best thresholds of these pairs, with ten-fold cross-validation. Folds
      are stratified and don't depend on the cosines. Thresholds stay the same in resamples, so intervals and
      comparisons don't include the uncertainty of their choice.
    """

    thresholds: Thresholds | None = None
    probabilities: np.ndarray | None = None

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """All metrics, with weighted pairs; NaN for draws that lack a label."""
        curve = self._curve(counts)
        return {
            "spearman": self._correlation.spearman(counts),
            "roc_auc": curve.roc_auc(),
            "average_precision": curve.average_precision(),
            **self._at_thresholds(counts),
            "best_f1": self._f1(counts, self._held_out.f1),
            "best_accuracy": self._accuracy(counts, self._held_out.accuracy),
            "pearson": self._correlation.pearson(counts),
        }

    def roc_auc(self, counts: np.ndarray) -> np.ndarray:
        """(draw,); labels between 0 and 1 count as fractions of a pair of label 1."""
        return self._curve(counts).roc_auc()

    def best_thresholds(self) -> Thresholds:
        """The best thresholds, halfway between adjacent cosines; ties choose the highest."""
        cosines = self.cosines[self._order][self._ends]
        limits = np.append((cosines[:-1] + cosines[1:]) / 2, cosines[-1])
        limits = np.concatenate(
            [[np.nextafter(cosines[0], np.inf)], limits]
        )  # the first accepts no pair
        curve = self._curve(np.ones((1, self.n)))
        f1 = limits[curve.f1()[0].argmax()]
        accuracy = limits[curve.accuracy()[0].argmax()]
        return Thresholds(float(f1), float(accuracy))

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
        total = counts @ accepted + counts @ positive  # 2 TP + FP + FN
        return _ratio(2 * (counts @ (accepted & positive)), total)

    def _accuracy(self, counts: np.ndarray, accepted: np.ndarray) -> np.ndarray:
        share: np.ndarray = counts @ (accepted == (self.labels == 1)) / counts.sum(axis=1)
        return share

    def _curve(self, counts: np.ndarray) -> _Curve:
        """The pairs accepted at each threshold, with weighted pairs."""
        ordered = counts[:, self._order]
        positive = self.labels[self._order]
        true = np.cumsum(ordered * positive, axis=1)[:, self._ends]
        false = np.cumsum(ordered * (1 - positive), axis=1)[:, self._ends]
        start = np.zeros((len(counts), 1))
        return _Curve(np.hstack([start, true]), np.hstack([start, false]))

    @cached_property
    def _held_out(self) -> _Accepted:
        """The pairs that are accepted at the thresholds of the other folds."""
        folds = min(_FOLDS, self.n)
        fold = np.empty(self.n, np.int64)
        fold[np.argsort(self.labels, kind="stable")] = np.arange(self.n) % folds
        accepted = np.empty((2, self.n), bool)
        for number in range(folds):
            held_out = fold == number
            limits = Binary(self.cosines[~held_out], self.labels[~held_out]).best_thresholds()
            accepted[:, held_out] = self.cosines[held_out] >= np.array(limits)[:, None]
        return _Accepted(*accepted)

    @cached_property
    def _correlation(self) -> Correlation:
        return Correlation(self.cosines, self.labels)

    @cached_property
    def _order(self) -> np.ndarray:
        """Indices of pairs, largest cosine first."""
        return np.argsort(-self.cosines, kind="stable")

    @cached_property
    def _ends(self) -> np.ndarray:
        """The last index of each distinct cosine in that order; equal cosines share a threshold."""
        return np.flatnonzero(np.diff(self.cosines[self._order], append=-np.inf))


@dataclass(frozen=True)
class _Curve:
    """True and false positives at each threshold, (draw, threshold); the first accepts no pair."""

    true: np.ndarray
    false: np.ndarray

    def roc_auc(self) -> np.ndarray:
        """(draw,), by the trapezoidal rule."""
        area = (np.diff(self.false) * (self.true[:, 1:] + self.true[:, :-1]) / 2).sum(axis=1)
        return _ratio(area, self.true[:, -1] * self.false[:, -1])

    def average_precision(self) -> np.ndarray:
        """(draw,), the sum of precision times the increase of recall."""
        increase = np.diff(self.true)
        accepted = (self.true + self.false)[:, 1:]
        precision = np.divide(
            self.true[:, 1:], accepted, out=np.zeros_like(accepted), where=accepted > 0
        )
        return _ratio((increase * precision).sum(axis=1), self.true[:, -1])

    def f1(self) -> np.ndarray:
        """(draw, threshold)."""
        return _ratio(2 * self.true, self.true + self.false + self.true[:, -1:])

    def accuracy(self) -> np.ndarray:
        """(draw, threshold)."""
        correct = self.true + self.false[:, -1:] - self.false
        share: np.ndarray = correct / (self.true[:, -1:] + self.false[:, -1:])
        return share


def binary(
    cosines: np.ndarray,
    labels: np.ndarray,
    where: str,
    thresholds: Thresholds | None = None,
    probabilities: np.ndarray | None = None,
) -> Binary:
    """Refuse labels other than 0 and 1, and what `correlation` refuses."""
    invalid = labels[(labels != 0) & (labels != 1)]
    if len(invalid):
        raise DataError(
            f"found the label {invalid[0]:g}, expected only 0 and 1; score graded pairs with `aoe evaluate"
            " --data`, without --suite",
            path=where,
        )
    correlation(cosines, labels, where)
    return Binary(cosines, labels, thresholds, probabilities)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """`part` / `whole`; NaN if `whole` is 0."""
    ratio: np.ndarray = np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
    return ratio
