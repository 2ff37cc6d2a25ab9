"""How right probabilities are, drawn: what was told against what was seen, and the hits of each bin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from aoe_train._figures.style import COLOURS, GREY, shown
from pairkit.agreement import wilson

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (3.4, 4.2)  # inches: a column of a page
_HEIGHTS = (3.1, 0.9)


def draw_reliability(
    told: Sequence[float], seen: Sequence[float], counts: Sequence[int], *, title: str, width: float = 0.1
) -> Figure:
    """The figure of one calibration.

    Args:
        told: The mean probability of each bin.
        seen: The share of it that was right, which gets Wilson's 95 % interval.
        counts: How many it has.
        title: Above it.
        width: Of a bin.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=_HEIGHTS)
    figure.suptitle(shown(title, 60), x=0.01, ha="left", fontsize=8.5)
    above.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", label="told is seen")
    ends = np.array([wilson(share * n, n) or (share, share) for share, n in zip(seen, counts, strict=True)])
    reach = np.abs(ends.T - np.array(seen)) if len(seen) else None
    above.errorbar(
        told, seen, reach, color=COLOURS[0], marker="o", markersize=4, capsize=2, label="seen, 95 % interval"
    )
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share that says the same")
    above.legend(loc="upper left")
    places = np.floor(np.array(told) / width + 1e-9) * width
    below.bar(places, counts, width=width, align="edge", color=COLOURS[5], edgecolor="white", linewidth=0.4)
    below.set_yscale("log")
    below.set_ylim(bottom=0.5)  # so that a single hit has a bar
    below.yaxis.set_major_formatter("{x:,.0f}")
    below.minorticks_off()
    below.set(xlabel="probability that was told", ylabel="hits")
    return figure
