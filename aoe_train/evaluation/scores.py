"""Scores models on tasks; the result of `evaluate` as tables, JSON and a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.encoding.embedders.embedder import Embedder, VectorSize
from aoe_train.evaluation.gain import Gain, gain
from aoe_train.evaluation.overlap import Overlap, trained_examples
from aoe_train.evaluation.pair_task import SearchTask
from aoe_train.evaluation.score_tables import (
    by_size,
    comparisons,
    cosine_plots,
    figures,
    gain_plots,
    improvements,
    rankings,
    side_by_side,
    size_fields,
)
from aoe_train.evaluation.tasks import (
    Comparison,
    EvaluationTask,
    Metrics,
    Resampling,
    Result,
    TaskMetrics,
    TaskVectors,
    compare,
    defined,
    summarise,
)
from aoe_train.settings.train_settings import Purpose
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.cli.result_table import Printed, ResultTable, escape, html_page
from pairkit.base.errors import DataError
from pairkit.dataset.making.dataset_folder import table as markdown_table

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Score:
    """A model's result on one task; `rival` and `over` are other models and rankings."""

    result: Result
    overlap: Overlap | None = None
    rival: Result | None = None
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    over: Mapping[str, Mapping[str, Comparison]] = field(default_factory=dict)
    weight: float | None = None
    gain: Gain | None = None
    # The metrics of the model and of its rival, for plots.
    metrics: Sequence[Metrics] = field(default=(), compare=False, repr=False)

    @property
    def has_leak(self) -> bool:
        """Whether the model was trained on some of the task's texts."""
        return self.overlap is not None and self.overlap.texts > 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: scores and `overlap`, and optionally `against`, `gain`, `over` and `weight`."""
        values = self.result.to_dict() | {
            "overlap": self.overlap and asdict(self.overlap)
        }
        if self.weight is not None:
            values["weight"] = self.weight
        if self.over:
            values["over"] = {}
            for row, comparisons in self.over.items():
                values["over"][row] = {
                    metric: ahead.to_dict() for metric, ahead in comparisons.items()
                }
        if self.rival is None:
            return values
        against = {}
        for metric in self.result.scores:
            against[metric] = {"value": defined(self.rival.scores[metric])}
            if metric in self.comparisons:
                against[metric] |= self.comparisons[metric].to_dict()
        values["against"] = against
        if self.gain:
            values["gain"] = self.gain.to_dict()
        return values


class EvaluatedModel(NamedTuple):
    """A model to score, and its name in tables."""

    name: str
    embedder: Embedder
    # Hashes of its training texts, as far as they are known, and their overlap with each task.
    trained: ndarray
    overlaps: Mapping[str, Overlap]
    layers: int | None = None


class Scoring(NamedTuple):
    """How models are scored on tasks; with `gains` also whether one should replace the other."""

    tasks: Sequence[EvaluationTask]
    resampling: Resampling
    purpose: Purpose | None
    gains: bool
    show: Listener

    def score(
        self, model: EvaluatedModel, rival: EvaluatedModel | None
    ) -> dict[str, Score]:
        """Encode the texts of all tasks, and score a model on each task, by name."""
        ours = self._measure(model.embedder)
        theirs = {} if rival is None else self._measure(rival.embedder)
        trained = np.concatenate([each.trained for each in (model, rival) if each])
        scores = {}
        for task in self._with_progress("resample"):
            metrics = ours[task.name]
            rival_metrics = theirs.get(task.name)
            measured = None
            if self.gains and rival_metrics and self.resampling.number:
                seen = trained_examples(task, trained)
                measured = gain(
                    metrics.whole, rival_metrics.whole, self.resampling, seen
                )
            scores[task.name] = _score_of(
                metrics,
                rival_metrics,
                model.overlaps.get(task.name),
                measured,
                self.resampling,
            )
        return scores

    def _measure(self, embedder: Embedder) -> dict[str, TaskMetrics]:
        """Encode the texts of all tasks once, and measure a model on each task."""
        vectors = TaskVectors(
            embedder.encode,
            [task.texts for task in self.tasks],
            separator=embedder.separator,
            similarity=embedder.similarity,
            prompts=embedder.prompts,
        )
        by_task = {}
        for task in self._with_progress("score"):
            searched = vectors
            if self.purpose is not None:
                searched = vectors.among(task.texts, self.purpose)
            metrics = task.measure(searched)
            if isinstance(metrics, Metrics):
                metrics = TaskMetrics(metrics)
            by_task[task.name] = metrics
        return by_task

    def _with_progress(self, stage: str) -> Iterator[EvaluationTask]:
        total = len(self.tasks)
        for done, task in enumerate(self.tasks):
            self.show(Progress(stage, done, total, task.name))
            yield task
        self.show(Progress(stage, total, total, ended=True))


def score_candidates(
    task: SearchTask, resamples: Resampling
) -> dict[str, dict[str, Score]]:
    """Score each candidate of a sheet of judged results, and its gain over the first one."""
    metrics = {
        name: TaskMetrics(task.metrics(ranks)) for name, ranks in task.ranks.items()
    }
    if len(metrics) < 2:
        raise DataError(
            "has no candidates to compare; sample again with this version's `aoe sample-pairs --queries`, or"
            " give --model and --against",
            path=task.name,
        )
    first = next(iter(metrics.values()))
    for_all = resamples.for_several(len(metrics) - 1)
    scores = {}
    for name, candidate_metrics in metrics.items():
        rival = None if candidate_metrics is first else first
        measured = None
        if rival is not None and resamples.number:
            measured = gain(candidate_metrics.whole, rival.whole, for_all)
        scored = _score_of(candidate_metrics, rival, None, measured, resamples)
        scores[name] = {task.name: scored}
    return scores


def _score_of(
    ours: TaskMetrics,
    theirs: TaskMetrics | None,
    trained_on: Overlap | None,
    measured: Gain | None,
    resamples: Resampling,
) -> Score:
    """The score of a task, compared with a rival if there is one."""
    result = summarise(ours, resamples)
    if theirs is None:
        return Score(result, trained_on, metrics=[ours.whole])
    return Score(
        result,
        trained_on,
        rival=summarise(theirs),
        comparisons=compare(ours.whole, theirs.whole, resamples),
        gain=measured,
        metrics=[ours.whole, theirs.whole],
    )


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
    scores: Mapping[str, Mapping[str, Score]]
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
        title = f"{self.suite}, times 100"
        if self._rankings:  # `scores` has rankings instead of models
            (task,) = next(iter(self.scores.values()))
            ranked = {name: by_task[task] for name, by_task in self.scores.items()}
            title = f"{task}: duplicates found, times 100"
            tables = [rankings(ranked, title, subsets=subsets)]
            if self._resampling.number:
                title = (
                    f"{task}: difference times 100, with 95 % intervals over queries"
                )
                tables.append(improvements(ranked, title))
            return tables
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
                {**size_fields(self.sizes[key]), "tasks": tasks}
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
            [{"key": key, **size_fields(size)} for key, size in self.sizes.items()]
        )
        return frame.rename({"model": "key"}).join(sizes, on="key").drop("key")

    def to_markdown(self) -> str:
        """All tables in Markdown."""
        paragraphs = []
        for table in self.tables(subsets=True):
            cells = markdown_table(table.headings, table.rows)
            paragraphs += [f"## {table.title}", cells]

        number = self._resampling.number
        if number:
            resamples = f"{number:,} resamples, seed {self._resampling.seed}"
            paragraphs.append(f"In brackets: 95 % bootstrap intervals ({resamples}).")

        leaks = [
            f"- {task}: {model} was {score.overlap}"
            for model, task, score in self._scores_by_task()
            if score.has_leak
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
