"""What every suite is made of, and how it is run: read the tasks, encode their texts once, judge each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from aoe_train._evaluate.resample import Interval, Judged, intervals
from aoe_train._evaluate.vectors import Input, Vectors
from pairkit.errors import ConfigError, DataError

Split = Literal["test", "dev"]


class NoTaskHere(DataError):  # noqa: N818 - named after what was found
    """A data folder holds none of a suite's tasks."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a model did on each example of a task, as a whole and in parts.

    Attributes:
        whole: All examples.
        parts: The same by part of the task, where it has parts; None for one that is too small or too uniform
            for its metric, beside the number of its examples.
    """

    whole: Judged
    parts: Mapping[str, tuple[Judged | None, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a model reached on a task.

    Attributes:
        scores: Metric to value, each in its own natural range (a correlation in [-1, 1], not times 100).
        n: Examples scored.
        intervals: Metric to its bootstrap confidence interval, where one was asked for.
        subsets: The same by part of the task, where it has parts; one that is too small or too uniform for
            its metric has only `n`.
    """

    scores: Mapping[str, float]
    n: int
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    subsets: Mapping[str, Result] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON: the scores, `n`, `ci95` and `subsets` if there are any; None if undefined."""
        parts = {name: part.to_dict() for name, part in self.subsets.items()}
        bounds = {metric: self.intervals.get(metric) for metric in self.scores}
        return {
            **{metric: defined(value) for metric, value in self.scores.items()},
            "n": self.n,
            **({"ci95": {m: bound and list(bound) for m, bound in bounds.items()}} if self.intervals else {}),
            **({"subsets": parts} if parts else {}),
        }


def defined(value: float) -> float | None:
    """The value; None, as JSON has no other word for it, where it is no number."""
    return value if math.isfinite(value) else None


class Task(Protocol):
    """Inputs, and what is known about them that vectors should show."""

    @property
    def name(self) -> str:
        """As in the papers' tables."""
        ...

    @property
    def texts(self) -> Sequence[Input]:
        """All that have to be encoded; repeats cost nothing."""
        ...

    def judge(self, vectors: Vectors) -> Verdict:
        """Judge vectors that hold at least this task's texts.

        Raises:
            DataError: The vectors or labels allow no figure.
        """
        ...


class Suite(Protocol):
    """A family of tasks with a place in a data folder."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """What is run if nothing is chosen, in the order of the papers' tables."""
        ...

    @property
    def extra(self) -> tuple[str, ...]:
        """What is run only if chosen."""
        ...

    def files(self, task: str, data_dir: Path, split: Split) -> tuple[Path, ...]:
        """The files that a task is made of; none if it has no such split."""
        ...

    def read(self, task: str, files: Sequence[Path]) -> Task:
        """A task, from the files that `files` named.

        Raises:
            DataError: A file is not what the suite expects, or has not the published number of rows.
        """
        ...


def find_tasks(
    suite: Suite, data_dir: Path, *, names: Sequence[str] = (), split: Split = "test"
) -> tuple[list[Task], dict[str, str]]:
    """Read the tasks that are there.

    Returns:
        The tasks in the suite's order, and for each that is missing the reason.

    Raises:
        ConfigError: A name that the suite does not know.
        NoTaskHere: None is there.
        DataError: See `Suite.read`.
    """
    known = (*suite.tasks, *suite.extra)
    for name in names:
        if name not in known:
            raise ConfigError(f"no task {name!r}; there are {', '.join(known)}")
    found: list[Task] = []
    missing: dict[str, str] = {}
    for name in [name for name in known if name in (names or suite.tasks)]:
        files = suite.files(name, data_dir, split)
        absent = [path for path in files if not path.is_file()]
        if not files:
            missing[name] = f"has no {split} split"
        elif absent:
            missing[name] = f"no file {absent[0]}"
        else:
            found.append(suite.read(name, files))
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise NoTaskHere(f"none of the tasks is here ({reasons})", path=data_dir)
    return found, missing


def judge(vectors: Vectors, tasks: Sequence[Task]) -> dict[str, Verdict]:
    """Each task's verdict, by name.

    Raises:
        DataError: See `Task.judge`.
    """
    return {task.name: task.judge(vectors) for task in tasks}


def summarise(verdict: Verdict, *, draws: int = 0, seed: int = 0) -> Result:
    """The figures of a verdict, with bootstrap intervals if there are `draws`; parts have figures alone."""
    whole = verdict.whole
    parts = {
        name: Result({} if part is None else part.scores(), n) for name, (part, n) in verdict.parts.items()
    }
    bounds = intervals(whole, draws=draws, seed=seed) if draws else {}
    return Result(whole.scores(), whole.n, bounds, parts)


def check_rows(found: int, published: int, path: Path) -> None:
    """Refuse a file that was cut off, added to or mistaken for another.

    Raises:
        DataError: The numbers differ.
    """
    if found != published:
        raise DataError(
            f"{found:,} rows, but {published:,} are published: not the whole file, or another one; fetch it"
            " again (pairs are scored as they are with --data)",
            path=path,
        )
