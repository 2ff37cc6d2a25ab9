"""Draws cosine densities by gold score: one panel per model, one ridge per group of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from papers.figures.numbers import CosineDensities, Curve, GoldScores, GroupCosines
from papers.figures.style import GREY, PALE, WIDTH, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    from matplotlib.figure import Figure

    names = list(models)
    columns = min(len(names), _COLUMNS)
    rows = math.ceil(len(names) / columns)
    ridges_height = _ROW * (len(scores.levels) + 0.4)
    width = min(WIDTH, _GOLD + _PANEL * columns)
    height = rows * (_OVERALL + ridges_height + _REST)
    figure = Figure(figsize=(width, height), layout="constrained")
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
    axes.fill_between(curve.x, curve.y, color=GREY, alpha=0.35, linewidth=0)
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
            axes.fill_between(x, row, y, color=shade, alpha=0.6, linewidth=0, zorder=2)
            axes.plot(x, y, color="black", linewidth=0.6, zorder=3)
            top = np.interp(group.median, x, y)
            axes.vlines(group.median, row, top, color="black", linewidth=1.1, zorder=4)
        elif group.cosines is not None:
            top = row + _MARK
            axes.vlines(group.cosines, row, top, color=shade, linewidth=1.2, zorder=3)
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
        axes.fill_betweenx(heights, curve, color=GREY, alpha=0.35, linewidth=0)
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
