"""How many suggestions a week, and how right they are: the picture by which one chooses a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairkit.agreement import wilson
from pairkit.pictures import drawing, image

_INK, _LINE, _BAND, _GRID = "#26323d", "#1273b5", "#c5ddee", "#d9dfe5"
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": _INK, "axes.labelcolor": _INK,
    "text.color": _INK, "xtick.color": _INK, "ytick.color": _INK, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": _GRID, "grid.linewidth": 0.6, "svg.hashsalt": "gis suggest",
}  # fmt: skip
_FEWEST = 5  # suggestions before a share means anything
_MARKED = (0.1, 0.3, 0.5, 0.7, 0.9)
_POINTS = 300  # of the line


def precision_picture(told: NDArray[np.float64], right: NDArray[np.bool_], weeks: float) -> bytes:
    """An SVG: the share that is right of the most probable suggestions, by how many they are a week.

    Args:
        told: The probability of each issue's first hit.
        right: Whether it was right.
        weeks: How long the issues took to come.
    """
    order = np.argsort(-told, kind="stable")
    counts = np.arange(1, len(order) + 1)
    hits = np.cumsum(right[order])
    # Only where the probability changes a threshold could be.
    ends = np.flatnonzero(np.append(np.diff(told[order]) != 0, True) & (counts >= _FEWEST))
    ends = ends[_spread(len(ends))]
    bounds = np.array([wilson(hits[end], counts[end]) for end in ends]).reshape(-1, 2)
    with drawing(_STYLE):
        from matplotlib.figure import Figure
        from matplotlib.ticker import StrMethodFormatter

        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        axes = figure.subplots()
        weekly = counts[ends] / weeks
        axes.fill_between(weekly, bounds[:, 0], bounds[:, 1], color=_BAND, linewidth=0)
        axes.plot(weekly, hits[ends] / counts[ends], color=_LINE, linewidth=1.5)
        for least in _MARKED:
            said = int((told >= least).sum())
            if said >= _FEWEST:
                at = (said / weeks, hits[said - 1] / said)
                axes.plot(*at, "o", color=_LINE, markersize=4)
                axes.annotate(f"{least:g}", at, textcoords="offset points", xytext=(4, 5), fontsize=8)
        axes.set_ylim(0, 1.02)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel("suggestions a week")
        axes.set_ylabel("share that is right, with its 95 % interval")
        return image(figure, "svg")


def _spread(count: int) -> NDArray[np.intp]:
    """Some of so many places, denser at the beginning, as a logarithmic axis shows them."""
    spread = np.geomspace(1, count, min(count, _POINTS)) - 1 if count else np.empty(0)
    return np.unique(spread.round().astype(np.intp))
