"""From panels to files, and to SVG that stands inside a page and follows its colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.files import write_bytes
from pairkit.pictures import drawing, image

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
    """One pair of axes; on a page each panel is a picture of its own, so that a phone can stack them.

    Attributes:
        draw: Draws on the axes it is given.
        width: Inches.
        height: Inches.
    """

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
    """Write NAME.png and NAME.svg, all panels in one row, on white.

    Raises:
        ConfigError: a file can't be written.
    """
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
