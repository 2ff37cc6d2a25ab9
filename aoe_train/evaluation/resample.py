"""Bootstrap intervals, and paired tests between two models on the same examples.

A resample is a row of counts of the examples, and a metric is a function of counts, so one implementation of
a metric is enough for scores, intervals and tests. Source: Efron & Tibshirani 1993, chapters 13 (percentile
interval) and 16 (bootstrap tests); pairing by common resamples: Koehn 2004.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from pairkit.base.errors import ConfigError, DataError

_MAX_COUNTS = 2_000_000  # that are in memory at a time: 16 MB
_MIN_RESAMPLES = 100  # fewer leave hardly any in the tails of a 95 % interval
_ROUNDING = 1e-12  # smaller differences between metrics are ties


@dataclass(frozen=True)
class Resampling:
    """Bootstrap resamples for intervals, which cover `level` of them, and tests."""

    number: int = 1000
    seed: int = 42
    level: float = 0.95

    def for_several(self, comparisons: int) -> Resampling:
        """Wider intervals, whose joint level is `level` (Bonferroni), from more resamples."""
        outside = (1 - self.level) / comparisons
        return Resampling(self.number * comparisons, self.seed, 1 - outside)

    def __post_init__(self) -> None:
        if self.number < _MIN_RESAMPLES and self.number != 0:
            raise ConfigError(
                f"--resamples {self.number}: expected at least {_MIN_RESAMPLES}, or 0 for none"
            )


class Interval(NamedTuple):
    """Bounds of the middle part of the resamples; `Resampling.level` is its share."""

    low: float
    high: float


class Metrics(ABC):
    """Metrics of a model on the examples of a task, for any weights of the examples."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of examples."""

    @abstractmethod
    def figures(self, counts: np.ndarray) -> Mapping[str, np.ndarray]:
        """Each metric (draw,), with example e weighted by counts[d, e]."""

    def scores(self) -> dict[str, float]:
        """Each metric with equal weights."""
        figures = self.figures(np.ones((1, self.n)))
        return {name: values.item() for name, values in figures.items()}


@dataclass(frozen=True)
class MeanMetrics(Metrics):
    """Metrics that are means over examples, such as accuracy or nDCG, from the values (example,) of each."""

    outcomes: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.outcomes.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise DataError(
                f"metrics have {sorted(lengths)} values; expected the same number of values in each, one per"
                " example"
            )

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(next(iter(self.outcomes.values())))

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Weighted means."""
        total = counts.sum(axis=1)
        means = {}
        for name, values in self.outcomes.items():
            means[name] = counts @ np.asarray(values, float) / total
        return means


def select_examples(metrics: Any, examples: np.ndarray) -> Any:
    """The metrics of some examples, from a dataclass of arrays (example,), or of mappings to these."""
    chosen: dict[str, Any] = {}
    for field in fields(metrics):
        values = getattr(metrics, field.name)
        if isinstance(values, Mapping):
            by_name = {key: np.asarray(values[key])[examples] for key in values}
            chosen[field.name] = by_name
        elif isinstance(values, np.ndarray):
            chosen[field.name] = values[examples]
    return replace(metrics, **chosen)


@dataclass(frozen=True)
class Comparison:
    """The difference between two models on the same examples."""

    difference: float
    interval: Interval
    p: float

    def to_dict(self) -> dict[str, Any]:
        """The object in JSON."""
        return {"difference": self.difference, "ci95": list(self.interval), "p": self.p}


def intervals(metrics: Metrics, resamples: Resampling) -> dict[str, Interval]:
    """The percentile bootstrap interval of each metric that is defined in some resample."""
    (resampled,) = _resampled([metrics], resamples)
    bounds = {}
    for name, values in resampled.items():
        if not np.isnan(values).all():
            bounds[name] = _interval(values, resamples.level)
    return bounds


def compare(
    model: Metrics, rival: Metrics, resamples: Resampling
) -> dict[str, Comparison]:
    """Compare two models on every metric that is defined, and not the same constant, with the same resamples.

    Without resamples, there are no comparisons.
    """
    if model.n != rival.n:
        raise DataError(
            f"{model.n} examples against {rival.n}; a paired test needs the same examples"
        )
    if not resamples.number:
        return {}
    ours, theirs = _resampled([model, rival], resamples)
    scores = model.scores()
    rival_scores = rival.scores()
    comparisons = {}
    for name in scores:
        difference = float(_difference(scores[name], rival_scores[name]))
        # Resamples that lack a label have no AUC, for example.
        is_defined = ~np.isnan(ours[name] + theirs[name])
        if np.isnan(difference) or not is_defined.any():
            continue
        our_values = ours[name][is_defined]
        their_values = theirs[name][is_defined]
        varies = max(np.ptp(our_values), np.ptp(their_values)) > _ROUNDING
        if not varies and not difference:
            continue
        resampled = _difference(our_values, their_values)
        tail = min((resampled <= 0).sum(), (resampled >= 0).sum())
        two_sided = 2 * (tail + 1) / (len(resampled) + 1)
        p = float(min(1, two_sided))
        comparisons[name] = Comparison(
            difference, _interval(resampled, resamples.level), p
        )
    return comparisons


def _difference(ours: np.ndarray | float, theirs: np.ndarray | float) -> np.ndarray:
    """The difference between two models, 0 if only rounding decides it."""
    difference = np.subtract(ours, theirs)
    return np.where(np.abs(difference) <= _ROUNDING, 0.0, difference)


def _interval(values: np.ndarray, level: float) -> Interval:
    percentiles = [50 * (1 - level), 50 * (1 + level)]
    low, high = np.nanpercentile(values, percentiles)
    return Interval(float(low), float(high))


def _resampled(
    models: Sequence[Metrics], resamples: Resampling
) -> list[dict[str, np.ndarray]]:
    """The metrics of each model in all resamples."""
    blocks: list[dict[str, list[np.ndarray]]] = [defaultdict(list) for _ in models]
    for counts in _counts(models[0].n, resamples):
        for model, by_name in zip(models, blocks, strict=True):
            for name, values in model.figures(counts).items():
                by_name[name].append(values)
    return [
        {name: np.concatenate(values) for name, values in by_name.items()}
        for by_name in blocks
    ]


def _counts(n: int, resamples: Resampling) -> Iterator[np.ndarray]:
    """Blocks of resamples: a row for each, with the count of each of `n` examples."""
    generator = np.random.default_rng(resamples.seed)
    step = max(1, _MAX_COUNTS // n)
    for start in range(0, resamples.number, step):
        rows = min(step, resamples.number - start)
        drawn = generator.integers(n, size=(rows, n))
        cells = drawn + n * np.arange(rows)[:, None]
        counts = np.bincount(cells.ravel(), minlength=rows * n)
        yield counts.reshape(rows, n).astype(float)
