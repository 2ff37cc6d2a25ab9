"""Plots of an evaluation as HTML with SVG: gains with intervals, and histograms of cosines."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aoe_train.evaluation.pair_metrics import Binary
from aoe_train.evaluation.resample import Comparison
from aoe_train.evaluation.score import Score
from pairkit.base.cli.result_table import escape

_BINS = 40
_COLOURS = {0: "var(--low)", 1: "var(--high)"}


def gain_plots(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """The difference of each metric from the other model's, with its interval, on one scale around 0."""
    compared = {
        f"{task if len(scores) == 1 else model}: {metric}": comparison
        for model, by_task in scores.items()
        for task, score in by_task.items()
        for metric, comparison in score.comparisons.items()
    }
    edge = max((abs(bound) for gain in compared.values() for bound in gain.interval), default=0)
    if not edge:
        return ""
    rows = [_gain_row(name, gain, edge) for name, gain in compared.items()]
    axis = _ends(f"{-100 * edge:.2f}", "0", f"{100 * edge:.2f}")
    note = "<p>Differences times 100, with 95 % intervals. An interval that contains 0 is grey.</p>"
    return f'<figure class="plot">{"".join(rows)}{axis}</figure>{note}'


def _gain_row(name: str, gain: Comparison, edge: float) -> str:
    low, high = gain.interval
    colour = _COLOURS[int(low > 0)] if low > 0 or high < 0 else "var(--soft)"
    start, middle, end = (100 + 98 * value / edge for value in (low, gain.difference, high))
    lines = (
        _line("M100 0V10", "var(--line)", 2),
        _line(f"M{start:.2f} 5H{end:.2f}", colour, 3),
        _line(f"M{middle:.2f} 1V9", colour, 5),
    )
    numbers = f"{100 * gain.difference:+.2f} [{100 * low:.2f}, {100 * high:.2f}]"
    return _ends(escape(name), numbers) + _svg(200, 10, "1.1rem", "".join(lines))


def cosine_plots(scores: Mapping[str, Mapping[str, Score]], against: str | None) -> str:
    """For each task with labels 0 and 1, histograms of the pairs' cosines by each model."""
    plots = []
    for task in next(iter(scores.values())):
        by_model = {
            name: metrics
            for model, by_task in scores.items()
            for name, metrics in zip((model, against or ""), by_task[task].metrics, strict=False)
            if isinstance(metrics, Binary)
        }
        if by_model:
            plots.append(f"<h3>{escape(task)}</h3>{_histograms(by_model)}")
    note = "<p>The better the labels are separated, the better the model. Areas of both labels are equal.</p>"
    return "".join([*plots, note]) if plots else ""


def _histograms(by_model: Mapping[str, Binary]) -> str:
    every = np.concatenate([metrics.cosines for metrics in by_model.values()])
    edges = np.linspace(every.min(), every.max(), _BINS + 1)
    shares = {
        name: [_shares(metrics.cosines[metrics.labels == label], edges) for label in (0, 1)]
        for name, metrics in by_model.items()
    }
    top = max(share.max() for each in shares.values() for share in each)
    axis = _ends(*(f"{edges[place]:.2f}" for place in (0, _BINS // 2, _BINS)))
    figures = []
    for name, metrics in by_model.items():
        areas = "".join(
            f'<path d="{_steps(share / top)}" fill-opacity=".45" style="fill:{_COLOURS[label]}"/>'
            for label, share in enumerate(shares[name])
        )
        legend = (
            f'<b style="color:{colour}">label {label}: {np.sum(metrics.labels == label):,} pairs</b>'
            for label, colour in _COLOURS.items()
        )
        plot = _ends(*legend) + _svg(_BINS, 1, "9rem", areas) + axis
        figures.append(f'<figure class="plot"><b>{escape(name)}</b>{plot}</figure>')
    return f'<div class="tables">{"".join(figures)}</div>'


def _shares(cosines: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts, _ = np.histogram(cosines, edges)
    shares: np.ndarray = counts / max(1, counts.sum())
    return shares


def _steps(heights: np.ndarray) -> str:
    return "M0 1" + "".join(f"V{1 - height:.4f}h1" for height in heights) + "V1Z"


def _line(path: str, colour: str, width: int) -> str:
    """A line whose width does not depend on the width of the picture."""
    style = f"stroke:{colour};stroke-width:{width}"
    return f'<path d="{path}" vector-effect="non-scaling-stroke" style="{style}"/>'


def _svg(width: int, height: int, shown: str, inner: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true"'
        f' style="height:{shown}">{inner}</svg>'
    )


def _ends(*parts: str) -> str:
    """Texts at both ends of a line, and between them."""
    return f"<p>{''.join(f'<span>{part}</span>' for part in parts)}</p>"
