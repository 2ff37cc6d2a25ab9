"""Scores models on tasks, with intervals and the overlap with their training texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.encoding.embedders.embedder import Embedder
from aoe_train.evaluation.gain import Gain, gain
from aoe_train.evaluation.overlap import Overlap, trained_examples
from aoe_train.evaluation.resample import Comparison, Metrics, Resampling, compare
from aoe_train.evaluation.search_results import SearchTask
from aoe_train.evaluation.tasks import (
    EvaluationTask,
    Result,
    TaskMetrics,
    TaskVectors,
    defined,
    summarise,
)
from aoe_train.settings.train_settings import Purpose
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import DataError


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
    # Hashes of its training texts, if they are known, and their overlap with each task.
    trained: ndarray | None
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
        trained = [each.trained for each in (model, rival) if each is not None]
        known = [hashes for hashes in trained if hashes is not None]
        training_hashes = np.concatenate([np.empty(0, np.uint64), *known])
        scores = {}
        for task in self._with_progress("resample"):
            metrics = ours[task.name]
            rival_metrics = theirs.get(task.name)
            measured = None
            if self.gains and rival_metrics and self.resampling.number:
                seen = trained_examples(task, training_hashes)
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
