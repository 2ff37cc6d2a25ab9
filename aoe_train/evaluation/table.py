"""The figures as tables for people; all times 100, as in papers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aoe_train.evaluation.embedders.quantized import VectorSize
from aoe_train.evaluation.resample import Comparison, Interval
from aoe_train.evaluation.score import Score
from aoe_train.evaluation.task import Result
from pairkit.app.result_table import ResultTable

_MOST_COLUMNS = 3  # metrics that stand side by side with their intervals


def figures(scores: Mapping[str, Score], title: str, *, subsets: bool = False) -> ResultTable:
    """A model's figures by task: a row a task, or a row a task and metric if there are many metrics."""
    metrics = _metrics(scores)
    wide = len(metrics) <= _MOST_COLUMNS
    leak = any(score.overlap and score.overlap.texts for score in scores.values())
    headings = ["task", *(metrics if wide else ("metric", "figure")), "n", *(["trained on"] if leak else [])]
    rows: list[list[str]] = []
    for name, score in scores.items():
        tail = [f"{score.result.n:,}", *([_seen(score)] if leak else [])]
        rows += (
            [[name, *_row(score.result, metrics), *tail]]
            if wide
            else [[name, _shown(metric), cell, *tail] for metric, cell in _cells(score.result)]
        )
        for part, found in score.result.subsets.items() if subsets else ():
            tail = [f"{found.n:,}", *([""] if leak else [])]
            rows += (
                [[f"  {part}", *_row(found, metrics), *tail]]
                if wide
                else [[f"  {part}", _shown(metric), cell, *tail] for metric, cell in _cells(found)]
            )
    if wide and len(scores) > 1:
        means = mean_figures([score.result for score in scores.values()])
        row = [f"mean of {len(scores)}", *(_times_100(means.get(metric)) for metric in metrics)]
        rows.append([*row, *[""] * (len(headings) - len(row))])
    return _table(title, headings, rows)


def comparisons(scores: Mapping[str, Score], one: str, other: str, title: str) -> ResultTable:
    """How far a model is ahead of its rival."""
    rows = [
        [
            name,
            _shown(metric),
            _times_100(value),
            _times_100(score.rival.scores.get(metric)),
            *_ahead(score.comparisons.get(metric)),
        ]
        for name, score in scores.items()
        if score.rival is not None
        for metric, value in score.result.scores.items()
    ]
    return _table(title, ["task", "metric", one, other, "difference", "p"], rows)


def side_by_side(scores: Mapping[str, Mapping[str, Score]], title: str) -> ResultTable:
    """Several models: a row a model, a column a task, with its first metric; of one task the first ones."""
    return _table(
        title, *_side_by_side(scores, _MOST_COLUMNS if len(next(iter(scores.values()))) == 1 else 1)
    )


def _side_by_side(scores: Mapping[str, Mapping[str, Score]], most: int) -> tuple[list[str], list[list[str]]]:
    tasks = next(iter(scores.values()))
    wanted = [(name, metric) for name, score in tasks.items() for metric in [*score.result.scores][:most]]
    rows = [
        [model, *(dict(_cells(found[task].result)).get(metric, "–") for task, metric in wanted)]
        for model, found in scores.items()
    ]
    return ["model", *(f"{task}, {metric}" for task, metric in wanted)], rows


def rankings(scores: Mapping[str, Score], title: str, *, subsets: bool = False) -> ResultTable:
    """Several rankings of one task: a row a ranking, a column a metric."""
    metrics = _metrics(scores)
    rows: list[list[str]] = []
    for name, score in scores.items():
        weight = "" if score.weight is None else f"{score.weight:g}"
        rows.append([name, weight, *_plain(score.result, metrics), f"{score.result.n:,}"])
        for part, found in score.result.subsets.items() if subsets else ():
            rows.append([f"  {part}", "", *_plain(found, metrics), f"{found.n:,}"])
    return _table(title, ["ranked by", "weight", *metrics, "n"], rows)


def ahead(scores: Mapping[str, Score], title: str) -> ResultTable:
    """How far rankings are ahead of those that they should beat, in some metrics."""
    metrics = _metrics(scores)[:_MOST_COLUMNS]
    rows = [
        [name, other, *(_ahead(comparisons.get(metric))[0] for metric in metrics)]
        for name, score in scores.items()
        for other, comparisons in score.over.items()
    ]
    return _table(title, ["ranked by", "ahead of", *metrics], rows)


def by_size(
    scores: Mapping[str, Mapping[str, Score]], sizes: Mapping[str, VectorSize], title: str
) -> ResultTable:
    """Vectors of several sizes: a row a size, a column a task (its first metric), and their mean."""
    wanted, side = _side_by_side(scores, 1)
    several = len({size.model for size in sizes.values()}) > 1
    deep = any(size.layers is not None for size in sizes.values())
    rows = []
    for key, (_, *cells) in zip(scores, side, strict=True):
        size = sizes[key]
        depth = [str(size.layers)] if deep else []
        told = [*depth, f"{size.dim:,}", size.quantize, f"{size.bytes:,}", *cells]
        means = mean_figures([score.result for score in scores[key].values()])
        mean = [_times_100(next(iter(means.values()), None))] if len(cells) > 1 else []
        rows.append([*([size.model] if several else []), *told, *mean])
    headings = [*(["layers"] if deep else []), "dim", "quantize", "bytes", *wanted[1:]]
    last = ["mean"] if len(wanted) > 2 else []
    return _table(title, [*(["model"] if several else []), *headings, *last], rows)


def mean_figures(results: Sequence[Result]) -> dict[str, float]:
    """The mean of each metric that all results have."""
    shared = [metric for metric in results[0].scores if all(metric in found.scores for found in results)]
    return {metric: sum(found.scores[metric] for found in results) / len(results) for metric in shared}


def _metrics(scores: Mapping[str, Score]) -> list[str]:
    return list(dict.fromkeys(metric for score in scores.values() for metric in score.result.scores))


def _row(result: Result, metrics: Sequence[str]) -> list[str]:
    cells = dict(_cells(result))
    return [cells.get(metric, "–") for metric in metrics]


def _plain(result: Result, metrics: Sequence[str]) -> list[str]:
    return [_times_100(result.scores.get(metric)) for metric in metrics]


def _cells(result: Result) -> Iterator[tuple[str, str]]:
    for metric, value in result.scores.items():
        yield metric, _times_100(value) + _bounds(result.intervals.get(metric))


def _shown(metric: str) -> str:
    return f"{metric}, cross-validated" if metric.startswith("best_") else metric


def _ahead(comparison: Comparison | None) -> tuple[str, str]:
    if comparison is None:
        return "–", "–"
    return (
        f"{100 * comparison.difference:+.2f}{_bounds(comparison.interval, digits=2)}",
        f"{comparison.p:.3f}",
    )


def _bounds(interval: Interval | None, *, digits: int = 1) -> str:
    return "" if interval is None else f" [{100 * interval.low:.{digits}f}, {100 * interval.high:.{digits}f}]"


def _seen(score: Score) -> str:
    return "–" if score.overlap is None else f"{score.overlap.rows / score.overlap.of_rows:.1%}"


def _times_100(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:.2f}"


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> ResultTable:
    table = ResultTable(*headings, title=title, left=("metric", "quantize"))
    for row in rows:
        table.add_row(*row)
    return table
