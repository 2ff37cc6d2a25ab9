"""Curves of training runs, drawn: a panel for each quantity, a line for each model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.figures.numbers import Curve, Curves, Dev
from papers.figures.style import COLOURS, MARKERS, PALE, WIDTH, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_ROW, _NAMES = 1.75, 0.22  # inches, heights of a row of panels and of a line of names
_NAMES_A_LINE = 3
_RING: dict[str, Any] = {"marker": "o", "markersize": 8, "fillstyle": "none"}
_STYLES = ("-", "--", "-.", ":")
_FEW = 30  # points of a curve: each gets a mark


def draw_curves(models: Mapping[str, Curves]) -> Figure:
    """The loss, its parts and the dev metric against steps; what the kept weights reached has a ring."""
    from matplotlib.figure import Figure

    panels = _panels(models)
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (WIDTH, rows * _ROW + -(-(len(models) + 1) // _NAMES_A_LINE) * _NAMES)
    figure = Figure(figsize=size, layout="constrained")
    lines: dict[str, Line2D] = {}
    for number, (title, curves) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, number + 1)
        for order, name in enumerate(models):
            if name in curves:
                lines[name] = _draw_line(axes, curves[name], order)
                dev = models[name].dev
                if dev is not None and title == _dev_title(dev):
                    _ring(axes, dev, order)
        _finish(axes, title, below=number < len(panels) - columns)
    _legend(figure, lines, ring=any(model.dev is not None for model in models.values()))
    return figure


def _legend(figure: Figure, lines: dict[str, Line2D], *, ring: bool) -> None:
    from matplotlib.lines import Line2D

    names, handles = [shown(name, 32) for name in lines], list(lines.values())
    if ring:
        names.append("the weights kept")
        handles.append(Line2D([], [], color="black", linestyle="none", **_RING))
    figure.legend(handles, names, loc="outside upper left", ncols=_NAMES_A_LINE, handlelength=2.8)


def _panels(models: Mapping[str, Curves]) -> dict[str, dict[str, Curve]]:
    """Each quantity's curves by model, in the order of the panels."""
    panels: dict[str, dict[str, Curve]] = {"loss": {name: model.loss for name, model in models.items()}}
    for name, model in models.items():
        for part, curve in model.parts.items():
            told = part if part.endswith(".loss") else f"{part}, unweighted"
            panels.setdefault(told, {})[name] = curve
    for name, model in models.items():
        if model.dev is not None:
            panels.setdefault(_dev_title(model.dev), {})[name] = _hundredfold(model.dev.curve)
            for told, curve in model.dev.sets.items():
                panels.setdefault(f"dev {told.replace('_', ' ')} × 100", {})[name] = _hundredfold(curve)
    return panels


def _dev_title(dev: Dev) -> str:
    return f"dev {dev.metric.replace('_', ' ')} × 100"


def _hundredfold(curve: Curve) -> Curve:
    return Curve(curve.x, 100 * curve.y)


def _draw_line(axes: Axes, curve: Curve, order: int) -> Line2D:
    (line,) = axes.plot(
        curve.x,
        curve.y,
        color=COLOURS[order % len(COLOURS)],
        linestyle=_STYLES[order % len(_STYLES)],
        marker=MARKERS[order % len(MARKERS)] if len(curve.x) <= _FEW else None,
        markersize=3,
        linewidth=1.1,
        clip_on=False,
    )
    return line


def _ring(axes: Axes, dev: Dev, order: int) -> None:
    at = np.flatnonzero(dev.curve.x == dev.best_step)
    best = _hundredfold(dev.curve)
    axes.plot(best.x[at], best.y[at], color=COLOURS[order % len(COLOURS)], clip_on=False, **_RING)


def _finish(axes: Axes, title: str, *, below: bool) -> None:
    axes.set_title(title)
    axes.grid(visible=True, axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.locator_params(axis="y", nbins=5)
    axes.margins(y=0.1)
    axes.set_xlim(left=0)
    if not below:
        axes.set_xlabel("optimiser step")
