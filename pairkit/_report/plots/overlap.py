"""How n-gram overlap is distributed on either side (the papers' Fig. 8)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pairkit._report.overlap import ORDERS
from pairkit._report.plots.canvas import SIDES, Panel, Plot
from pairkit._report.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS = 30
_TOP_QUANTILE = 0.99


def plot_overlap(rows: Rows) -> Plot:
    """One panel for each order, all with the same axes of per cent."""
    top = _top(rows)
    panels = []
    for order in ORDERS:
        values = [rows.side(side)[f"overlap{order}"].drop_nulls().to_numpy() for side in (0, 1)]
        panels.append(Panel(partial(_draw, order=order, values=values, names=rows.names, top=top)))
    return Plot(
        "overlap",
        "n-gram overlap",
        "How many pairs of either side have how much overlap; dashed lines are the means. The vertical axis "
        "is logarithmic, as most pairs share few n-grams"
        + ("." if top >= 100 else f", and the last bar holds every pair from {top - top / _BARS:.0f} % up."),
        panels,
    )


def _top(rows: Rows) -> float:
    """Where the axis ends: a full ten that all but the last hundredth of the pairs stay below."""
    high = rows.frame["overlap1"].quantile(_TOP_QUANTILE)
    return min(100.0, float(10 * np.ceil(((high or 0) + 1) / 10)))


def _draw(axes: Axes, order: int, values: list[np.ndarray], names: tuple[str, str], top: float) -> None:
    from matplotlib.ticker import PercentFormatter

    edges = np.linspace(0, top, _BARS + 1)
    for side, found in enumerate(values):
        if not len(found):
            continue
        shares = 100 * np.histogram(np.minimum(found, top), edges)[0] / len(found)
        mean = float(np.mean(found))
        label = f"{names[side]}, mean {mean:.1f} %"
        axes.stairs(shares, edges, fill=True, color=SIDES[side], alpha=0.3)
        axes.stairs(shares, edges, color=SIDES[side], lw=1.4, label=label)
        axes.vlines(mean, 0, 100, color=SIDES[side], ls="--", lw=1)
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(0, 450)  # room for the legend
    axes.set_yticks([0, 1, 3, 10, 30, 100], minor=False)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))
    axes.set_xlim(0, top)
    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))
    axes.grid(axis="y")
    axes.set_xlabel("overlap")
    axes.set_ylabel("pairs")
    axes.set_title(f"{order}-grams")
    if any(map(len, values)):
        axes.legend(loc="upper right", fontsize=7.5)
