"""Draws curves of training runs: one panel per quantity, one line per model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.figures.numbers import Curve, Curves, Dev
from papers.figures.style import COLOURS, MARKERS, PALE, WIDTH, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_PANEL_HEIGHT = 1.75  # inches
_LEGEND_LINE = 0.22
_LEGEND_COLUMNS = 3
_RING: dict[str, Any] = {"marker": "o", "markersize": 8, "fillstyle": "none"}
_STYLES = ("-", "--", "-.", ":")
_MAX_MARKERS = 30  # points of a curve that still get markers


def draw_curves(models: Mapping[str, Curves]) -> Figure:
    """Draw the loss, its parts and the dev metric by step; a ring marks the best weights."""
    from matplotlib.figure import Figure

    panels = _panels(models)
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    legend_rows = math.ceil((len(models) + 1) / _LEGEND_COLUMNS)
    height = rows * _PANEL_HEIGHT + legend_rows * _LEGEND_LINE
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    lines: dict[str, Line2D] = {}
    for number, (title, curves) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, number + 1)
        for order, (name, model) in enumerate(models.items()):
            if name not in curves:
                continue
            lines[name] = _draw_line(axes, curves[name], order)
            if model.dev is not None and title == _dev_title(model.dev.metric):
                _ring(axes, model.dev, order)
        _finish(axes, title, below=number < len(panels) - columns)
    _legend(figure, lines, ring=any(model.dev is not None for model in models.values()))
    return figure


def _legend(figure: Figure, lines: dict[str, Line2D], *, ring: bool) -> None:
    from matplotlib.lines import Line2D

    names = [fit_text(name, 32) for name in lines]
    handles = list(lines.values())
    if ring:
        names.append("best weights")
        handles.append(Line2D([], [], color="black", linestyle="none", **_RING))
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=_LEGEND_COLUMNS,
        handlelength=2.8,
    )


def _panels(models: Mapping[str, Curves]) -> dict[str, dict[str, Curve]]:
    """The curves by panel title and model, in the order of the panels."""
    panels: dict[str, dict[str, Curve]] = {
        "loss": {name: model.loss for name, model in models.items()}
    }
    for name, model in models.items():
        for part, curve in model.parts.items():
            title = part if part.endswith(".loss") else f"{part}, unweighted"
            panels.setdefault(title, {})[name] = curve
    for name, model in models.items():
        if model.dev is None:
            continue
        curves = {model.dev.metric: model.dev.curve, **model.dev.sets}
        for metric, curve in curves.items():
            panels.setdefault(_dev_title(metric), {})[name] = Curve(
                curve.x, 100 * curve.y
            )
    return panels


def _dev_title(metric: str) -> str:
    return f"dev {metric.replace('_', ' ')} × 100"


def _draw_line(axes: Axes, curve: Curve, order: int) -> Line2D:
    (line,) = axes.plot(
        curve.x,
        curve.y,
        color=COLOURS[order % len(COLOURS)],
        linestyle=_STYLES[order % len(_STYLES)],
        marker=MARKERS[order % len(MARKERS)] if len(curve.x) <= _MAX_MARKERS else None,
        markersize=3,
        linewidth=1.1,
        clip_on=False,
    )
    return line


def _ring(axes: Axes, dev: Dev, order: int) -> None:
    best = np.flatnonzero(dev.curve.x == dev.best_step)
    axes.plot(
        dev.curve.x[best],
        100 * dev.curve.y[best],
        color=COLOURS[order % len(COLOURS)],
        clip_on=False,
        **_RING,
    )


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
