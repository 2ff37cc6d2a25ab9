"""Plots of an evaluation as HTML with SVG: gains with intervals, and histograms of cosines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aoe_train.evaluation.pair_metrics import Binary
from aoe_train.evaluation.resample import Comparison
from aoe_train.evaluation.score import Score
from pairkit.base.cli.result_table import escape

_BINS = 40
_SIDES = ("low", "high")  # CSS classes


def gain_plots(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """The difference of each metric from the other model's, with its interval, on one scale around 0."""
    gains = {}
    bounds = [0.0]
    for model, by_task in scores.items():
        for task, score in by_task.items():
            for metric, comparison in score.comparisons.items():
                name = task if len(scores) == 1 else model
                gains[f"{name}: {metric}"] = comparison
                bounds += map(abs, comparison.interval)
    edge = max(bounds)
    if not edge:
        return ""
    rows = "".join(_gain_row(name, gain, edge) for name, gain in gains.items())
    axis = _line(f"{-100 * edge:.2f}", "0", f"{100 * edge:.2f}")
    note = "<p>Differences times 100, with 95 % intervals. An interval that contains 0 is grey.</p>"
    return f'<figure class="plot gains">{rows}{axis}</figure>{note}'


def _gain_row(name: str, gain: Comparison, edge: float) -> str:
    low, high = gain.interval
    side = ""
    if low > 0 or high < 0:
        side = _SIDES[low > 0]
    values = (low, gain.difference, high)
    start, middle, end = (100 + 98 * value / edge for value in values)
    bar = f'<path class="{side}" d="M{start:.2f} 5H{end:.2f}M{middle:.2f} 1V9"/>'
    numbers = f"{100 * gain.difference:+.2f} [{100 * low:.2f}, {100 * high:.2f}]"
    return _line(escape(name), numbers) + _picture(200, 10, bar)


def cosine_plots(scores: Mapping[str, Mapping[str, Score]], against: str | None) -> str:
    """For each task with labels 0 and 1, histograms of the pairs' cosines by each model."""
    plots = []
    for task in next(iter(scores.values())):
        measured: list[tuple[str, Binary]] = []
        for model, by_task in scores.items():
            pairs = zip((model, against or ""), by_task[task].metrics, strict=False)
            measured += [
                (name, metrics)
                for name, metrics in pairs
                if isinstance(metrics, Binary)
            ]
        if measured:
            histograms = _histograms(measured)
            plots.append(
                f'<h3>{escape(task)}</h3><div class="tables">{histograms}</div>'
            )
    if not plots:
        return ""
    note = "<p>The better the labels are separated, the better the model. Both areas are equal.</p>"
    return "".join(plots) + note


def _histograms(measured: Sequence[tuple[str, Binary]]) -> str:
    """A histogram for each model, all with the same bins."""
    cosines = np.concatenate([metrics.cosines for _, metrics in measured])
    edges = np.linspace(cosines.min(), cosines.max(), _BINS + 1)
    axis = _line(*(f"{edges[place]:.2f}" for place in (0, _BINS // 2, _BINS)))
    return "".join(_histogram(name, metrics, edges, axis) for name, metrics in measured)


def _histogram(
    name: str,
    metrics: Binary,
    edges: np.ndarray,
    axis: str,
) -> str:
    by_label = [metrics.cosines[metrics.labels == label] for label in (0, 1)]
    heights = []
    for cosines in by_label:
        counts, _ = np.histogram(cosines, edges)
        heights.append(counts / max(1, len(cosines)))
    highest = np.max(heights)
    areas = ""
    legend = []
    for label, side in enumerate(_SIDES):
        steps = "".join(f"V{top:.4f}h1" for top in 1 - heights[label] / highest)
        areas += f'<path class="{side}" d="M0 1{steps}V1Z"/>'
        legend.append(
            f'<b class="{side}">label {label}: {len(by_label[label]):,} pairs</b>'
        )
    plot = _line(*legend) + _picture(_BINS, 1, areas) + axis
    return f'<figure class="plot areas"><b>{escape(name)}</b>{plot}</figure>'


def _picture(width: int, height: int, inner: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">{inner}</svg>'


def _line(*parts: str) -> str:
    """Texts at both ends of a line, and between them."""
    spans = [f"<span>{part}</span>" for part in parts]
    return f"<p>{''.join(spans)}</p>"
