"""Violins of token lengths by split and side, with the line at 512 (the papers' Fig. 9)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairkit._report.counts import long_share, text_tokens
from pairkit._report.plots.canvas import INK, LIMIT, SIDES, Panel, Plot
from pairkit._report.rows import Rows
from pairkit.length import LONG_TOKENS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST = 5  # fewer texts are drawn as what they are: points


def plot_lengths(rows: Rows) -> Plot:
    """One panel for each split, all with the same axis."""
    lengths = text_tokens(rows.frame).to_numpy()
    bounds = np.log2([lengths.min(), max(lengths.max(), LONG_TOKENS)])
    limits = (float(bounds[0]) - 0.5, float(bounds[1]) + 1.2)  # room for the shares above
    panels = []
    for split in rows.splits:
        tokens = [text_tokens(rows.side(side, split)) for side in (0, 1)]
        panels.append(Panel(partial(_draw, title=split, tokens=tokens, names=rows.names, limits=limits)))
    return Plot(
        "lengths",
        "Token lengths",
        "Tokens of both texts of every pair, on a logarithmic axis; the bar is the median, the dashed line "
        f"stands at {LONG_TOKENS}, beyond which BERT-like models read no further. Above each violin: the "
        "share of texts beyond the line.",
        panels,
    )


def _draw(
    axes: Axes, title: str, tokens: list[pl.Series], names: tuple[str, str], limits: tuple[float, float]
) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    for side, lengths in enumerate(tokens):
        if not len(lengths):
            continue
        logs = np.log2(lengths.to_numpy())
        _violin(axes, logs, side)
        share = f"{100 * long_share(lengths):.0f} %"
        axes.text(side, limits[1] - 0.15, share, ha="center", va="top", color=LIMIT, fontweight="bold")
        axes.hlines(np.median(logs), side - 0.14, side + 0.14, color=INK, lw=1.6)
    axes.axhline(np.log2(LONG_TOKENS), color=LIMIT, ls="--", lw=1)
    medians = [
        f"median {np.median(lengths.to_numpy()):,.0f}" if len(lengths) else "none" for lengths in tokens
    ]
    axes.set_xticks([0, 1], [f"{name}\n{median}" for name, median in zip(names, medians, strict=True)])
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylim(*limits)
    axes.yaxis.set_major_locator(MultipleLocator(2, offset=1))  # 8, 32, 128, 512, 2048
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{2**value:,.0f}"))
    axes.grid(axis="y")
    axes.set_ylabel("tokens")
    axes.set_title(title)


def _violin(axes: Axes, logs: np.ndarray, side: int) -> None:
    """`logs`: binary logarithms of lengths, `(text,)`."""
    if len(logs) < _FEWEST or np.ptp(logs) == 0:
        axes.plot([side] * len(logs), logs, "o", ms=4, color=SIDES[side], alpha=0.6)
        return
    drawn = axes.violinplot(logs, positions=[side], widths=0.85, showextrema=False, points=160)
    for body in drawn["bodies"]:  # type: ignore[attr-defined]  # a list of artists, which the stubs call one artist
        body.set(alpha=None, facecolor=(SIDES[side], 0.5), edgecolor=SIDES[side], linewidth=0.9)
