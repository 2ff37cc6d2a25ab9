"""A model's figures on tasks, with all that belongs beside them: intervals, a rival's figures, overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aoe_train._evaluate.embedders.embedder import Embedder
from aoe_train._evaluate.gain import Gain, gain
from aoe_train._evaluate.overlap import Overlap, overlap
from aoe_train._evaluate.resample import Comparison, compare
from aoe_train._evaluate.tasks import Result, Task, Verdict, defined, summarise
from aoe_train._evaluate.vectors import Vectors
from pairkit.errors import ConfigError
from pairkit.progress import Display, Listener, Progress

_FEWEST = 100  # with less an interval of 95 % has no resamples in its tails


@dataclass(frozen=True, slots=True)
class Draws:
    """How uncertainty is told.

    Attributes:
        number: Bootstrap resamples; 0 for no intervals and no tests.
        seed: Which ones.
    """

    number: int = 1000
    seed: int = 42

    def __post_init__(self) -> None:
        if self.number < _FEWEST and self.number != 0:
            raise ConfigError(f"--draws {self.number}: expected {_FEWEST} or more, or 0 for no intervals")


@dataclass(frozen=True, slots=True)
class Score:
    """What is known of a model on one task.

    Attributes:
        result: Its figures.
        overlap: What of the task it was trained on; None if it doesn't say what it was trained on.
        rival: Another model's figures, if there is one.
        comparisons: How far the model is ahead of it, by metric.
        over: How far it is ahead of other rows of the same table, by row and metric.
        weight: How much vectors count in it beside words, where it is a hybrid.
        gain: Whether the model is better than its rival by all that the labels tell, where that was asked.
    """

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
    tasks: Sequence[Task],
    *,
    rival: Embedder | None = None,
    trained: np.ndarray | None = None,
    draws: Draws,
    gains: bool = False,
    progress: bool | Listener = True,
) -> dict[str, Score]:
    """Encode the texts of all tasks, and judge a model on each, by name.

    Args:
        embedder: The model.
        tasks: With names that differ.
        rival: A model to compare it with, on the same examples and resamples.
        trained: Digests of what the model was trained on, see `overlap`.
        draws: For intervals and tests.
        gains: Say in a word whether the model is better than its rival.
        progress: Shown on stderr, or told to a function.

    Raises:
        DataError: See `Task.judge` and `Vectors`.
        RemoteError: See `Embedder.encode`.
    """
    with Display(progress) as show:
        ours = _verdicts(embedder, tasks, show)
        theirs = {} if rival is None else _verdicts(rival, tasks, show)
        return {
            task.name: _score(task, ours[task.name], theirs.get(task.name), trained, draws, gains=gains)
            for task in _shown(tasks, "resample", show)
        }


def _verdicts(embedder: Embedder, tasks: Sequence[Task], show: Listener) -> dict[str, Verdict]:
    vectors = Vectors(
        embedder.encode,
        [task.texts for task in tasks],
        separator=embedder.separator,
        similarity=embedder.similarity,
    )
    return {task.name: task.judge(vectors) for task in _shown(tasks, "judge", show)}


def _shown(tasks: Sequence[Task], stage: str, show: Listener) -> Iterator[Task]:
    for done, task in enumerate(tasks):
        show(Progress(stage, done, len(tasks), task.name))
        yield task
    show(Progress(stage, len(tasks), len(tasks), ended=True))


def _score(
    task: Task,
    ours: Verdict,
    theirs: Verdict | None,
    trained: np.ndarray | None,
    draws: Draws,
    *,
    gains: bool,
) -> Score:
    how = {"draws": draws.number, "seed": draws.seed}
    return Score(
        summarise(ours, **how),
        None if trained is None else overlap(task, trained),
        None if theirs is None else summarise(theirs),
        compare(ours.whole, theirs.whole, **how) if theirs and draws.number else {},
        gain=gain(ours.whole, theirs.whole, **how) if theirs and draws.number and gains else None,
    )


def _told(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {}
    return {"difference": comparison.difference, "ci95": list(comparison.interval), "p": comparison.p}
