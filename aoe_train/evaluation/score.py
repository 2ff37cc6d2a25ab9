"""Scores a model on tasks, with intervals, a comparison with a rival, and the overlap with training texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.evaluation.gain import Gain, gain
from aoe_train.evaluation.overlap import Overlap, overlap
from aoe_train.evaluation.resample import Comparison, compare
from aoe_train.evaluation.tasks import (
    EvaluationTask,
    Result,
    TaskMetrics,
    TaskVectors,
    defined,
    measured,
    summarise,
)
from pairkit.base.cli.progress import Display, Listener, Progress
from pairkit.base.errors import ConfigError

_MIN_RESAMPLES = 100  # fewer leave hardly any in the tails of a 95 % interval


@dataclass(frozen=True, slots=True)
class Resampling:
    """Bootstrap resamples for intervals and tests."""

    number: int = 1000
    seed: int = 42

    def __post_init__(self) -> None:
        if self.number < _MIN_RESAMPLES and self.number != 0:
            raise ConfigError(f"--resamples {self.number}: expected at least {_MIN_RESAMPLES}, or 0 for none")


@dataclass(frozen=True, slots=True)
class Score:
    """A model's result on one task; `rival` and `over` are other models and rankings."""

    result: Result
    overlap: Overlap | None = None
    rival: Result | None = None
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    over: Mapping[str, Mapping[str, Comparison]] = field(default_factory=dict)
    weight: float | None = None
    gain: Gain | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: scores and `overlap`, and optionally `against`, `gain`, `over` and `weight`."""
        values = self.result.to_dict() | {"overlap": self.overlap and asdict(self.overlap)}
        if self.weight is not None:
            values["weight"] = self.weight
        if self.over:
            values["over"] = {
                row: {metric: _to_dict(comparison) for metric, comparison in comparisons.items()}
                for row, comparisons in self.over.items()
            }
        if self.rival is None:
            return values
        against = {
            metric: {"value": defined(self.rival.scores[metric]), **_to_dict(self.comparisons.get(metric))}
            for metric in self.result.scores
        }
        return {**values, "against": against, **({"gain": self.gain.to_dict()} if self.gain else {})}


def score(
    embedder: Embedder,
    tasks: Sequence[EvaluationTask],
    *,
    rival: Embedder | None = None,
    trained: np.ndarray | None = None,
    resamples: Resampling,
    gains: bool = False,
    progress: bool | Listener = True,
) -> dict[str, Score]:
    """Encode the texts of all tasks, and score a model on each task, by name."""
    with Display(progress) as show:
        ours = _metrics(embedder, tasks, show)
        theirs = {} if rival is None else _metrics(rival, tasks, show)
        return {
            task.name: _score(task, ours[task.name], theirs.get(task.name), trained, resamples, gains=gains)
            for task in _with_progress(tasks, "resample", show)
        }


def _metrics(embedder: Embedder, tasks: Sequence[EvaluationTask], show: Listener) -> dict[str, TaskMetrics]:
    vectors = TaskVectors(
        embedder.encode,
        [task.texts for task in tasks],
        separator=embedder.separator,
        similarity=embedder.similarity,
        prompts=embedder.prompts,
    )
    return {task.name: measured(task, vectors) for task in _with_progress(tasks, "score", show)}


def _with_progress(tasks: Sequence[EvaluationTask], stage: str, show: Listener) -> Iterator[EvaluationTask]:
    for done, task in enumerate(tasks):
        show(Progress(stage, done, len(tasks), task.name))
        yield task
    show(Progress(stage, len(tasks), len(tasks), ended=True))


def _score(
    task: EvaluationTask,
    ours: TaskMetrics,
    theirs: TaskMetrics | None,
    trained: np.ndarray | None,
    resamples: Resampling,
    *,
    gains: bool,
) -> Score:
    options = {"resamples": resamples.number, "seed": resamples.seed}
    return Score(
        summarise(ours, **options),
        None if trained is None else overlap(task, trained),
        None if theirs is None else summarise(theirs),
        compare(ours.whole, theirs.whole, **options) if theirs and resamples.number else {},
        gain=gain(ours.whole, theirs.whole, **options) if theirs and resamples.number and gains else None,
    )


def _to_dict(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {}
    return {"difference": comparison.difference, "ci95": list(comparison.interval), "p": comparison.p}
