"""Metrics of cosines against labels: correlations, and classification by cosine.

A draw is a resample of the pairs, or all of them: each row of `counts` weights the pairs for one draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.evaluation.tasks import Metrics
from aoe_train.model.similarity import ROUNDING
from pairkit.base.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Num

    Pairs = Num[ndarray, " pair"]
    Accepted = Bool[ndarray, " pair"]  # whether the predicted label is 1
    Counts = Float[ndarray, "draw pair"]
    Ranks = Float[ndarray, "draw pair"]
    Draws = Float[ndarray, " draw"]
    ByThreshold = Float[ndarray, "draw threshold"]

_FOLDS = 10  # of the cross-validation of thresholds


@dataclass(frozen=True)
class PairMetrics(Metrics):
    """Metrics of cosines against labels."""

    cosines: Pairs
    labels: Pairs

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.labels)

    def rarer_label(self) -> int:
        """The number of pairs with the rarer one of the labels 0 and 1."""
        negatives = np.count_nonzero(self.labels == 0)
        return int(min(negatives, np.count_nonzero(self.labels == 1)))

    def pearson(self, counts: Counts) -> Draws:
        """Pearson's coefficient, with weighted pairs."""
        return _weighted_pearson(self.cosines, self.labels.astype(float), counts)

    def spearman(self, counts: Counts) -> Draws:
        """Spearman's coefficient, with weighted pairs: Pearson's of the ranks."""
        cosine_ranks = self._cosine_order.ranks(counts)
        label_ranks = self._label_order.ranks(counts)
        return _weighted_pearson(cosine_ranks, label_ranks, counts)

    @cached_property
    def _cosine_order(self) -> _SortedValues:
        return _SortedValues.of(self.cosines)

    @cached_property
    def _label_order(self) -> _SortedValues:
        return _SortedValues.of(self.labels)


class Correlation(PairMetrics):
    """Agreement of cosines with labels; `spearman` and `pearson`, each in [-1, 1]."""

    def figures(self, counts: Counts) -> dict[str, Draws]:
        """Both coefficients, with weighted pairs."""
        return {"spearman": self.spearman(counts), "pearson": self.pearson(counts)}


def correlation(cosines: Pairs, labels: Pairs, where: str) -> Correlation:
    """The agreement of cosines with labels; raises DataError if they have no correlation."""
    _check_spread(cosines, labels, where)
    return Correlation(cosines, labels)


def _check_spread(cosines: Pairs, labels: Pairs, where: str) -> None:
    """Refuse cosines and labels without a correlation."""
    if len(labels) < 2:
        raise DataError(
            f"{len(labels)} pairs; a correlation needs at least two", path=where
        )
    if not np.isfinite(cosines).all():
        raise DataError("the model's vectors contain NaN or infinity", path=where)
    if np.ptp(labels) <= ROUNDING:
        raise DataError(
            f"all labels are {labels[0]:g}; a correlation needs different labels",
            path=where,
        )
    if np.ptp(cosines) <= ROUNDING:
        raise DataError(
            f"all cosines are {cosines[0]:g}: the model's vectors have collapsed",
            path=where,
        )


class _SortedValues(NamedTuple):
    """The sorted order of values, from which ranks are computed for any weights."""

    # Each pair's value, as its number among the distinct values.
    distinct: Int[ndarray, " pair"]
    order: Int[ndarray, " pair"]
    # The position in the order at which each distinct value starts.
    starts: Int[ndarray, " value"]

    @classmethod
    def of(cls, values: Pairs) -> _SortedValues:
        """Sort values."""
        _, distinct, sizes = np.unique(values, return_inverse=True, return_counts=True)
        order = np.argsort(distinct, kind="stable")
        return cls(distinct, order, np.cumsum(sizes) - sizes)

    def ranks(self, counts: Counts) -> Ranks:
        """The pairs' ranks if each is repeated by its count; ties share their mean rank."""
        ties = np.add.reduceat(counts[:, self.order], self.starts, axis=1)
        last_ranks = np.cumsum(ties, axis=1)
        ranks = last_ranks - (ties - 1) / 2
        return ranks[:, self.distinct]


def _weighted_pearson(x: Pairs | Ranks, y: Pairs | Ranks, counts: Counts) -> Draws:
    """NaN for draws in which all values of a side are equal."""
    x, variance_x = _centred(x, counts)
    y, variance_y = _centred(y, counts)
    covariance = (counts * x * y).sum(axis=1)
    r = _ratio(covariance, np.sqrt(variance_x * variance_y))
    clipped: Draws = np.clip(r, -1, 1)  # rounding may exceed 1
    return clipped


def _centred(values: Pairs | Ranks, counts: Counts) -> tuple[Ranks, Draws]:
    """Differences from the mean, and the sum of their squares; 0 if these are only rounding errors."""
    total = counts.sum(axis=1, keepdims=True)
    differences = values - (counts * values).sum(axis=1, keepdims=True) / total
    squares = (counts * differences * differences).sum(axis=1)
    rounding = (ROUNDING * np.abs(values).max()) ** 2
    return differences, np.where(squares > rounding, squares, 0)


class Thresholds(NamedTuple):
    """The lowest cosines of pairs with predicted label 1, for the best F1 and for the best accuracy."""

    f1: float
    accuracy: float


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
    probabilities: Pairs | None = None

    def figures(self, counts: Counts) -> dict[str, Draws]:
        """All metrics, with weighted pairs; NaN for draws that lack a label."""
        curve = self._curve(counts)
        best_f1, best_accuracy = self._cross_validated
        return {
            "spearman": self.spearman(counts),
            "roc_auc": curve.roc_auc(),
            "average_precision": curve.average_precision(),
            **self._at_thresholds(counts),
            "best_f1": self._f1(counts, best_f1),
            "best_accuracy": self._accuracy(counts, best_accuracy),
            "pearson": self.pearson(counts),
        }

    def roc_auc(self, counts: Counts) -> Draws:
        """The area under the curve; labels between 0 and 1 count as fractions of a pair of label 1."""
        return self._curve(counts).roc_auc()

    def best_thresholds(self) -> Thresholds:
        """The best thresholds, halfway between adjacent cosines; ties choose the highest."""
        cosines = self.cosines[self._order][self._ends]
        above_all = np.nextafter(cosines[0], np.inf)  # accepts no pair
        halfway = (cosines[:-1] + cosines[1:]) / 2
        limits = np.concatenate([[above_all], halfway, [cosines[-1]]])
        curve = self._curve(np.ones((1, self.n)))
        best_f1 = limits.item(curve.f1().argmax())
        best_accuracy = limits.item(curve.accuracy().argmax())
        return Thresholds(best_f1, best_accuracy)

    def _at_thresholds(self, counts: Counts) -> dict[str, Draws]:
        """The metrics at the given thresholds, and these."""
        if self.thresholds is None:
            return {}
        f1, accuracy = self.thresholds
        draws = len(counts)
        return {
            "f1": self._f1(counts, self.cosines >= f1),
            "accuracy": self._accuracy(counts, self.cosines >= accuracy),
            "f1_threshold": np.full(draws, f1),
            "accuracy_threshold": np.full(draws, accuracy),
        }

    def _f1(self, counts: Counts, accepted: Accepted) -> Draws:
        positive = self.labels == 1
        hits = counts @ (accepted & positive)
        return _ratio(2 * hits, counts @ accepted + counts @ positive)

    def _accuracy(self, counts: Counts, accepted: Accepted) -> Draws:
        is_correct = accepted == (self.labels == 1)
        share: Draws = counts @ is_correct / counts.sum(axis=1)
        return share

    def _curve(self, counts: Counts) -> _ThresholdCounts:
        """The pairs accepted at each threshold, with weighted pairs."""
        ordered = counts[:, self._order]
        positive = self.labels[self._order]
        by_label = np.stack([ordered * positive, ordered * (1 - positive)])
        accepted = np.cumsum(by_label, axis=2)[..., self._ends]
        # At the first threshold, none.
        true, false = np.pad(accepted, [(0, 0), (0, 0), (1, 0)])
        return _ThresholdCounts(true, false)

    @cached_property
    def _cross_validated(self) -> tuple[Accepted, Accepted]:
        """The pairs that are accepted at the best thresholds of the other folds, for F1 and accuracy."""
        folds = min(_FOLDS, self.n)
        fold = np.empty(self.n, np.int64)
        fold[np.argsort(self.labels, kind="stable")] = np.arange(self.n) % folds
        by_f1 = np.empty(self.n, bool)
        by_accuracy = np.empty(self.n, bool)
        for number in range(folds):
            held_out = fold == number
            others = Binary(self.cosines[~held_out], self.labels[~held_out])
            limits = others.best_thresholds()
            by_f1[held_out] = self.cosines[held_out] >= limits.f1
            by_accuracy[held_out] = self.cosines[held_out] >= limits.accuracy
        return by_f1, by_accuracy

    @cached_property
    def _order(self) -> Int[ndarray, " pair"]:
        """Indices of pairs, largest cosine first."""
        return np.argsort(-self.cosines, kind="stable")

    @cached_property
    def _ends(self) -> Int[ndarray, " threshold"]:
        """The last index of each distinct cosine in that order; equal cosines share a threshold."""
        steps = np.diff(self.cosines[self._order], append=-np.inf)
        return np.flatnonzero(steps)


@dataclass(frozen=True)
class _ThresholdCounts:
    """True and false positives at each threshold; the first accepts no pair, and the last all."""

    true: ByThreshold
    false: ByThreshold

    def roc_auc(self) -> Draws:
        """By the trapezoidal rule."""
        heights = (self.true[:, 1:] + self.true[:, :-1]) / 2
        area = (np.diff(self.false) * heights).sum(axis=1)
        return _ratio(area, self.true[:, -1] * self.false[:, -1])

    def average_precision(self) -> Draws:
        """The sum of precision times the increase of recall."""
        true = self.true[:, 1:]
        # Undefined above the largest cosine of a draw, where recall is 0.
        precision = np.nan_to_num(_ratio(true, true + self.false[:, 1:]))
        increase = np.diff(self.true)
        return _ratio((increase * precision).sum(axis=1), self.true[:, -1])

    def f1(self) -> ByThreshold:
        """F1 at each threshold."""
        accepted = self.true + self.false
        return _ratio(2 * self.true, accepted + self.true[:, -1:])

    def accuracy(self) -> ByThreshold:
        """Accuracy at each threshold."""
        positives = self.true[:, -1:]
        negatives = self.false[:, -1:]
        correct = self.true + (negatives - self.false)
        share: ByThreshold = correct / (positives + negatives)
        return share


def binary(
    cosines: Pairs,
    labels: Pairs,
    where: str,
    thresholds: Thresholds | None = None,
    probabilities: Pairs | None = None,
) -> Binary:
    """The metrics for labels of 0 and 1; raises DataError for others, and where `correlation` does."""
    invalid = labels[(labels != 0) & (labels != 1)]
    if len(invalid):
        raise DataError(
            f"found the label {invalid[0]:g}, expected only 0 and 1; score graded pairs with `aoe evaluate"
            " --data`, without --suite",
            path=where,
        )
    _check_spread(cosines, labels, where)
    return Binary(cosines, labels, thresholds, probabilities)


def _ratio(part: ndarray, whole: ndarray) -> ndarray:
    """`part` / `whole`; NaN if `whole` is 0."""
    undefined = np.full_like(part, np.nan)
    ratio: ndarray = np.divide(part, whole, out=undefined, where=whole > 0)
    return ratio
