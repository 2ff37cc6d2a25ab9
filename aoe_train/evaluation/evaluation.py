"""What `evaluate` returns: scores by model and task, as tables, JSON and a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aoe_train.evaluation.embedders.embedder import VectorSize
from aoe_train.evaluation.gain import Gain
from aoe_train.evaluation.resample import Comparison, Interval
from aoe_train.evaluation.score import Resampling, Score
from aoe_train.evaluation.tasks import Result, defined
from pairkit.app.result_table import Printed, ResultTable
from pairkit.dataset import card

if TYPE_CHECKING:
    import polars as pl

Scores = Mapping[str, Score]
_MOST_COLUMNS = 3  # metrics that stand side by side with their intervals


@dataclass(frozen=True, repr=False)
class Evaluation(Printed):
    """Figures of one model or several.

    Attributes:
        suite: What was measured, such as sts or gis.
        scores: By model and task.
        missing: Tasks that were left out, with the reason.
        against: The name of the model that it was compared with, if there is one.
        sizes: What the vectors were made, by the keys of `scores`, if sizes were asked for.
    """

    suite: str
    scores: Mapping[str, Scores]
    missing: Mapping[str, str] = field(default_factory=dict)
    against: str | None = None
    sizes: Mapping[str, VectorSize] = field(default_factory=dict)
    _resampling: Resampling = field(default_factory=Resampling)
    _rankings: bool = False

    def tables(self, *, subsets: bool = False) -> list[ResultTable]:
        """Tables of all figures, times 100, with 95 % intervals in brackets, as in papers.

        Args:
            subsets: Show the parts of each task too.
        """
        title = f"{self.suite}, times 100"
        if self._rankings:
            return list(self._ranked(subsets=subsets))
        if self.sizes:
            return [by_size(self.scores, self.sizes, title)]
        if len(self.scores) > 1:
            return [side_by_side(self.scores, title)]
        ((model, scores),) = self.scores.items()
        found = [figures(scores, title, subsets=subsets)]
        if self.against is not None:
            title = f"{self.suite}: {model} less {self.against}, times 100"
            found.append(comparisons(scores, model, self.against, title))
        return found

    @property
    def gains(self) -> dict[str, Gain]:
        """By task of pairs of your own, whether to ship the model in place of the one it is compared with.

        `.word` is `ship`, `not shown` or `worse`. Labels of `label judge` count as far as its judges are sure
        of them. Empty without such pairs, another model or intervals.
        """
        return {
            task: score.gain
            for scores in self.scores.values()
            for task, score in scores.items()
            if score.gain is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe evaluate --json`, each figure in its own range.

        `{task: {spearman, pearson, n, ci95, overlap}}`, with a task's parts under `subsets`, and the other
        model's figures under `against`; such an object for each of several models. Pairs of your own against
        another model have `gain`, too. With sizes `{sizes: [{model, dim, quantize, bytes, tasks}]}`, where
        `tasks` is such an object, and `layers` if they were asked for.
        """
        found = {
            model: {name: one.to_dict() for name, one in scores.items()}
            for model, scores in self.scores.items()
        }
        if self.sizes:
            return {"sizes": [self._sized(key) | {"tasks": tasks} for key, tasks in found.items()]}
        return found if len(found) > 1 else next(iter(found.values()))

    def to_polars(self) -> pl.DataFrame:
        """A row a figure: model, suite, task, subset, metric, value, low and high (95 %), n.

        With sizes also dim, quantize and bytes, and layers if they were asked for.
        """
        import polars as pl

        schema = dict.fromkeys(("model", "suite", "task", "subset", "metric"), pl.String)
        numbers = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
        found = pl.DataFrame(list(self._rows()), schema={**schema, **numbers}, orient="row")
        if not self.sizes:
            return found
        sizes = pl.DataFrame([{"key": key, **self._sized(key)} for key in self.sizes])
        return found.rename({"model": "key"}).join(sizes, on="key").drop("key")

    def to_markdown(self) -> str:
        """All tables as a page of Markdown."""
        parts = []
        for table in self.tables(subsets=True):
            parts += [f"## {table.title}", card.table(table.headings, table.rows)]
        if self._resampling.number:
            resamples = f"{self._resampling.number:,} resamples, seed {self._resampling.seed}"
            parts.append(f"In brackets: 95 % bootstrap intervals ({resamples}).")
        leaks = [
            f"- {name}: {model} was {found.overlap}"
            for model, scores in self.scores.items()
            for name, found in scores.items()
            if found.overlap is not None and found.overlap.texts
        ]
        return "\n\n".join([*parts, *(["\n".join(leaks)] if leaks else [])]) + "\n"

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _ranked(self, *, subsets: bool) -> Iterator[ResultTable]:
        """The tables of the suite duplicates, whose models are rankings."""
        (task,) = next(iter(self.scores.values()))
        scores = {row: of_row[task] for row, of_row in self.scores.items()}
        yield rankings(scores, f"{task}: duplicates found, times 100", subsets=subsets)
        if self._resampling.number:
            yield ahead(scores, f"{task}: ahead by, times 100, with 95 % intervals over queries")

    def _sized(self, key: str) -> dict[str, Any]:
        size = self.sizes[key]
        depth = {} if size.layers is None else {"layers": size.layers}
        return {"model": size.model, **depth, "dim": size.dim, "quantize": size.quantize, "bytes": size.bytes}

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for model, scores in self.scores.items():
            for task, score in scores.items():
                for subset, result in ((None, score.result), *score.result.subsets.items()):
                    for metric, value, low, high in _figures(result):
                        yield model, self.suite, task, subset, metric, value, low, high, result.n


def _figures(result: Result) -> Iterator[tuple[str, float | None, float | None, float | None]]:
    for metric, value in result.scores.items():
        low, high = result.intervals.get(metric, (None, None))
        yield metric, defined(value), low, high


def figures(scores: Mapping[str, Score], title: str, *, subsets: bool = False) -> ResultTable:
    """A model's figures by task: a row a task, or a row a task and metric if there are many metrics."""
    metrics = _metrics(scores)
    wide = len(metrics) <= _MOST_COLUMNS
    leak = any(score.overlap and score.overlap.texts for score in scores.values())
    headings = ["task", *(metrics if wide else ("metric", "figure")), "n", *(["trained on"] if leak else [])]
    rows: list[list[str]] = []
    for name, score in scores.items():
        parts = score.result.subsets if subsets else {}
        listed = [
            (name, score.result, _seen(score)),
            *((f"  {part}", found, "") for part, found in parts.items()),
        ]
        for shown, result, seen in listed:
            tail = [f"{result.n:,}", *([seen] if leak else [])]
            if wide:
                rows.append([shown, *_row(result, metrics), *tail])
            else:
                rows += [[shown, _shown(metric), cell, *tail] for metric, cell in _cells(result)]
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
