"""A model's scores on tasks, with intervals, a rival's scores and the overlap with training texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from pairkit.app.errors import ConfigError
from pairkit.app.progress import Display, Listener, Progress

_FEWEST = 100  # with less an interval of 95 % has no resamples in its tails


@dataclass(frozen=True, slots=True)
class Resampling:
    """Bootstrap resamples for intervals and tests."""

    number: int = 1000
    seed: int = 42

    def __post_init__(self) -> None:
        if self.number < _FEWEST and self.number != 0:
            raise ConfigError(f"--resamples {self.number}: expected {_FEWEST} or more, or 0 for no intervals")


@dataclass(frozen=True, slots=True)
class Score:
    """A model on one task."""

    result: Result
    overlap: Overlap | None = None
    rival: Result | None = None
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    over: Mapping[str, Mapping[str, Comparison]] = field(default_factory=dict)
    weight: float | None = None
    gain: Gain | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON: the figures, `overlap`; `against`, `gain`, `over`, `weight` if there are such."""
        found = self.result.to_dict() | {"overlap": self.overlap and self.overlap.to_dict()}
        if self.weight is not None:
            found["weight"] = self.weight
        if self.over:
            found["over"] = {
                row: {metric: _told(ahead) for metric, ahead in comparisons.items()}
                for row, comparisons in self.over.items()
            }
        if self.rival is None:
            return found
        ahead = {
            metric: {"value": defined(self.rival.scores[metric]), **_told(self.comparisons.get(metric))}
            for metric in self.result.scores
        }
        return {**found, "against": ahead, **({"gain": self.gain.to_dict()} if self.gain else {})}


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
    """Encode the texts of all tasks, and judge a model on each, by name."""
    with Display(progress) as show:
        ours = _metrics(embedder, tasks, show)
        theirs = {} if rival is None else _metrics(rival, tasks, show)
        return {
            task.name: _score(task, ours[task.name], theirs.get(task.name), trained, resamples, gains=gains)
            for task in _shown(tasks, "resample", show)
        }


def _metrics(embedder: Embedder, tasks: Sequence[EvaluationTask], show: Listener) -> dict[str, TaskMetrics]:
    vectors = TaskVectors(
        embedder.encode,
        [task.texts for task in tasks],
        separator=embedder.separator,
        similarity=embedder.similarity,
    )
    return {task.name: measured(task, vectors) for task in _shown(tasks, "score", show)}


def _shown(tasks: Sequence[EvaluationTask], stage: str, show: Listener) -> Iterator[EvaluationTask]:
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
    how = {"resamples": resamples.number, "seed": resamples.seed}
    return Score(
        summarise(ours, **how),
        None if trained is None else overlap(task, trained),
        None if theirs is None else summarise(theirs),
        compare(ours.whole, theirs.whole, **how) if theirs and resamples.number else {},
        gain=gain(ours.whole, theirs.whole, **how) if theirs and resamples.number and gains else None,
    )


def _told(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {}
    return {"difference": comparison.difference, "ci95": list(comparison.interval), "p": comparison.p}
