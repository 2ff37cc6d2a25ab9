"""Cosine densities by gold score: the numbers of ACL Fig. 4 and 5, arXiv Fig. 6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aoe_train._evaluate.correlation import spearman
from aoe_train._figures.density import Curve, density
from aoe_train._figures.pairs import Gold

FEW = 8  # pairs: below it, marks say more than a density
_MARGIN = 0.05

_MOST = 6  # groups: as many as whole scores from 0 to 5, the scale of STS
_WIDE = 3.0  # a scale this wide has whole scores enough


@dataclass(frozen=True)
class GoldScores:
    """How gold scores are distributed.

    Attributes:
        levels: (group,), the gold score that stands for each group of pairs.
        pairs: (group,), pairs nearest to it.
        graded: Whether scores lie between the levels too; else `density` is None.
    """

    levels: np.ndarray
    pairs: np.ndarray
    graded: bool
    density: Curve | None


@dataclass(frozen=True)
class GroupCosines:
    """The cosines of the pairs of one gold score; few of them have no density and are given themselves."""

    gold: float
    pairs: int
    saturated: float | None
    median: float | None
    density: Curve | None
    cosines: np.ndarray | None


@dataclass(frozen=True)
class CosineDensities:
    """What a model's panel shows.

    Attributes:
        spearman: Of cosines and gold scores, in [-1, 1].
        saturated: Share of all pairs with |cosine| above the limit.
    """

    spearman: float
    saturated: float
    density: Curve
    groups: list[GroupCosines]


def gold_scores(gold: Gold) -> GoldScores:
    """The distribution of gold scores (ACL Fig. 5)."""
    at = levels(gold.labels)
    counts = np.bincount(nearest(gold.labels, at), minlength=len(at))
    graded = len(np.unique(gold.labels)) > len(at)
    ends = (float(at[0]), float(at[-1]))
    return GoldScores(at, counts, graded, density(gold.labels, ends, bounds=ends) if graded else None)


def cosine_axis(cosines: list[np.ndarray]) -> tuple[float, float]:
    """From below the least cosine of all models, in tenths, to 1."""
    least = min(float(values.min()) for values in cosines)
    return max(-1.0, np.floor(10 * (least - _MARGIN)) / 10), 1.0


def cosine_densities(
    cosines: np.ndarray,
    labels: np.ndarray,
    scores: GoldScores,
    axis: tuple[float, float],
    *,
    saturation: float,
) -> CosineDensities:
    """How a model's cosines are distributed, over all pairs and by gold score (ACL Fig. 4).

    Args:
        cosines: float64 (pair,), the model's.
        labels: float64 (pair,)
        scores: The groups.
        axis: Where the curves begin and end.
        saturation: |cosine| above which the cosine is said to be saturated.
    """
    group = nearest(labels, scores.levels)
    return CosineDensities(
        spearman(cosines, labels),
        _saturated(cosines, saturation),
        density(cosines, axis, bounds=(-1, 1)),
        [
            _group(float(level), cosines[group == number], axis, saturation)
            for number, level in enumerate(scores.levels)
        ],
    )


def _group(gold: float, cosines: np.ndarray, axis: tuple[float, float], saturation: float) -> GroupCosines:
    if not len(cosines):
        return GroupCosines(gold, 0, None, None, None, None)
    median, saturated = float(np.median(cosines)), _saturated(cosines, saturation)
    if len(cosines) < FEW:
        return GroupCosines(gold, len(cosines), saturated, median, None, cosines)
    curve = density(cosines, axis, bounds=(-1, 1))
    return GroupCosines(gold, len(cosines), saturated, median, curve, None)


def _saturated(cosines: np.ndarray, limit: float) -> float:
    return float((np.abs(cosines) > limit).mean())


def levels(labels: np.ndarray) -> np.ndarray:
    """The gold scores to group by, ascending.

    The labels themselves where they are few (0 and 1 of binary data), else whole scores (the six groups of
    arXiv Fig. 6), else six evenly spaced scores.

    Args:
        labels: (pair,), with two or more different values.
    """
    distinct: np.ndarray = np.unique(labels)
    if len(distinct) <= _MOST:
        return distinct
    low, high = float(distinct[0]), float(distinct[-1])
    if high - low >= _WIDE:
        return np.arange(np.floor(low), np.ceil(high) + 1)
    return np.linspace(low, high, _MOST)


def nearest(labels: np.ndarray, to: np.ndarray) -> np.ndarray:
    """int64 (pair,): the index of the level nearest to each label; halfway goes to the higher one."""
    return np.searchsorted((to[1:] + to[:-1]) / 2, labels, side="right")
