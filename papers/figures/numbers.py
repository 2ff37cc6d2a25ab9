"""Computes the numbers of the figures: cosine densities by gold score, and curves of training runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairkit.base.errors import ConfigError, DataError

MIN_FOR_DENSITY = 8  # smaller groups are drawn as single marks
_MIN_BANDWIDTH = 0.005  # share of the axis, so that equal values become a narrow peak
_MARGIN = 0.05
_MAX_GROUPS = 6  # the number of integer scores of STS, 0 to 5
_WIDE = 3.0  # on a scale this wide, groups are integer scores


@dataclass(frozen=True)
class Curve:
    """A line: x and y, each float64 (point,)."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts with gold scores, and a model's vectors of the distinct texts."""

    name: str
    text1: list[str]
    text2: list[str]
    labels: np.ndarray
    vectors: np.ndarray
    rows: np.ndarray
    cosines: np.ndarray


def density(
    values: np.ndarray,
    axis: tuple[float, float],
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    points: int = 256,
) -> Curve:
    """A kernel density estimate of area 1.

    The kernel is Gaussian with Silverman's robust bandwidth, 0.9 min(sd, IQR / 1.34) n^(-1/5) (Density
    Estimation, 1986, Eq. 3.31). Mass beyond a bound is reflected, because many cosines are near their bound
    1.
    """
    start, end = axis
    x = np.linspace(start, end, points)
    width = _bandwidth(values, _MIN_BANDWIDTH * (end - start))
    images = [values, *(2 * bound - values for bound in bounds if bound is not None)]
    y = np.zeros(points)
    for image in images:
        distances = (x[:, None] - image) / width
        y += np.exp(-0.5 * distances**2).sum(axis=1)
    y /= len(values) * width * np.sqrt(2 * np.pi)
    low, high = bounds
    if low is not None:
        y[x < low] = 0.0
    if high is not None:
        y[x > high] = 0.0
    return Curve(x, y)


def _bandwidth(values: np.ndarray, narrowest: float) -> float:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    lower, upper = np.quantile(values, [0.25, 0.75])
    if upper > lower:  # half of the values may be equal
        spread = min(spread, float(upper - lower) / 1.34)
    return float(max(0.9 * spread * len(values) ** -0.2, narrowest))


@dataclass(frozen=True)
class GoldScores:
    """The distribution of gold scores (ACL Fig. 5)."""

    levels: np.ndarray
    pairs: np.ndarray
    graded: bool
    density: Curve | None


@dataclass(frozen=True)
class GroupCosines:
    """The cosines of the pairs with one gold score: a density, or the values if they are few."""

    gold: float
    pairs: int
    saturated: float | None = None
    median: float | None = None
    density: Curve | None = None
    cosines: np.ndarray | None = None


@dataclass(frozen=True)
class CosineDensities:
    """A model's panel (ACL Fig. 4, arXiv Fig. 6)."""

    spearman: float
    saturated: float
    density: Curve
    groups: list[GroupCosines]


def gold_scores(labels: np.ndarray) -> GoldScores:
    """The distribution of gold scores."""
    at = levels(labels)
    counts = np.bincount(nearest(labels, at), minlength=len(at))
    graded = len(np.unique(labels)) > len(at)
    curve = None
    if graded:
        ends = (float(at[0]), float(at[-1]))
        curve = density(labels, ends, bounds=ends)
    return GoldScores(at, counts, graded, curve)


def cosine_axis(cosines: Sequence[np.ndarray]) -> tuple[float, float]:
    """A range from below the lowest cosine of all models, rounded to tenths, to 1."""
    lowest = min(float(values.min()) for values in cosines) - _MARGIN
    return max(-1.0, np.floor(10 * lowest) / 10), 1.0


def cosine_densities(
    cosines: np.ndarray,
    labels: np.ndarray,
    scores: GoldScores,
    axis: tuple[float, float],
    *,
    saturation: float,
) -> CosineDensities:
    """The distribution of a model's cosines, over all pairs and by gold score."""
    from scipy.stats import spearmanr

    group = nearest(labels, scores.levels)
    groups = []
    for number, level in enumerate(scores.levels):
        members = cosines[group == number]
        if not len(members):
            groups.append(GroupCosines(float(level), 0))
            continue
        is_small = len(members) < MIN_FOR_DENSITY
        groups.append(
            GroupCosines(
                gold=float(level),
                pairs=len(members),
                saturated=_saturated(members, saturation),
                median=float(np.median(members)),
                density=None if is_small else density(members, axis, bounds=(-1, 1)),
                cosines=members if is_small else None,
            )
        )
    return CosineDensities(
        spearman=float(spearmanr(cosines, labels).statistic),
        saturated=_saturated(cosines, saturation),
        density=density(cosines, axis, bounds=(-1, 1)),
        groups=groups,
    )


def _saturated(cosines: np.ndarray, limit: float) -> float:
    return float((np.abs(cosines) > limit).mean())


def levels(labels: np.ndarray) -> np.ndarray:
    """The gold scores to group by, ascending.

    The labels if they are few (0 and 1 of binary data), else integers if the scale is wide (the six groups of
    arXiv Fig. 6), else six evenly spaced scores.
    """
    distinct: np.ndarray = np.unique(labels)
    if len(distinct) <= _MAX_GROUPS:
        return distinct
    low = float(distinct[0])
    high = float(distinct[-1])
    if high - low >= _WIDE:
        return np.arange(np.floor(low), np.ceil(high) + 1)
    return np.linspace(low, high, _MAX_GROUPS)


def nearest(labels: np.ndarray, to: np.ndarray) -> np.ndarray:
    """int64 (pair,): the index of the nearest level; a label halfway between two goes to the higher one."""
    return np.searchsorted((to[1:] + to[:-1]) / 2, labels, side="right")


@dataclass(frozen=True)
class Dev:
    """The dev metric, which chose the weights."""

    metric: str
    curve: Curve
    best_step: int | None
    sets: Mapping[str, Curve]


@dataclass(frozen=True)
class Curves:
    """A run's curves against optimiser steps."""

    loss: Curve
    parts: Mapping[str, Curve]
    dev: Dev | None


def read_curves(model: str) -> Curves:
    """The curves of a model's run.json: the loss, its parts and the dev metric."""
    path = Path(model) / "run.json"
    if not path.is_file():
        raise ConfigError(
            f"{model}: no run.json; only model folders of `aoe train` have curves"
        )
    try:
        curves = _curves(json.loads(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"no readable history ({type(error).__name__} {error}); expected a run.json of `aoe train`",
            path=path,
        ) from error
    if not len(curves.loss.x):
        raise DataError("the history is empty", path=path)
    return curves


def _curves(run: Mapping[str, Any]) -> Curves:
    history = run["history"]
    settings = run["origin"]["settings"]
    names = list(settings["objective"]["weights"])
    if len(run.get("datasets", ())) > 1:
        names = []
        for dataset in run["datasets"]:
            weights = settings["datasets"][dataset]["objective"]["weights"]
            names += [f"{dataset}.{part}" for part in ("loss", *weights)]
    parts = {}
    for name in names:
        if any(name in entry for entry in history):
            parts[name] = _curve(history, name)
    return Curves(_curve(history, "loss"), parts, _dev(run))


def _dev(run: Mapping[str, Any]) -> Dev | None:
    result = run["result"]
    if result["dev_metric"] is None:
        return None
    before = {"step": 0, "eval_dev": result["dev_before"]}
    entries = [before, *run["dev_history"]]
    sets = {}
    for name, dev in result.get("dev_sets", {}).items():
        key = f"eval_dev.{name}"
        before[key] = dev["before"]
        sets[f"{name}: {dev['metric']}"] = _curve(entries, key)
    return Dev(
        metric=str(result["dev_metric"]),
        curve=_curve(entries, "eval_dev"),
        best_step=run["best_step"],
        sets=sets,
    )


def _curve(entries: Sequence[Mapping[str, Any]], key: str) -> Curve:
    points = [(entry["step"], entry[key]) for entry in entries if key in entry]
    steps, values = np.array(points, np.float64).reshape(-1, 2).T
    return Curve(steps, values)
