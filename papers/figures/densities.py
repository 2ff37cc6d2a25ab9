"""Cosine densities by gold score: one panel per model, one ridge per group of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from papers.figures.style import GREY, PALE, WIDTH, fit_text, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MIN_FOR_DENSITY = 8  # smaller groups are drawn as single marks
_MIN_BANDWIDTH = 0.005  # share of the axis, so that equal values become a narrow peak
_MARGIN = 0.05
_MAX_GROUPS = 6  # the number of integer scores of STS, 0 to 5
_WIDE = 3.0  # on a scale this wide, groups are integer scores
_COLUMNS = 3  # more panels would be narrower than their titles
# Widths in inches: the panel of gold scores and, at most, of a model.
_GOLD = 1.35
_PANEL = 2.9
# Heights in inches: all pairs, a group, and titles and labels.
_OVERALL = 0.7
_ROW = 0.36
_REST = 1.05
# Heights of a ridge and of a mark for a single pair, as shares of the distance between rows.
_PEAK = 0.86
_MARK = 0.4


@dataclass(frozen=True)
class Curve:
    """A line: x and y, each float64 (point,)."""

    x: np.ndarray
    y: np.ndarray


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
    start = np.floor(10 * lowest) / 10
    return max(-1.0, start), 1.0


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
        is_small = len(members) < _MIN_FOR_DENSITY
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
    between = (to[1:] + to[:-1]) / 2
    return np.searchsorted(between, labels, side="right")


def draw_densities(
    models: Mapping[str, CosineDensities],
    scores: GoldScores,
    axis: tuple[float, float],
    *,
    saturation: float,
    data: str,
) -> Figure:
    """Draw a panel per model with shared axes: all pairs at the top, groups by gold score below (ACL Fig. 4).

    The gold scores (ACL Fig. 5) are to the left of each row of panels. Each density is scaled to its own
    peak, so that a narrow peak doesn't flatten the others; a line marks the median of each ridge.
    """
    names = list(models)
    columns = min(len(names), _COLUMNS)
    rows = math.ceil(len(names) / columns)
    ridges_height = _ROW * (len(scores.levels) + 0.4)
    width = min(WIDTH, _GOLD + _PANEL * columns)
    height = rows * (_OVERALL + ridges_height + _REST)
    figure = new_figure(height, width)
    panel_width = (width - _GOLD) / columns
    grid = figure.add_gridspec(
        2 * rows,
        columns + 1,
        width_ratios=[_GOLD] + [panel_width] * columns,
        height_ratios=[_OVERALL, ridges_height] * rows,
    )
    for row in range(rows):
        _draw_heading(figure.add_subplot(grid[2 * row, 0]), scores, data)
        gold = figure.add_subplot(grid[2 * row + 1, 0])
        _draw_gold(gold, scores)
        in_row = names[row * columns : (row + 1) * columns]
        for column, name in enumerate(in_row, start=1):
            above = figure.add_subplot(grid[2 * row, column])
            below = figure.add_subplot(grid[2 * row + 1, column], sharey=gold)
            for axes in (above, below):
                _shade(axes, axis, saturation)
            model = models[name]
            _draw_all(above, model.density)
            _draw_ridges(below, model.groups)
            above.set_title(
                f"{fit_text(name, 28)}\n"
                f"Spearman {100 * model.spearman:.2f}\n"
                f"|cos| > {saturation:g}: {100 * model.saturated:.1f} %"
            )
    return figure


def _shade(axes: Axes, axis: tuple[float, float], saturation: float) -> None:
    """Shade the saturation zone at both ends of the axis."""
    axes.set_xlim(*axis)
    axes.axvspan(saturation, 1, color=PALE, linewidth=0)
    if axis[0] < -saturation:
        axes.axvspan(-1, -saturation, color=PALE, linewidth=0)


def _draw_all(axes: Axes, curve: Curve) -> None:
    axes.fill_between(
        curve.x,
        curve.y,
        color=GREY,
        alpha=0.35,
        linewidth=0,
    )
    axes.plot(curve.x, curve.y, color=GREY, linewidth=1)
    axes.set_ylim(0, 1.05 * float(curve.y.max()))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(labelbottom=False)


def _draw_ridges(axes: Axes, groups: list[GroupCosines]) -> None:
    from matplotlib import colormaps

    shades = colormaps["cividis"](np.linspace(0, 0.9, len(groups)))
    for row, (group, shade) in enumerate(zip(groups, shades, strict=True)):
        axes.axhline(row, color=GREY, linewidth=0.4, zorder=1)
        curve = group.density
        if curve is not None and group.median is not None:
            x = curve.x
            y = row + _PEAK * curve.y / curve.y.max()
            axes.fill_between(
                x,
                row,
                y,
                color=shade,
                alpha=0.6,
                linewidth=0,
                zorder=2,
            )
            axes.plot(x, y, color="black", linewidth=0.6, zorder=3)
            top = np.interp(group.median, x, y)
            axes.vlines(
                group.median,
                row,
                top,
                color="black",
                linewidth=1.1,
                zorder=4,
            )
        elif group.cosines is not None:
            top = row + _MARK
            axes.vlines(
                group.cosines,
                row,
                top,
                color=shade,
                linewidth=1.2,
                zorder=3,
            )
    axes.tick_params(left=False, labelleft=False)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("cosine")


def _draw_heading(axes: Axes, scores: GoldScores, data: str) -> None:
    """Write the name and size of the data in the free corner."""
    axes.set_axis_off()
    axes.set_title(f"{fit_text(data, 22)}\n{scores.pairs.sum():,} pairs\n")
    axes.text(1, 0.1, "all pairs", ha="right", transform=axes.transAxes)


def _draw_gold(axes: Axes, scores: GoldScores) -> None:
    rows = np.arange(len(scores.levels))
    if scores.density is None:
        axes.barh(rows, scores.pairs, height=0.35, color=GREY, alpha=0.5)
        axes.set_xlabel("pairs")
    else:
        heights = np.interp(scores.density.x, scores.levels, rows)
        curve = scores.density.y
        axes.fill_betweenx(
            heights,
            curve,
            color=GREY,
            alpha=0.35,
            linewidth=0,
        )
        axes.plot(curve, heights, color=GREY, linewidth=1)
        axes.set_xlabel("density")
    axes.set_xlim(left=0)
    axes.set_xticks([])
    axes.set_ylim(-0.2, len(rows))
    labels = [
        f"{level:g}\nn = {count:,}"
        for level, count in zip(scores.levels, scores.pairs, strict=True)
    ]
    axes.set_yticks(rows, labels, linespacing=1.1, fontsize=7)
    axes.set_ylabel("gold score")
