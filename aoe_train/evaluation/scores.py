"""The result of `evaluate`: scores by model and task, as tables, JSON and a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from aoe_train.encoding.embedders.embedder import VectorSize
from aoe_train.evaluation.plots import cosine_plots, gain_plots
from aoe_train.evaluation.resample import Comparison, Interval, Resampling
from aoe_train.evaluation.score import Gain, Score
from aoe_train.evaluation.tasks import Result, defined
from pairkit.base.cli.result_table import Printed, ResultTable, escape
from pairkit.dataset.making import dataset_card as card
from pairkit.reports.page import html_page

if TYPE_CHECKING:
    import polars as pl

Scores = Mapping[str, Score]
_MAX_COLUMNS = 3  # metrics with intervals in one row


@dataclass(frozen=True, repr=False)
class Evaluation(Printed):
    """Scores of one model or several, or of the candidates of judged search results.

    Attributes:
        suite: The name of the test sets, such as sts or binary.
        scores: By model and task.
        missing: Tasks that were left out, with the reason.
        against: The name of the model that this one was compared with, if any; the first candidate.
        sizes: Sizes of the vectors, by the keys of `scores`, if sizes were requested.
    """

    suite: str
    scores: Mapping[str, Scores]
    missing: Mapping[str, str] = field(default_factory=dict)
    against: str | None = None
    sizes: Mapping[str, VectorSize] = field(default_factory=dict)
    _resampling: Resampling = field(default_factory=Resampling)
    _rankings: bool = False

    def tables(self, *, subsets: bool = False) -> list[ResultTable]:
        """Tables of all scores times 100, with 95 % intervals in brackets.

        Args:
            subsets: Include the parts of each task.
        """
        if self._rankings:
            return self._ranked(subsets=subsets)
        title = f"{self.suite}, times 100"
        if self.sizes:
            return [by_size(self.scores, self.sizes, title)]
        if len(self.scores) > 1:
            return [side_by_side(self.scores, title)]

        ((model, scores),) = self.scores.items()
        tables = [figures(scores, title, subsets=subsets)]
        if self.against is not None:
            title = f"{self.suite}: {model} minus {self.against}, times 100"
            tables.append(comparisons(scores, model, self.against, title))
        return tables

    @property
    def gains(self) -> dict[str, Gain]:
        """For each task of your own pairs, whether to replace the other model by this one.

        `.word` is `better`, `inconclusive` or `worse`, or `not judged` if one of both models was trained on
        most rows; fewer such rows are left out. Labels of `label judge` are weighted by their probability. Of
        candidates, by candidate: whether to replace the first one.
        Empty without your own pairs, another model or intervals.
        """
        gains = {}
        for model, task, score in self._scores_by_task():
            if score.gain is not None:
                name = task if len(self.scores) == 1 else model
                gains[name] = score.gain
        return gains

    def verdicts(self) -> list[str]:
        """A line for each of `gains`; of several candidates, one line for the best."""
        gains = self.gains
        lines = {name: f"{gain.word}: {name}: {gain}" for name, gain in gains.items()}
        if len(self.scores) == 1 or not gains:
            return list(lines.values())

        def success(name: str) -> tuple[bool, float]:
            return gains[name].word == "better", gains[name].ahead.difference

        best = max(reversed(gains), key=success)  # of equal ones the last
        line = lines[best]
        if gains[best].word != "better":
            line += f"; none of {len(gains)} candidates is shown to be better than {self.against}"
        return [line]

    def to_dict(self) -> dict[str, Any]:
        """The object of `aoe evaluate --json`; scores are not multiplied by 100.

        `{task: {spearman, pearson, n, ci95, overlap}}`, with a task's parts under `subsets` and the other
        model's scores under `against`. Your own pairs against another model also have `gain`. For several
        models, `{model: {task: ...}}`. With sizes, `{sizes: [{model, dim, quantize, bytes, tasks}]}`, and
        `layers` if requested.
        """
        by_model: dict[str, dict[str, Any]] = {}
        for model, task, score in self._scores_by_task():
            by_model.setdefault(model, {})[task] = score.to_dict()
        if self.sizes:
            sizes = [
                {**self._size_dict(key), "tasks": tasks}
                for key, tasks in by_model.items()
            ]
            return {"sizes": sizes}
        if len(by_model) > 1:
            return by_model
        ((_, tasks),) = by_model.items()
        return tasks

    def to_polars(self) -> pl.DataFrame:
        """A row for each metric: model, suite, task, subset, metric, value, low and high (95 %), n.

        With sizes, also dim, quantize and bytes, and layers if requested.
        """
        import polars as pl

        names = dict.fromkeys(("model", "suite", "task", "subset", "metric"), pl.String)
        numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
        schema = {**names, **numbers, "n": pl.Int64}
        frame = pl.DataFrame(list(self._polars_rows()), schema, orient="row")
        if not self.sizes:
            return frame
        sizes = pl.DataFrame(
            [{"key": key, **self._size_dict(key)} for key in self.sizes]
        )
        return frame.rename({"model": "key"}).join(sizes, on="key").drop("key")

    def to_markdown(self) -> str:
        """All tables in Markdown."""
        parts = []
        for table in self.tables(subsets=True):
            parts += [f"## {table.title}", card.table(table.headings, table.rows)]

        if self._resampling.number:
            resamples = (
                f"{self._resampling.number:,} resamples, seed {self._resampling.seed}"
            )
            parts.append(f"In brackets: 95 % bootstrap intervals ({resamples}).")

        leaks = []
        for model, task, score in self._scores_by_task():
            if _has_leak(score):
                leaks.append(f"- {task}: {model} was {score.overlap}")
        if leaks:
            parts.append("\n".join(leaks))
        return "\n\n".join(parts) + "\n"

    def _scores_by_task(self) -> Iterator[tuple[str, str, Score]]:
        """Each model and task with its score."""
        for model, scores in self.scores.items():
            for task, score in scores.items():
                yield model, task, score

    def to_html(self) -> str:
        """A page with the verdicts, all tables and plots."""
        name = ", ".join(self.scores)
        if self.against is not None and self.against not in self.scores:
            name += f" against {self.against}"
        verdicts = [f"<p>{escape(verdict)}</p>" for verdict in self.verdicts()]
        tables = [
            f'<div class="scroll">{table._repr_html_()}</div>'
            for table in self.tables()
        ]
        sections = {
            "Verdict": "".join(verdicts),
            "Scores": "".join(tables),
            "Gains": gain_plots(self.scores),
            "Cosines": "" if self.sizes else cosine_plots(self.scores, self.against),
        }
        return html_page("aoe evaluate", "Evaluation", name, sections, "")

    def _ranked(self, *, subsets: bool) -> list[ResultTable]:
        """The tables of the suite tracker, in which `scores` has rankings instead of models."""
        (task,) = next(iter(self.scores.values()))
        scores = {ranking: by_task[task] for ranking, by_task in self.scores.items()}
        tables = [
            rankings(scores, f"{task}: duplicates found, times 100", subsets=subsets)
        ]
        if self._resampling.number:
            title = f"{task}: difference times 100, with 95 % intervals over queries"
            tables.append(ahead(scores, title))
        return tables

    def _size_dict(self, key: str) -> dict[str, Any]:
        size = self.sizes[key]
        values: dict[str, Any] = {"model": size.model}
        if size.layers is not None:
            values["layers"] = size.layers
        return {
            **values,
            "dim": size.dim,
            "quantize": size.quantize,
            "bytes": size.bytes,
        }

    def _polars_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of `to_polars`."""
        for model, task, score in self._scores_by_task():
            parts: list[tuple[str | None, Result]] = [(None, score.result)]
            parts += score.result.subsets.items()
            for subset, result in parts:
                for metric, value in result.scores.items():
                    low, high = result.intervals.get(metric, (None, None))
                    names = (model, self.suite, task, subset, metric)
                    yield *names, defined(value), low, high, result.n


def figures(scores: Scores, title: str, *, subsets: bool) -> ResultTable:
    """A model's scores: a row for each task, or for each task and metric if there are many metrics."""
    metrics = _metrics(scores)
    is_wide = len(metrics) <= _MAX_COLUMNS
    has_leak = any(map(_has_leak, scores.values()))

    headings = ["task", "metric", "figure", "n"]
    if is_wide:
        headings = ["task", *metrics, "n"]
    if has_leak:
        headings.append("trained on")
    table = _result_table(title, headings)

    for name, score in scores.items():
        for label, result in _with_parts(name, score, subsets=subsets):
            tail = [f"{result.n:,}"]
            if has_leak:
                tail.append(_trained_share(score) if label == name else "")
            if is_wide:
                cells = [_cell(result, metric) for metric in metrics]
                table.add_row(label, *cells, *tail)
                continue
            for metric in result.scores:
                table.add_row(
                    label, _metric_label(metric), _cell(result, metric), *tail
                )

    if is_wide and len(scores) > 1:
        means = mean_figures([score.result for score in scores.values()])
        cells = [_times_100(means.get(metric)) for metric in metrics]
        empty = [""] * (len(headings) - 1 - len(cells))
        table.add_row(f"mean of {len(scores)}", *cells, *empty)
    return table


def comparisons(
    scores: Scores,
    model: str,
    rival: str,
    title: str,
) -> ResultTable:
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
                "–" if comparison is None else f"{comparison.p:.3f}",
            )
    return table


def side_by_side(scores: Mapping[str, Scores], title: str) -> ResultTable:
    """Several models: a row for each, with the first metric of each task; of one task several metrics."""
    tasks = next(iter(scores.values()))
    columns = _first_metrics(tasks, _MAX_COLUMNS if len(tasks) == 1 else 1)
    all_scores = [score for by_task in scores.values() for score in by_task.values()]
    has_gains = any(score.gain is not None for score in all_scores)

    headings = ["model", *map(str, columns)]
    if has_gains:
        headings.append("difference on all queries")
    table = _result_table(title, headings)

    for model, by_task in scores.items():
        cells = [column.cell(by_task) for column in columns]
        if has_gains:
            (score,) = by_task.values()
            cells.append("–" if score.gain is None else _difference(score.gain.ahead))
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
            table.add_row(label, weight, *cells, f"{result.n:,}")
    return table


def ahead(scores: Scores, title: str) -> ResultTable:
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
    tasks = next(iter(scores.values()))
    columns = _first_metrics(tasks, 1)
    has_models = len({size.model for size in sizes.values()}) > 1
    has_layers = any(size.layers is not None for size in sizes.values())
    has_mean = len(columns) > 1

    headings = ["dim", "quantize", "bytes", *map(str, columns)]
    if has_layers:
        headings.insert(0, "layers")
    if has_models:
        headings.insert(0, "model")
    if has_mean:
        headings.append("mean")
    table = _result_table(title, headings)

    for key, by_task in scores.items():
        size = sizes[key]
        cells = [column.cell(by_task) for column in columns]
        row = [f"{size.dim:,}", size.quantize, f"{size.bytes:,}", *cells]
        if has_layers:
            row.insert(0, str(size.layers))
        if has_models:
            row.insert(0, size.model)
        if has_mean:
            means = mean_figures([score.result for score in by_task.values()])
            row.append(_times_100(next(iter(means.values()), None)))
        table.add_row(*row)
    return table


class _Column(NamedTuple):
    """A metric of a task."""

    task: str
    metric: str

    def __str__(self) -> str:
        return f"{self.task}, {self.metric}"

    def cell(self, by_task: Scores) -> str:
        """The score and its interval."""
        return _cell(by_task[self.task].result, self.metric)


def _first_metrics(tasks: Scores, most: int) -> list[_Column]:
    """The first metrics of each task."""
    return [
        _Column(task, metric)
        for task, score in tasks.items()
        for metric in islice(score.result.scores, most)
    ]


def mean_figures(results: Sequence[Result]) -> dict[str, float]:
    """The mean of each metric that all results have."""
    means = {}
    for metric in results[0].scores:
        values = [result.scores.get(metric) for result in results]
        present = [value for value in values if value is not None]
        if len(present) == len(results):
            means[metric] = sum(present) / len(present)
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
    if comparison is None:
        return "–"
    difference = round(100 * comparison.difference, 2) + 0.0  # without a negative zero
    return f"{difference:+.2f}{_bounds(comparison.interval, digits=2)}"


def _bounds(interval: Interval | None, *, digits: int = 1) -> str:
    if interval is None:
        return ""
    low, high = (f"{100 * bound:.{digits}f}" for bound in interval)
    return f" [{low}, {high}]"


def _has_leak(score: Score) -> bool:
    return score.overlap is not None and bool(score.overlap.texts)


def _trained_share(score: Score) -> str:
    overlap = score.overlap
    return "–" if overlap is None else f"{overlap.rows / overlap.of_rows:.1%}"


def _times_100(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.2f}"


def _result_table(title: str, headings: Sequence[str]) -> ResultTable:
    return ResultTable(*headings, title=title, left=("metric", "quantize"))
