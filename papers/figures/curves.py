"""Curves of training runs: one panel per quantity, one line per model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairkit.base.errors import ConfigError, DataError
from papers.figures.densities import Curve
from papers.figures.style import COLOURS, MARKERS, PALE, fit_text, new_figure

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


@dataclass(frozen=True)
class Dev:
    """The dev metric, which chose the weights."""

    metric: str
    curve: Curve
    best_step: int | None
    sets: Mapping[str, Curve]


@dataclass(frozen=True)
class Curves:
    """A run's curves against optimiser steps."""

    loss: Curve
    parts: Mapping[str, Curve]
    dev: Dev | None


def read_curves(model: str) -> Curves:
    """The curves of a model's run.json: the loss, its parts and the dev metric."""
    path = Path(model) / "run.json"
    if not path.is_file():
        raise ConfigError(
            f"{model}: no run.json; only model folders of `aoe train` have curves"
        )
    try:
        curves = _curves(json.loads(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"no readable history ({type(error).__name__} {error}); expected a run.json of `aoe train`",
            path=path,
        ) from error
    if not len(curves.loss.x):
        raise DataError("the history is empty", path=path)
    return curves


def _curves(run: Mapping[str, Any]) -> Curves:
    history = run["history"]
    settings = run["origin"]["settings"]
    names = list(settings["objective"]["weights"])
    if len(run.get("datasets", ())) > 1:
        names = []
        for dataset in run["datasets"]:
            weights = settings["datasets"][dataset]["objective"]["weights"]
            names += [f"{dataset}.{part}" for part in ("loss", *weights)]
    parts = {}
    for name in names:
        if any(name in entry for entry in history):
            parts[name] = _curve(history, name)
    return Curves(_curve(history, "loss"), parts, _dev(run))


def _dev(run: Mapping[str, Any]) -> Dev | None:
    result = run["result"]
    if result["dev_metric"] is None:
        return None
    before = {"step": 0, "eval_dev": result["dev_before"]}
    entries = [before, *run["dev_history"]]
    sets = {}
    for name, dev in result.get("dev_sets", {}).items():
        key = f"eval_dev.{name}"
        before[key] = dev["before"]
        sets[f"{name}: {dev['metric']}"] = _curve(entries, key)
    return Dev(
        metric=str(result["dev_metric"]),
        curve=_curve(entries, "eval_dev"),
        best_step=run["best_step"],
        sets=sets,
    )


def _curve(entries: Sequence[Mapping[str, Any]], key: str) -> Curve:
    logged = [entry for entry in entries if key in entry]
    steps = [entry["step"] for entry in logged]
    values = [entry[key] for entry in logged]
    return Curve(np.array(steps, np.float64), np.array(values, np.float64))


def draw_curves(models: Mapping[str, Curves]) -> Figure:
    """Draw the loss, its parts and the dev metric by step; a ring marks the best weights."""
    panels = _panels(models)
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    legend_rows = math.ceil((len(models) + 1) / _LEGEND_COLUMNS)
    figure = new_figure(rows * _PANEL_HEIGHT + legend_rows * _LEGEND_LINE)
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
    has_dev = any(model.dev is not None for model in models.values())
    _legend(figure, lines, ring=has_dev)
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
    colour = COLOURS[order % len(COLOURS)]
    axes.plot(
        dev.curve.x[best],
        100 * dev.curve.y[best],
        color=colour,
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
