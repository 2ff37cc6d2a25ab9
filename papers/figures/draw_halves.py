"""Draws real and imaginary halves: two t-SNE planes, densities of distances, and a table of five pairs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.figures.halves import Distances, HalfDistances, Halves
from papers.figures.style import COLOURS, GREY, WIDTH, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REAL, _IMAGINARY, *_ = COLOURS
_LINES = ("#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
_HEIGHTS = (2.95, 1.75, 2.05)  # inches: planes, densities, sample pairs
_CURVE_HEIGHT = 0.72  # share of the panel below its legend
_PAIR_ROWS = 2.6  # rows of the table per pair; two have its texts
# Right ends of the table's columns.
_COLUMN_ENDS = {
    "gold": 0.665,
    "original re": 0.745,
    "original im": 0.825,
    "plane re": 0.915,
    "plane im": 0.995,
}
_MAX_TEXT = 60  # characters of a text in the table
_SMALL = 7.5  # font size of numbers


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
        axes = figure.add_subplot(grid[0, column], title=title)
        _draw_plane(axes, points, halves, colour, extent)
    for column, (title, distances) in enumerate(
        (
            ("(c) Distances in the original space", halves.original),
            ("(d) Distances in t-SNE's planes", halves.plane),
        )
    ):
        axes = figure.add_subplot(grid[1, column], title=title)
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


def _draw_plane(
    axes: Axes, points: np.ndarray, halves: Halves, colour: str, extent: float
) -> None:
    size = float(np.clip(2_400 / len(points), 2, 12))
    x, y = points.T
    axes.scatter(
        x,
        y,
        s=size,
        color=colour,
        alpha=0.45,
        linewidths=0,
        rasterized=len(points) > 2_000,
    )
    for number, (sample, line) in enumerate(
        zip(halves.samples, _LINES, strict=True), start=1
    ):
        ends = points[halves.pairs[sample.pair]]
        axes.plot(*ends.T, color=line, linewidth=1.2, marker="o", markersize=3.2)
        axes.annotate(
            str(number),
            ends[ends[:, 1].argmax()],
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=_SMALL,
            fontweight="bold",
        )
    axes.set_xlim(-extent, extent)
    axes.set_ylim(-extent, extent)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=GREY)


def _draw_distances(axes: Axes, distances: Distances) -> None:
    """Draw the densities of both halves; above them the legend, and at its right the comparison."""
    real = distances.real
    imaginary = distances.imaginary
    is_logarithmic = distances.logarithmic
    _draw_half(axes, real, is_logarithmic, "re", color=_REAL, linestyle="-")
    _draw_half(axes, imaginary, is_logarithmic, "im", color=_IMAGINARY, linestyle="--")
    if is_logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    tallest = max(real.density.y.max(), imaginary.density.y.max())
    axes.set_ylim(0, float(tallest) / _CURVE_HEIGHT)
    axes.set_yticks([])
    axes.set_xlabel("Euclidean distance of a pair's two texts")
    axes.spines["left"].set_visible(False)
    legend = axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, 1.03), handlelength=2.4
    )
    for text in legend.get_texts():
        text.set_parse_math(True)
    comparison = f"im > re in {100 * distances.imaginary_larger:.0f} % of pairs"
    axes.text(
        0.98,
        0.93,
        comparison,
        ha="right",
        va="center",
        transform=axes.transAxes,
        fontsize=_SMALL,
    )


def _draw_half(
    axes: Axes, half: HalfDistances, is_logarithmic: bool, name: str, **style: Any
) -> None:
    x = 10**half.density.x if is_logarithmic else half.density.x
    y = half.density.y
    label = f"$AVG_{{{name}}}$ = {_three_digits(half.mean)}"
    axes.fill_between(x, y, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(x, y, label=label, **style)
    axes.axvline(half.mean, ymax=_CURVE_HEIGHT, linewidth=0.8, **style)
    axes.set_xlim(x[0], x[-1])


def _draw_table(axes: Axes, halves: Halves) -> None:
    """Draw the sample pairs with their distances, of the vectors and in the planes."""
    axes.set(xlim=(0, 1), ylim=(_PAIR_ROWS * len(halves.samples) + 1.2, -1.3))
    axes.set_axis_off()
    for heading, space in (("original space", "original"), ("t-SNE's planes", "plane")):
        first = _COLUMN_ENDS[f"{space} re"]
        last = _COLUMN_ENDS[f"{space} im"]
        _draw_heading(axes, heading, first, last)
    for column, end in _COLUMN_ENDS.items():
        _, _, half = column.rpartition(" ")
        axes.text(end, 0.5, half, ha="right", va="center")
    distances = {
        "original re": halves.original.real,
        "original im": halves.original.imaginary,
        "plane re": halves.plane.real,
        "plane im": halves.plane.imaginary,
    }
    write = partial(axes.text, va="center", fontsize=_SMALL)
    for number, (sample, line) in enumerate(zip(halves.samples, _LINES, strict=True)):
        top = _PAIR_ROWS * number + 1.9
        middle = top + 0.5
        axes.plot([0.0, 0.02], [middle, middle], color=line, linewidth=2, clip_on=False)
        write(0.03, middle, str(number + 1), fontweight="bold")
        write(0.055, top, fit_text(sample.text1, _MAX_TEXT), fontsize=7)
        write(0.055, top + 1, fit_text(sample.text2, _MAX_TEXT), fontsize=7)
        write(_COLUMN_ENDS["gold"], middle, f"{sample.gold:g}", ha="right")
        for column, distance in distances.items():
            figure = _three_digits(float(distance.values[sample.pair]))
            write(_COLUMN_ENDS[column], middle, figure, ha="right")


def _draw_heading(axes: Axes, heading: str, first: float, last: float) -> None:
    """Write a heading over two columns, with a line below it."""
    centre = (first + last) / 2 - 0.025
    axes.text(centre, -0.9, heading, ha="center", va="center")
    axes.plot([first - 0.065, last], [-0.15, -0.15], color=GREY, linewidth=0.5)


def _three_digits(value: float) -> str:
    """Three significant digits, such as 0.370 and 23.3."""
    return f"{value:#.3g}".rstrip(".")
