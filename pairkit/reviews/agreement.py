"""Cohen's kappa, Krippendorff's alpha and weighted shares (Wilson, Kish), with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scale = Literal["nominal", "interval"]
Interval = tuple[float, float]
_Array = NDArray[np.float64]

# Half the width of the central 95 % of a normal distribution, in standard deviations.
_Z = 1.959963984540054
_RESAMPLES = 2000
_SEED = 42
_TAILS = (2.5, 97.5)  # percentiles

# What is subtracted from the number of answers: alpha corrects for small samples.
_KAPPA = 0
_ALPHA = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval; either is None if undefined."""

    value: float | None
    interval: Interval | None
    n: int


def wilson(right: float, n: float) -> Interval | None:
    """Wilson's 95 % interval of a share, which also holds for small samples and extreme shares."""
    if not n:
        return None
    share = right / n
    square = _Z * _Z
    scale = 1 + square / n
    centre = (share + square / (2 * n)) / scale
    variance = share * (1 - share) / n
    half = _Z / scale * math.sqrt(variance + square / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def weighted_share(right: Sequence[bool], weights: Sequence[float]) -> Figure:
    """A weighted share with Wilson's interval at Kish's effective sample size."""
    if not right:
        return Figure(None, None, 0)
    weight = np.asarray(weights, np.float64)
    total = weight.sum()
    share = float(weight @ np.asarray(right, np.float64) / total)
    effective_size = float(total**2 / (weight @ weight))
    return Figure(share, wilson(share * effective_size, effective_size), len(right))


def cohen_kappa(
    judge1: Sequence[float], judge2: Sequence[float], scale: Scale = "nominal"
) -> Figure:
    """Agreement of two judges beyond chance (at most 1); undefined if all answers are equal."""
    values = np.unique([*judge1, *judge2])
    classes = len(values)
    answers1 = np.searchsorted(values, judge1)
    answers2 = np.searchsorted(values, judge2)
    pairs = np.arange(len(judge1))
    tables = np.zeros((len(pairs), classes, classes))
    tables[pairs, answers1, answers2] = 1
    return _agreement_figure(tables, _distances(values, scale), _KAPPA)


def krippendorff_alpha(
    units: Sequence[Sequence[float]], scale: Scale = "nominal"
) -> Figure:
    """Agreement of any number of judges beyond chance (at most 1); undefined if all answers are equal."""
    paired = [unit for unit in units if len(unit) > 1]
    values = np.unique([value for unit in paired for value in unit])
    classes = len(values)
    tables = np.zeros((len(paired), classes, classes))
    for table, unit in zip(tables, paired, strict=True):
        answers = np.searchsorted(values, unit)
        counts = np.bincount(answers, minlength=classes)
        with_itself = np.diag(counts)
        table += np.outer(counts, counts) - with_itself
        table /= len(unit) - 1
    return _agreement_figure(tables, _distances(values, scale), _ALPHA)


def nominal_alpha(
    tally: NDArray[np.integer], counts: NDArray[np.integer]
) -> float | None:
    """Krippendorff's alpha of vote counts (unit, class), with each unit weighted by `counts`."""
    judges = tally.sum(axis=1)
    is_paired = judges > 1
    votes = tally[is_paired].astype(np.float64)
    weights = counts[is_paired] / (judges[is_paired] - 1)
    with_itself = np.diag(weights @ votes)
    table = (votes.T * weights) @ votes - with_itself
    alpha = float(_beyond_chance(table, 1 - np.eye(len(table)), _ALPHA))
    return None if math.isnan(alpha) else alpha


def _beyond_chance(tables: _Array, distances: _Array, correction: int) -> _Array:
    """1 - observed / expected disagreement of tables `(…, value, value)`; NaN if none is expected."""
    axes = (-2, -1)
    row_sums = tables.sum(-1, keepdims=True)
    column_sums = tables.sum(-2, keepdims=True)
    answers = row_sums.sum(axes)
    expected = (row_sums * column_sums * distances).sum(axes)
    observed = (tables * distances).sum(axes) * (answers - correction)
    ratio: _Array = observed / np.where(expected > 0, expected, np.nan)
    return 1 - ratio


def _distances(values: ArrayLike, scale: Scale) -> _Array:
    column = np.asarray(values, np.float64)[:, None]
    distances = (column - column.T) ** 2
    if scale == "nominal":
        distances = (distances > 0).astype(np.float64)
    return distances


def _agreement_figure(tables: _Array, distances: _Array, correction: int) -> Figure:
    """Agreement by the sum of all tables, with an interval."""
    n = len(tables)
    total = tables.sum(0)
    value = float(_beyond_chance(total, distances, correction))
    if math.isnan(value):
        return Figure(None, None, n)
    if value < 1:
        agreement = _beyond_chance(_resampled(tables), distances, correction)
        low, high = np.nanpercentile(agreement, _TAILS).tolist()
        return Figure(value, (low, high), n)
    worst = _most_disagreement(total, distances, n)
    low = float(_beyond_chance(worst, distances, correction))
    return Figure(value, (low, 1.0), n)


def _resampled(tables: _Array) -> _Array:
    """The sums of tables that are drawn again with replacement, for a percentile bootstrap."""
    n = len(tables)
    distinct, counts = np.unique(tables, axis=0, return_counts=True)
    generator = np.random.default_rng(_SEED)
    drawn = generator.multinomial(n, counts / n, size=_RESAMPLES)
    return np.asarray(np.tensordot(drawn, distinct, axes=1))


def _most_disagreement(agreed: _Array, distances: _Array, n: int) -> _Array:
    """The table with as much disagreement as `n` agreeing pairs can't rule out (Wilson's lower bound)."""
    share, _ = wilson(n, n) or (0.0, 1.0)
    closest = distances[distances > 0].min()
    value1, value2 = np.argwhere(distances == closest)[0]
    disagreed = np.zeros_like(agreed)
    disagreed[value1, value2] = agreed.sum() / 2
    disagreed[value2, value1] = agreed.sum() / 2
    return share * agreed + (1 - share) * disagreed
