"""The figures of a report; matplotlib is imported when one is drawn.

Violins of token lengths by split with the line at 512, overlaps of either side, scores by split, pairs by
source (the papers' Fig. 7 to 9).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairkit.app.printable import one_line
from pairkit.reports.counts import ORDERS, long_share, text_tokens
from pairkit.reports.pictures import drawing, image
from pairkit.reports.rows import ReportRows
from pairkit.similarity.measures import LONG_TOKENS
from pairkit.system.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Each colour stands for a role; the page puts its own variables in their place, for light and for dark.
INK, GRID, LIMIT = "#26323d", "#d9dfe5", "#c2183f"
SIDES = ("#d8701a", "#1273b5")  # negative or low, positive or high; told apart by the colour-blind, too
_ROLES = {INK: "ink", GRID: "line", LIMIT: "limit", SIDES[0]: "low", SIDES[1]: "high"}
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 8, "axes.titlesize": 9,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.spines.top": False,
    "axes.spines.right": False, "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.titlecolor": INK,
    "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.linewidth": 0.6, "axes.axisbelow": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "legend.frameon": False, "svg.fonttype": "none",
}  # fmt: skip
_DPI = 200
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; on a page each panel is a picture of its own, so that a phone can stack them."""

    draw: Callable[[Axes], None]
    width: float = 3.5
    height: float = 2.7


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure: panels side by side, and in words what is to be seen."""

    name: str
    title: str
    caption: str
    panels: Sequence[Panel]


def save_plot(plot: Plot, folder: Path) -> None:
    """Write NAME.png and NAME.svg, all panels in one row, on white."""
    width, height = sum(panel.width for panel in plot.panels), max(panel.height for panel in plot.panels)
    with _drawn(plot.name, plot.panels, (width, height)) as figure:
        for kind in ("png", "svg"):
            write_bytes(folder / f"{plot.name}.{kind}", image(figure, kind, dpi=_DPI, facecolor="white"))


def inline_svgs(plot: Plot) -> list[str]:
    """Each panel as an SVG element for a page: transparent, in the page's colours and font."""
    return [_inline(f"{plot.name}{place}", panel) for place, panel in enumerate(plot.panels)]


def _inline(name: str, panel: Panel) -> str:
    with _drawn(name, [panel], (panel.width, panel.height)) as figure:
        svg = image(figure, "svg", transparent=True).decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Several pictures share the page: what one calls by its name must not be another's.
    svg = _REFERENCE.sub(rf"\1{name}-", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for colour, role in _ROLES.items():
        svg = svg.replace(colour, f"var(--{role})")
    return svg


@contextmanager
def _drawn(name: str, panels: Sequence[Panel], size: tuple[float, float]) -> Iterator[Figure]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with drawing({**_STYLE, "svg.hashsalt": name}):  # equal data, equal bytes
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        row = figure.subplots(1, len(panels), squeeze=False, width_ratios=[panel.width for panel in panels])[
            0
        ]
        for axes, panel in zip(row, panels, strict=True):
            panel.draw(axes)
        yield figure


_FEWEST = 5  # fewer texts are drawn as what they are: points


def plot_lengths(rows: ReportRows) -> Plot:
    """One panel for each split, all with the same axis."""
    lengths = text_tokens(rows.frame).to_numpy()
    bounds = np.log2([lengths.min(), max(lengths.max(), LONG_TOKENS)])
    limits = (float(bounds[0]) - 0.5, float(bounds[1]) + 1.2)  # room for the shares above
    panels = []
    for split in rows.splits:
        tokens = [text_tokens(rows.side(side, split)) for side in (0, 1)]
        panels.append(
            Panel(partial(_draw_lengths, title=split, tokens=tokens, names=rows.names, limits=limits))
        )
    return Plot(
        "lengths",
        "Token lengths",
        "Tokens of both texts of every pair, on a logarithmic axis; the bar is the median, the dashed line "
        f"stands at {LONG_TOKENS}, beyond which BERT-like models read no further. Above each violin: the "
        "share of texts beyond the line.",
        panels,
    )


def _draw_lengths(
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


_OVERLAP_BARS = 30
_TOP_QUANTILE = 0.99


def plot_overlap(rows: ReportRows) -> Plot:
    """One panel for each order, all with the same axes of per cent."""
    top = _top(rows)
    last = top - top / _OVERLAP_BARS
    panels = []
    for order in ORDERS:
        values = [rows.side(side)[f"overlap{order}"].drop_nulls().to_numpy() for side in (0, 1)]
        panels.append(Panel(partial(_draw_overlap, order=order, values=values, names=rows.names, top=top)))
    return Plot(
        "overlap",
        "n-gram overlap",
        "How many pairs of either side have how much overlap; dashed lines are the means. The vertical axis "
        "is logarithmic, as most pairs share few n-grams"
        + ("." if top >= 100 else f", and the last bar holds every pair from {last:.0f} % up."),
        panels,
    )


def _top(rows: ReportRows) -> float:
    """Where the axis ends: a full ten that all but the last hundredth of the pairs stay below."""
    high = rows.frame["overlap1"].quantile(_TOP_QUANTILE)
    return min(100.0, float(10 * np.ceil(((high or 0) + 1) / 10)))


def _draw_overlap(
    axes: Axes, order: int, values: list[np.ndarray], names: tuple[str, str], top: float
) -> None:
    from matplotlib.ticker import PercentFormatter

    edges = np.linspace(0, top, _OVERLAP_BARS + 1)
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


_SCORES_BARS = 20


def plot_scores(rows: ReportRows, cut: float) -> Plot:
    """One panel for each split; bars below the cut in the colour of the low side."""
    scores = rows.frame["label"].to_numpy()
    edges = np.linspace(scores.min(), max(scores.max(), scores.min() + 1e-6), _SCORES_BARS + 1)
    panels = [
        Panel(partial(_draw_scores, title=split, scores=of_split["label"].to_numpy(), edges=edges, cut=cut))
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


def _draw_scores(axes: Axes, title: str, scores: np.ndarray, edges: np.ndarray, cut: float) -> None:
    heights = np.histogram(scores, edges)[0]
    middles = (edges[:-1] + edges[1:]) / 2
    colours = [SIDES[int(middle >= cut)] for middle in middles]
    axes.bar(middles, heights, width=0.92 * (edges[1] - edges[0]), color=colours)
    axes.axvline(cut, color=INK, ls="--", lw=1)
    axes.grid(axis="y")
    axes.set_xlabel("score")
    axes.set_ylabel("pairs")
    axes.set_title(title)


_MOST_BARS = 55  # as many as the papers have repositories


def plot_sources(rows: ReportRows, sources: Mapping[str, Mapping[str, int]]) -> Plot:
    """Bars, the largest source on top, those beyond the largest 55 in one."""
    bars = [(name, counts[rows.keys[0]], counts[rows.keys[1]]) for name, counts in sources.items()]
    shown, rest = bars[:_MOST_BARS], bars[_MOST_BARS:]
    if rest:
        shown.append((f"{len(rest):,} others", sum(bar[1] for bar in rest), sum(bar[2] for bar in rest)))
    height = 0.75 + 0.17 * max(3, len(shown))
    panel = Panel(partial(_draw_sources, bars=shown[::-1], names=rows.names), width=4.6, height=height)
    return Plot("sources", f"Pairs by {rows.named_by}", "", [panel])


def _draw_sources(axes: Axes, bars: list[tuple[str, int, int]], names: tuple[str, str]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    places = range(len(bars))
    lows, highs = [bar[1] for bar in bars], [bar[2] for bar in bars]
    axes.barh(places, highs, color=SIDES[1], height=0.72, label=names[1])
    axes.barh(places, lows, left=highs, color=SIDES[0], height=0.72, label=names[0])
    axes.set_yticks(places, [_short(bar[0]) for bar in bars])
    axes.set_ylim(-0.6, len(bars) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("pairs")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


def _short(name: str) -> str:
    """No longer than an axis has room for; `$` as what it is, as matplotlib takes it for mathematics."""
    name = one_line(name, None)
    shown = name if len(name) <= 32 else name[:31] + "…"
    return shown.replace("$", r"\$")
