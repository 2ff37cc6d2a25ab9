"""What every suite is made of, and how it is run: read the tasks, encode their texts once, score each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from aoe_train.evaluate.vectors import Encode, Vectors
from pairkit.errors import ConfigError, DataError

Split = Literal["test", "dev"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a model reached on a task.

    Attributes:
        scores: Metric to value, each in its own natural range (a correlation in [-1, 1], not times 100).
        n: Examples scored.
        subsets: The same by part of the task, where it has parts; one that is too small or too uniform for
            its metric has only `n`.
    """

    scores: Mapping[str, float]
    n: int
    subsets: Mapping[str, Result] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON: the scores, `n`, and `subsets` if there are any."""
        parts = {name: part.to_dict() for name, part in self.subsets.items()}
        return {**self.scores, "n": self.n, **({"subsets": parts} if parts else {})}


class Task(Protocol):
    """Texts, and what is known about them that vectors should show."""

    @property
    def name(self) -> str:
        """As in the papers' tables."""
        ...

    @property
    def texts(self) -> Sequence[str]:
        """All that have to be encoded; repeats cost nothing."""
        ...

    def score(self, vectors: Vectors) -> Result:
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

    def path(self, task: str, data_dir: Path, split: Split) -> Path | None:
        """Where a task lies; None if it has no such split."""
        ...

    def read(self, task: str, path: Path) -> Task:
        """A task.

        Raises:
            DataError: The file is not what the suite expects.
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
        DataError: None is there.
    """
    known = (*suite.tasks, *suite.extra)
    for name in names:
        if name not in known:
            raise ConfigError(f"no task {name!r}; there are {', '.join(known)}")
    found: list[Task] = []
    missing: dict[str, str] = {}
    for name in [name for name in known if name in (names or suite.tasks)]:
        path = suite.path(name, data_dir, split)
        if path is None:
            missing[name] = f"has no {split} split"
        elif not path.is_file():
            missing[name] = f"no file {path}"
        else:
            found.append(suite.read(name, path))
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise DataError(f"none of the tasks is here ({reasons})", path=data_dir)
    return found, missing


def evaluate(encode: Encode, tasks: Sequence[Task]) -> dict[str, Result]:
    """Score a model on tasks; a text that several of them share is encoded once.

    Raises:
        DataError: See `Task.score`.
    """
    vectors = Vectors(encode, [task.texts for task in tasks])
    return {task.name: task.score(vectors) for task in tasks}
