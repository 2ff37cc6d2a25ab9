"""Tables of scores, and plots as HTML with SVG: gains with intervals, and histograms of cosines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.encoding.embedders.embedder import VectorSize
from aoe_train.evaluation.pair_metrics import Binary
from aoe_train.evaluation.tasks import Comparison, Interval, Result
from pairkit.base.cli.result_table import Cell, ResultTable, escape

if TYPE_CHECKING:
    from aoe_train.evaluation.scores import Score

Scores = Mapping[str, "Score"]
_MAX_COLUMNS = 3  # metrics with intervals in one row
_BINS = 40
_UNKNOWN = "–"


def figures(scores: Scores, title: str, *, subsets: bool) -> ResultTable:
    """A model's scores: a row for each task, or for each task and metric if there are many metrics."""
    metrics = _metrics(scores)
    is_wide = len(metrics) <= _MAX_COLUMNS
    has_leaks = any(score.has_leak for score in scores.values())

    columns = metrics if is_wide else ["metric", "figure"]
    headings = ["task", *columns, "n"]
    if has_leaks:
        headings.append("trained on")
    table = _result_table(title, headings)

    for name, score in scores.items():
        for label, result in _with_parts(name, score, subsets=subsets):
            last: list[Cell] = [result.n]
            if has_leaks:
                last.append(_trained_share(score) if label == name else "")
            rows = [[_cell(result, metric) for metric in metrics]]
            if not is_wide:
                rows = [
                    [_metric_label(metric), _cell(result, metric)]
                    for metric in result.scores
                ]
            for cells in rows:
                table.add_row(label, *cells, *last)

    if is_wide and len(scores) > 1:
        means = _means(scores)
        cells = [_times_100(means.get(metric)) for metric in metrics]
        empty = [""] * (1 + has_leaks)
        table.add_row(f"mean of {len(scores)}", *cells, *empty)
    return table


def _trained_share(score: Score) -> str | None:
    """The share of a task's examples that the model was trained on; None if unknown."""
    if score.overlap is None:
        return None
    return f"{score.overlap.rows / score.overlap.of_rows:.1%}"


def comparisons(scores: Scores, model: str, rival: str, title: str) -> ResultTable:
    """The differences between a model and its rival."""
    table = _result_table(title, ["task", "metric", model, rival, "difference", "p"])
    for name, score in scores.items():
        if score.rival is None:
            continue
        for metric, value in score.result.scores.items():
            comparison = score.comparisons.get(metric)
            table.add_row(
                name,
                _metric_label(metric),
                _times_100(value),
                _times_100(score.rival.scores.get(metric)),
                _difference(comparison),
                None if comparison is None else f"{comparison.p:.3f}",
            )
    return table


def side_by_side(scores: Mapping[str, Scores], title: str) -> ResultTable:
    """Several models: a row for each, with the first metric of each task; of one task several metrics."""
    tasks = next(iter(scores.values()))
    most = _MAX_COLUMNS if len(tasks) == 1 else 1
    gains = {}  # only of judged candidates, which have one task
    for model, by_task in scores.items():
        for score in by_task.values():
            if score.gain:
                gains[model] = score.gain

    headings = ["model", *_first_metrics(tasks, most)]
    if gains:
        level = next(iter(gains.values())).level_note
        headings.append(f"difference on all queries{level}")
    table = _result_table(title, headings)

    for model, by_task in scores.items():
        cells = [*_first_metrics(by_task, most).values()]
        if gains:
            cells.append(_difference(gains[model].ahead if model in gains else None))
        table.add_row(model, *cells)
    return table


def rankings(scores: Scores, title: str, *, subsets: bool) -> ResultTable:
    """Several rankings of one task: a row for each, with a column for each metric."""
    metrics = _metrics(scores)
    table = _result_table(title, ["ranked by", "weight", *metrics, "n"])
    for name, score in scores.items():
        for label, result in _with_parts(name, score, subsets=subsets):
            weight = ""
            if label == name and score.weight is not None:
                weight = f"{score.weight:g}"
            cells = [_times_100(result.scores.get(metric)) for metric in metrics]
            table.add_row(label, weight, *cells, result.n)
    return table


def improvements(scores: Scores, title: str) -> ResultTable:
    """The differences between rankings and those that they should beat."""
    metrics = _metrics(scores)[:_MAX_COLUMNS]
    table = _result_table(title, ["ranked by", "compared with", *metrics])
    for name, score in scores.items():
        for baseline, comparisons in score.over.items():
            differences = [_difference(comparisons.get(metric)) for metric in metrics]
            table.add_row(name, baseline, *differences)
    return table


def by_size(
    scores: Mapping[str, Scores],
    sizes: Mapping[str, VectorSize],
    title: str,
) -> ResultTable:
    """Several vector sizes: a row for each, with the first metric of each task, and their mean."""
    has_models = len({size.model for size in sizes.values()}) > 1

    rows = []
    for key, by_task in scores.items():
        row = size_fields(sizes[key])
        if not has_models:
            del row["model"]
        row |= _first_metrics(by_task, 1)
        if len(by_task) > 1:
            row["mean"] = _times_100(next(iter(_means(by_task).values()), None))
        rows.append(row)

    table = _result_table(title, list(rows[0]))
    for row in rows:
        table.add_row(*row.values())
    return table


def size_fields(size: VectorSize) -> dict[str, Cell]:
    """The columns of a size; layers only if they were requested."""
    layers = {} if size.layers is None else {"layers": size.layers}
    figures = {"dim": size.dim, "quantize": size.quantize, "bytes": size.bytes}
    return {"model": size.model, **layers, **figures}


def _first_metrics(by_task: Scores, most: int) -> dict[str, str]:
    """The first scores of each task with their intervals, by task and metric."""
    cells = {}
    for task, score in by_task.items():
        for metric in islice(score.result.scores, most):
            cells[f"{task}, {metric}"] = _cell(score.result, metric)
    return cells


def _means(scores: Scores) -> dict[str, float]:
    """The mean of each metric that all tasks have."""
    by_task = [score.result.scores for score in scores.values()]
    means = {}
    for metric in by_task[0]:
        if all(metric in figures for figures in by_task):
            means[metric] = sum(figures[metric] for figures in by_task) / len(by_task)
    return means


def _with_parts(
    name: str, score: Score, *, subsets: bool
) -> Iterator[tuple[str, Result]]:
    """The result of a task, and with `subsets` those of its parts, with their labels."""
    yield name, score.result
    if subsets:
        for part, result in score.result.subsets.items():
            yield f"  {part}", result


def _metrics(scores: Scores) -> list[str]:
    """All metrics, in the order of the scores."""
    metrics = [metric for score in scores.values() for metric in score.result.scores]
    return list(dict.fromkeys(metrics))


def _cell(result: Result, metric: str) -> str:
    score = _times_100(result.scores.get(metric))
    return score + _bounds(result.intervals.get(metric))


def _metric_label(metric: str) -> str:
    return f"{metric}, cross-validated" if metric.startswith("best_") else metric


def _difference(comparison: Comparison | None) -> str:
    """With the interval, such as `+1.20 [0.31, 2.08]`."""
    if comparison is None:
        return _UNKNOWN
    difference = round(100 * comparison.difference, 2) + 0.0  # without a negative zero
    return f"{difference:+.2f}{_bounds(comparison.interval, digits=2)}"


def _bounds(interval: Interval | None, *, digits: int = 1) -> str:
    if interval is None:
        return ""
    low, high = (f"{100 * bound:.{digits}f}" for bound in interval)
    return f" [{low}, {high}]"


def _times_100(value: float | None) -> str:
    if value is None or math.isnan(value):
        return _UNKNOWN
    return f"{100 * value:.2f}"


def _result_table(title: str, headings: Sequence[str]) -> ResultTable:
    return ResultTable(*headings, title=title, left=("metric", "quantize"))


def gain_plots(scores: Mapping[str, Scores]) -> str:
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
    if low > 0:
        side = "high"
    elif high < 0:
        side = "low"
    values = (low, gain.difference, high)
    start, middle, end = (100 + 98 * value / edge for value in values)
    bar = f'<path class="{side}" d="M{start:.2f} 5H{end:.2f}M{middle:.2f} 1V9"/>'
    return _line(escape(name), _difference(gain)) + _picture(200, 10, bar)


def cosine_plots(scores: Mapping[str, Scores], against: str | None) -> str:
    """For each task with labels 0 and 1, histograms of the pairs' cosines by each model."""
    plots = []
    for task in next(iter(scores.values())):
        measured: list[tuple[str, Binary]] = []
        for model, by_task in scores.items():
            names = (model, against or "")
            for name, metrics in zip(names, by_task[task].metrics, strict=False):
                if isinstance(metrics, Binary):
                    measured.append((name, metrics))
        if measured:
            histograms = _histograms(measured)
            plots.append(
                f'<h3>{escape(task)}</h3><div class="tables">{histograms}</div>'
            )
    if plots:
        plots.append(
            "<p>The better the labels are separated, the better the model. Both areas are equal.</p>"
        )
    return "".join(plots)


def _histograms(measured: Sequence[tuple[str, Binary]]) -> str:
    """A histogram for each model, all with the same bins."""
    cosines = np.concatenate([metrics.cosines for _, metrics in measured])
    edges = np.linspace(cosines.min(), cosines.max(), _BINS + 1)
    axis = _line(*(f"{edge:.2f}" for edge in edges[:: _BINS // 2]))
    return "".join(_histogram(name, metrics, edges, axis) for name, metrics in measured)


def _histogram(name: str, metrics: Binary, edges: np.ndarray, axis: str) -> str:
    by_label = [metrics.cosines[metrics.labels == label] for label in (0, 1)]
    heights = []
    for cosines in by_label:
        counts, _ = np.histogram(cosines, edges)
        heights.append(counts / max(1, len(cosines)))
    highest = np.max(heights)
    areas = ""
    legend = []
    for label, side in enumerate(("low", "high")):  # CSS classes
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
