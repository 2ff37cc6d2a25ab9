"""Draws real and imaginary halves: two t-SNE planes, densities of distances, and a table of five pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.figures.halves import Distances, Halves
from papers.figures.style import COLOURS, GREY, WIDTH, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REAL, _IMAGINARY = COLOURS[0], COLOURS[1]
_LINES = ("#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
_HEIGHTS = (2.95, 1.75, 2.05)  # inches: planes, densities, sample pairs
_CURVE_HEIGHT = 0.72  # share of the panel below its legend
_PAIR_ROWS = 2.6  # rows of the table per pair; two have its texts
_COLUMN_ENDS = (0.665, 0.745, 0.825, 0.915, 0.995)  # right ends of the table's columns
_TEXT = 60  # characters of a text in the table


def draw_halves(halves: Halves, *, model: str, data: str) -> Figure:
    """Draw the figure of one model (ACL Fig. 3 and 10)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, sum(_HEIGHTS) + 0.5), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=_HEIGHTS)
    figure.suptitle(_heading(halves, model, data), x=0.01, ha="left", fontsize=8.5)
    extent = 1.1 * float(max(np.abs(halves.real).max(), np.abs(halves.imaginary).max()))
    for column, (title, points, colour) in enumerate(
        (
            ("(a) Real halves, t-SNE", halves.real, _REAL),
            ("(b) Imaginary halves, t-SNE", halves.imaginary, _IMAGINARY),
        )
    ):
        axes = figure.add_subplot(grid[0, column])
        axes.set_title(title)
        _draw_plane(axes, points, halves, colour, extent)
    for column, (title, distances) in enumerate(
        (
            ("(c) Distances in the original space", halves.original),
            ("(d) Distances in t-SNE's planes", halves.plane),
        )
    ):
        axes = figure.add_subplot(grid[1, column])
        axes.set_title(title)
        _draw_distances(axes, distances)
    _draw_table(figure.add_subplot(grid[2, :]), halves)
    return figure


def _heading(halves: Halves, model: str, data: str) -> str:
    drawn = len(halves.numbers)
    of = "" if drawn == halves.in_zone else f" of {halves.in_zone:,}"
    return (
        f"{fit_text(model, 40)} on {fit_text(data, 40)}\n{halves.zone}: {drawn:,}{of} pairs,"
        f" {len(halves.real):,} texts; t-SNE with perplexity {halves.perplexity:g}"
    )


def _draw_plane(axes: Axes, points: np.ndarray, halves: Halves, colour: str, extent: float) -> None:
    size = float(np.clip(2_400 / len(points), 2, 12))
    x, y = points.T
    axes.scatter(
        x, y, s=size, color=colour, alpha=0.45, linewidths=0, rasterized=len(points) > 2_000
    )
    for number, (sample, line) in enumerate(zip(halves.samples, _LINES, strict=True), start=1):
        ends = points[halves.pairs[sample.pair]]
        axes.plot(*ends.T, color=line, linewidth=1.2, marker="o", markersize=3.2)
        axes.annotate(
            str(number),
            ends[ends[:, 1].argmax()],
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=7.5,
            fontweight="bold",
        )
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, color=GREY)


def _draw_distances(axes: Axes, distances: Distances) -> None:
    for name, half, colour, style in (
        ("re", distances.real, _REAL, "-"),
        ("im", distances.imaginary, _IMAGINARY, "--"),
    ):
        curve = half.density
        x = 10**curve.x if distances.logarithmic else curve.x
        axes.fill_between(x, curve.y, color=colour, alpha=0.18, linewidth=0)
        label = f"$AVG_{{{name}}}$ = {_three_digits(half.mean)}"
        axes.plot(x, curve.y, color=colour, linestyle=style, label=label)
        axes.axvline(half.mean, ymax=_CURVE_HEIGHT, color=colour, linestyle=style, linewidth=0.8)
        axes.set_xlim(x[0], x[-1])
    if distances.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    tallest = max(float(half.density.y.max()) for half in (distances.real, distances.imaginary))
    axes.set(
        ylim=(0, tallest / _CURVE_HEIGHT),
        yticks=[],
        xlabel="Euclidean distance of a pair's two texts",
    )
    axes.spines["left"].set_visible(False)
    _legend(axes, f"im > re in {100 * distances.imaginary_larger:.0f} % of pairs")


def _legend(axes: Axes, title: str) -> None:
    """Draw the legend above the curves, with the comparison at its right."""
    legend = axes.legend(loc="upper left", bbox_to_anchor=(-0.02, 1.03), handlelength=2.4)
    for text in legend.get_texts():
        text.set_parse_math(True)
    axes.text(0.98, 0.93, title, ha="right", va="center", transform=axes.transAxes, fontsize=7.5)


def _draw_table(axes: Axes, halves: Halves) -> None:
    """Draw the sample pairs with their distances, of the vectors and in the planes."""
    axes.set(xlim=(0, 1), ylim=(_PAIR_ROWS * len(halves.samples) + 1.2, -1.3))
    axes.set_axis_off()
    for heading, first, last in (("original space", 1, 2), ("t-SNE's planes", 3, 4)):
        axes.text(
            (_COLUMN_ENDS[first] + _COLUMN_ENDS[last]) / 2 - 0.025,
            -0.9,
            heading,
            ha="center",
            va="center",
        )
        axes.plot(
            [_COLUMN_ENDS[first] - 0.065, _COLUMN_ENDS[last]],
            [-0.15] * 2,
            color=GREY,
            linewidth=0.5,
        )
    for place, heading in zip(_COLUMN_ENDS, ("gold", "re", "im", "re", "im"), strict=True):
        axes.text(place, 0.5, heading, ha="right", va="center")
    for number, (sample, line) in enumerate(zip(halves.samples, _LINES, strict=True)):
        top = _PAIR_ROWS * number + 1.9
        axes.plot([0.0, 0.02], [top + 0.5] * 2, color=line, linewidth=2, clip_on=False)
        axes.text(0.03, top + 0.5, str(number + 1), va="center", fontweight="bold", fontsize=7.5)
        for row, text in enumerate((sample.text1, sample.text2)):
            axes.text(0.055, top + row, fit_text(text, _TEXT), va="center", fontsize=7)
        apart = (
            halves.original.real,
            halves.original.imaginary,
            halves.plane.real,
            halves.plane.imaginary,
        )
        figures = (
            f"{sample.gold:g}",
            *(_three_digits(float(half.values[sample.pair])) for half in apart),
        )
        for place, figure in zip(_COLUMN_ENDS, figures, strict=True):
            axes.text(place, top + 0.5, figure, ha="right", va="center", fontsize=7.5)


def _three_digits(value: float) -> str:
    """Three significant digits, such as 0.370 and 23.3."""
    return f"{value:#.3g}".rstrip(".")
