"""How sure a figure is: bootstrap intervals, and paired tests between two models on the same examples.

An example drawn twice counts twice, so a resample is a row of counts, and a metric is a function of counts.
That gives intervals and paired tests to every metric alike, and no metric is computed in two ways.
Source: Efron & Tibshirani 1993, chapters 13 (percentile interval) and 16 (bootstrap tests); pairing by
common resamples as Koehn 2004.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pairkit.app.errors import DataError

_CELLS = 2_000_000  # counts held at a time: 16 MB


class Interval(NamedTuple):
    """Bounds that hold the middle 95 % of the resamples."""

    low: float
    high: float


class Metrics(ABC):
    """Metrics of a model on the examples of a task, for any weights of the examples."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Examples."""

    @abstractmethod
    def figures(self, counts: np.ndarray) -> Mapping[str, np.ndarray]:
        """Each metric (draw,), with example e weighted by counts[d, e]."""

    def scores(self) -> dict[str, float]:
        """Each metric on the examples as they are."""
        return {name: float(value) for name, (value,) in self.figures(np.ones((1, self.n))).items()}


@dataclass(frozen=True)
class MeanMetrics(Metrics):
    """Metrics that are means over the examples, such as accuracy or nDCG: each as (example,)."""

    outcomes: Mapping[str, np.ndarray]

    @property
    def n(self) -> int:
        """Examples."""
        return len(next(iter(self.outcomes.values())))

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Means weighted by the counts."""
        total = counts.sum(axis=1)
        return {name: counts @ np.asarray(values, float) / total for name, values in self.outcomes.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far model A is ahead of model B on the same examples."""

    difference: float
    interval: Interval
    p: float


def intervals(metrics: Metrics, *, resamples: int, seed: int) -> dict[str, Interval]:
    """The percentile bootstrap interval of each metric; one that no resample defines has none."""
    resampled = _resampled((metrics,), resamples, seed)[0]
    return {name: _interval(values) for name, values in resampled.items() if not np.isnan(values).all()}


def compare(one: Metrics, other: Metrics, *, resamples: int, seed: int) -> dict[str, Comparison]:
    """Compare two models on every metric; both see the same resamples.

    What no resample moves in either, such as a threshold chosen elsewhere, is no measurement and left out; so
    is what is undefined as it stands, or in all resamples.
    """
    if one.n != other.n:
        raise DataError(f"{one.n} examples against {other.n}; a paired test needs the same ones")
    ours, theirs = _resampled((one, other), resamples, seed)
    here, there = one.scores(), other.scores()
    return {
        name: _comparison(here[name] - there[name], ours[name] - theirs[name])
        for name in here
        if (np.ptp(ours[name]) or np.ptp(theirs[name]))
        and not np.isnan(here[name] - there[name])
        and not np.isnan(ours[name] - theirs[name]).all()
    }


def _comparison(difference: float, resampled: np.ndarray) -> Comparison:
    defined = resampled[~np.isnan(resampled)]
    tail = min((defined <= 0).sum(), (defined >= 0).sum())
    return Comparison(difference, _interval(resampled), float(min(1, 2 * (tail + 1) / (len(defined) + 1))))


def _interval(values: np.ndarray) -> Interval:
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return Interval(float(low), float(high))


def _resampled(metrics: tuple[Metrics, ...], resamples: int, seed: int) -> list[dict[str, np.ndarray]]:
    pieces: list[list[Mapping[str, np.ndarray]]] = [[] for _ in metrics]
    for counts in _counts(metrics[0].n, resamples, seed):
        for found, each in zip(pieces, metrics, strict=True):
            found.append(each.figures(counts))
    return [{name: np.concatenate([part[name] for part in found]) for name in found[0]} for found in pieces]


def _counts(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of `n` examples is drawn, a row a draw, some rows at a time."""
    generator = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(float)
