"""The result of `evaluate`: scores by model and task, as tables, JSON and a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from aoe_train.encoding.embedders.embedder import VectorSize
from aoe_train.evaluation.gain import Gain
from aoe_train.evaluation.plots import cosine_plots, gain_plots
from aoe_train.evaluation.resample import Comparison, Interval, Resampling
from aoe_train.evaluation.score import Score
from aoe_train.evaluation.tasks import Result, defined
from pairkit.base.cli.result_table import Cell, Printed, ResultTable, escape, html_page
from pairkit.dataset.making import dataset_card as card

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
                gains[task if len(self.scores) == 1 else model] = score.gain
        return gains

    def verdicts(self) -> list[str]:
        """A line for each of `gains`; of several candidates, one line for the best."""
        gains = self.gains
        lines = {name: f"{gain.word}: {name}: {gain}" for name, gain in gains.items()}
        if len(self.scores) == 1 or not gains:
            return list(lines.values())

        def success(name: str) -> tuple[bool, float]:
            return gains[name].word == "better", gains[name].ahead.difference

        best = max(reversed(gains), key=success)  # the last one of equal ones
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
        by_model = {}
        for model, scores in self.scores.items():
            by_model[model] = {task: score.to_dict() for task, score in scores.items()}
        if self.sizes:
            sizes = [
                {**_size_fields(self.sizes[key]), "tasks": tasks}
                for key, tasks in by_model.items()
            ]
            return {"sizes": sizes}
        if len(by_model) > 1:
            return by_model
        (tasks,) = by_model.values()
        return tasks

    def to_polars(self) -> pl.DataFrame:
        """A row for each metric: model, suite, task, subset, metric, value, low and high (95 %), n.

        With sizes, also dim, quantize and bytes, and layers if requested.
        """
        import polars as pl

        names = dict.fromkeys(("model", "suite", "task", "subset", "metric"), pl.String)
        numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
        schema = {**names, **numbers, "n": pl.Int64}
        rows = []
        for model, task, score in self._scores_by_task():
            parts = {None: score.result}
            for subset, result in (parts | {**score.result.subsets}).items():
                for metric, value in result.scores.items():
                    low, high = result.intervals.get(metric, (None, None))
                    key = (model, self.suite, task, subset, metric)
                    rows.append((*key, defined(value), low, high, result.n))
        frame = pl.DataFrame(rows, schema, orient="row")
        if not self.sizes:
            return frame
        sizes = pl.DataFrame(
            [{"key": key, **_size_fields(size)} for key, size in self.sizes.items()]
        )
        return frame.rename({"model": "key"}).join(sizes, on="key").drop("key")

    def to_markdown(self) -> str:
        """All tables in Markdown."""
        paragraphs = []
        for table in self.tables(subsets=True):
            paragraphs += [f"## {table.title}", card.table(table.headings, table.rows)]

        number = self._resampling.number
        if number:
            resamples = f"{number:,} resamples, seed {self._resampling.seed}"
            paragraphs.append(f"In brackets: 95 % bootstrap intervals ({resamples}).")

        leaks = [
            f"- {task}: {model} was {score.overlap}"
            for model, task, score in self._scores_by_task()
            if _has_leak(score)
        ]
        if leaks:
            paragraphs.append("\n".join(leaks))
        return "\n\n".join(paragraphs) + "\n"

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
            last: list[Cell] = [result.n]
            if has_leak:
                last.append(_trained_share(score) if label == name else "")
            if is_wide:
                cells = [_cell(result, metric) for metric in metrics]
                table.add_row(label, *cells, *last)
                continue
            for metric in result.scores:
                cell = _cell(result, metric)
                table.add_row(label, _metric_label(metric), cell, *last)

    if is_wide and len(scores) > 1:
        means = mean_figures(scores)
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
                None if comparison is None else f"{comparison.p:.3f}",
            )
    return table


def side_by_side(scores: Mapping[str, Scores], title: str) -> ResultTable:
    """Several models: a row for each, with the first metric of each task; of one task several metrics."""
    tasks = next(iter(scores.values()))
    columns = _first_metrics(tasks, _MAX_COLUMNS if len(tasks) == 1 else 1)
    gains = {}
    for model, by_task in scores.items():
        gains[model] = [score.gain for score in by_task.values() if score.gain]

    headings = ["model", *map(str, columns)]
    has_gains = any(gains.values())
    if has_gains:
        headings.append("difference on all queries")
    table = _result_table(title, headings)

    for model, by_task in scores.items():
        cells: list[Cell] = [column.cell(by_task) for column in columns]
        if has_gains:
            ahead = [_difference(gain.ahead) for gain in gains[model]]
            cells += ahead or [None]
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

    rows = []
    for key, by_task in scores.items():
        row: dict[str, Cell] = _size_fields(sizes[key])
        if not has_models:
            del row["model"]
        row |= {str(column): column.cell(by_task) for column in columns}
        if len(columns) > 1:
            row["mean"] = _times_100(next(iter(mean_figures(by_task).values()), None))
        rows.append(row)

    table = _result_table(title, list(rows[0]))
    for row in rows:
        table.add_row(*row.values())
    return table


def _size_fields(size: VectorSize) -> dict[str, Any]:
    """The columns of a size; layers only if they were requested."""
    layers = {} if size.layers is None else {"layers": size.layers}
    figures = {"dim": size.dim, "quantize": size.quantize, "bytes": size.bytes}
    return {"model": size.model, **layers, **figures}


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


def mean_figures(scores: Scores) -> dict[str, float]:
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


def _difference(comparison: Comparison | None) -> str | None:
    if comparison is None:
        return None
    difference = round(100 * comparison.difference, 2) + 0.0  # without a negative zero
    return f"{difference:+.2f}{_bounds(comparison.interval, digits=2)}"


def _bounds(interval: Interval | None, *, digits: int = 1) -> str:
    if interval is None:
        return ""
    low, high = (f"{100 * bound:.{digits}f}" for bound in interval)
    return f" [{low}, {high}]"


def _has_leak(score: Score) -> bool:
    return score.overlap is not None and bool(score.overlap.texts)


def _trained_share(score: Score) -> str | None:
    overlap = score.overlap
    return None if overlap is None else f"{overlap.rows / overlap.of_rows:.1%}"


def _times_100(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.2f}"


def _result_table(title: str, headings: Sequence[str]) -> ResultTable:
    return ResultTable(*headings, title=title, left=("metric", "quantize"))
