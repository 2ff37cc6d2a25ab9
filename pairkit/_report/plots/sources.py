"""Pairs by source (the papers' Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pairkit._report.plots.canvas import SIDES, Panel, Plot
from pairkit._report.rows import Rows
from pairkit.printable import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 55  # as many as the papers have repositories


def plot_sources(rows: Rows, sources: Mapping[str, Mapping[str, int]]) -> Plot:
    """Bars, the largest source on top, those beyond the largest 55 in one."""
    bars = [(name, counts[rows.keys[0]], counts[rows.keys[1]]) for name, counts in sources.items()]
    shown, rest = bars[:_MOST_BARS], bars[_MOST_BARS:]
    if rest:
        shown.append((f"{len(rest):,} others", sum(bar[1] for bar in rest), sum(bar[2] for bar in rest)))
    height = 0.75 + 0.17 * max(3, len(shown))
    panel = Panel(partial(_draw, bars=shown[::-1], names=rows.names), width=4.6, height=height)
    return Plot("sources", f"Pairs by {rows.named_by}", "", [panel])


def _draw(axes: Axes, bars: list[tuple[str, int, int]], names: tuple[str, str]) -> None:
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
