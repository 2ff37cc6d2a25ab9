"""Cohen's kappa, Krippendorff's alpha and weighted shares (Wilson, Kish), with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

Scale = Literal["nominal", "interval"]
Interval = tuple[float, float]
_Array = NDArray[np.float64]

_Z = 1.959963984540054  # half width of the central 95 % of a normal distribution, in standard deviations
_DRAWS, _SEED = 2000, 42
_TAILS = (2.5, 97.5)  # percentiles


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
    share, square = right / n, _Z * _Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def weighted_share(right: Sequence[bool], weights: Sequence[float]) -> Figure:
    """A weighted share with Wilson's interval at Kish's effective sample size."""
    weight = np.asarray(weights, dtype=np.float64)
    if not len(right):
        return Figure(None, None, 0)
    value = float(weight @ np.asarray(right, dtype=np.float64) / weight.sum())
    effective = float(weight.sum() ** 2 / (weight @ weight))
    return Figure(value, wilson(value * effective, effective), len(right))


def cohen_kappa(judge1: Sequence[float], judge2: Sequence[float], scale: Scale = "nominal") -> Figure:
    """Agreement of two judges beyond chance (at most 1); undefined if all answers are equal."""
    values = np.unique([*judge1, *judge2])
    cells = np.zeros((len(judge1), len(values), len(values)))
    first, second = (np.searchsorted(values, judge) for judge in (judge1, judge2))
    cells[np.arange(len(judge1)), first, second] = 1
    return _figure(cells, _distances(values, scale), _kappa)


def krippendorff_alpha(units: Sequence[Sequence[float]], scale: Scale = "nominal") -> Figure:
    """Agreement of any number of judges beyond chance (at most 1); undefined if all answers are equal."""
    paired = [unit for unit in units if len(unit) > 1]
    values = np.unique([value for unit in paired for value in unit])
    cells = np.zeros((len(paired), len(values), len(values)))
    for number, unit in enumerate(paired):
        counts = np.bincount(np.searchsorted(values, unit), minlength=len(values)).astype(float)
        cells[number] = (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    return _figure(cells, _distances(values, scale), _alpha)


def nominal_alpha(tally: NDArray[np.integer], counts: NDArray[np.integer]) -> float | None:
    """Krippendorff's alpha of vote counts (unit, class), with each unit weighted by `counts`."""
    judges = tally.sum(axis=1)
    paired = judges > 1
    chosen = tally[paired].astype(np.float64)
    weight = counts[paired] / (judges[paired] - 1)
    cells = (chosen.T * weight) @ chosen - np.diag(weight @ chosen)
    alpha = float(_alpha(cells, _distances(range(len(cells)), "nominal")))
    return None if math.isnan(alpha) else alpha


def _kappa(cells: _Array, distances: _Array) -> _Array:
    """Kappa of contingency tables `(…, value, value)`."""
    n = cells.sum((-2, -1))
    expected = cells.sum(-1)[..., :, None] * cells.sum(-2)[..., None, :]
    return _beyond_chance((cells * distances).sum((-2, -1)) * n, (expected * distances).sum((-2, -1)))


def _alpha(cells: _Array, distances: _Array) -> _Array:
    """Alpha of coincidence tables `(…, value, value)`."""
    margin = cells.sum(-1)
    expected = margin[..., :, None] * margin[..., None, :]
    observed = (cells * distances).sum((-2, -1)) * (margin.sum(-1) - 1)
    return _beyond_chance(observed, (expected * distances).sum((-2, -1)))


def _beyond_chance(observed: _Array, expected: _Array) -> _Array:
    """1 - observed / expected disagreement; NaN if none is expected."""
    return 1 - observed / np.where(expected > 0, expected, np.nan)


def _distances(values: npt.ArrayLike, scale: Scale) -> _Array:
    column = np.asarray(values, dtype=np.float64)[:, None]
    apart = column - column.T
    return (apart != 0).astype(np.float64) if scale == "nominal" else apart**2


def _figure(cells: _Array, distances: _Array, measure: Callable[[_Array, _Array], _Array]) -> Figure:
    """The measure on the sum of all tables, with a percentile bootstrap interval over pairs."""
    n = len(cells)
    if not n:
        return Figure(None, None, 0)
    whole = cells.sum(0)
    value = float(measure(whole, distances))
    if math.isnan(value):
        return Figure(None, None, n)
    if value == 1:
        return Figure(value, (float(measure(_in_doubt(whole, distances, n), distances)), 1.0), n)
    kinds, counts = np.unique(cells.reshape(n, -1), axis=0, return_counts=True)
    drawn = np.random.default_rng(_SEED).multinomial(n, counts / n, size=_DRAWS)
    resampled = measure((drawn @ kinds).reshape(_DRAWS, *distances.shape), distances)
    low, high = np.percentile(resampled[~np.isnan(resampled)], _TAILS)
    return Figure(value, (float(low), float(high)), n)


def _in_doubt(agreed: _Array, distances: _Array, n: int) -> _Array:
    """The table with as much disagreement as `n` agreeing pairs can't rule out (Wilson's lower bound)."""
    lower, _ = wilson(n, n) or (0.0, 1.0)
    value1, value2 = np.argwhere(distances == distances[distances > 0].min())[0]
    doubt = np.zeros_like(agreed)
    doubt[[value1, value2], [value2, value1]] = agreed.sum() / 2
    return lower * agreed + (1 - lower) * doubt
