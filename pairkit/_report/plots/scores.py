"""How graded labels are distributed in each split."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairkit._report.plots.canvas import INK, SIDES, Panel, Plot
from pairkit._report.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS = 20


def plot_scores(rows: Rows, cut: float) -> Plot:
    """One panel for each split; bars below the cut in the colour of the low side."""
    scores = rows.frame["label"].to_numpy()
    edges = np.linspace(scores.min(), max(scores.max(), scores.min() + 1e-6), _BARS + 1)
    panels = [
        Panel(partial(_draw, title=split, scores=of_split["label"].to_numpy(), edges=edges, cut=cut))
        for split in rows.splits
        for of_split in [rows.frame.filter(pl.col("split") == split)]
    ]
    return Plot(
        "scores",
        "Scores",
        f"Labels are scores; everywhere else on this page they are cut at {cut:g}, the middle between the "
        "lowest and the highest score found.",
        panels,
    )


def _draw(axes: Axes, title: str, scores: np.ndarray, edges: np.ndarray, cut: float) -> None:
    heights = np.histogram(scores, edges)[0]
    middles = (edges[:-1] + edges[1:]) / 2
    colours = [SIDES[int(middle >= cut)] for middle in middles]
    axes.bar(middles, heights, width=0.92 * (edges[1] - edges[0]), color=colours)
    axes.axvline(cut, color=INK, ls="--", lw=1)
    axes.grid(axis="y")
    axes.set_xlabel("score")
    axes.set_ylabel("pairs")
    axes.set_title(title)
