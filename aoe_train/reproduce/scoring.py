"""The columns of a recipe's table: tasks read once, and scored for each trained model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from aoe_train.evaluate import SUITES, Vectors, find_tasks, judge, read_pair_task, summarise
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train.evaluate import Task
    from aoe_train.evaluate.embedders.embedder import Embedder
    from aoe_train.preparation import Say
    from aoe_train.reproduce.plan import Places
    from aoe_train.reproduce.recipe import Column

MEAN = "mean"
PAIRS = "pairs"  # instead of a suite: any pairs with labels


@dataclass(frozen=True)
class Scoring:
    """Tasks with the metric that the table shows of them."""

    column: Column
    tasks: Sequence[Task]


def read_scorings(columns: Iterable[Column], places: Places, say: Say) -> list[Scoring]:
    """Read the tasks of every column; one that is not there is told and left out.

    Raises:
        ConfigError: No such suite, or no data folder.
        DataError: None of a suite's tasks is there, or a file is not what it should be.
    """
    return [Scoring(column, _tasks(column, places, say)) for column in columns]


def _tasks(column: Column, places: Places, say: Say) -> list[Task]:
    if column.suite == PAIRS and column.data is not None:
        source = places.fill(column.data)
        task = read_pair_task(source, column.split, label_values=column.labels)
        return [replace(task, name=column.name or Path(source).name)]
    if column.suite not in SUITES:
        raise ConfigError(f"suite {column.suite!r}: expected {', '.join(SUITES)}, or {PAIRS} with data")
    folder = Path(places.fill(column.data or "{data}"))
    tasks, missing = find_tasks(
        SUITES[column.suite](), folder, names=column.tasks, split=column.split or "test"
    )
    for name, reason in missing.items():
        say(f"left out {name}: {reason}")
    return tasks


def score(embedder: Embedder, scorings: Sequence[Scoring]) -> dict[str, float]:
    """A model's figure in each column, in the metric's own range.

    Raises:
        DataError: The vectors allow no figure.
    """
    tasks = [task for scoring in scorings for task in scoring.tasks]
    vectors = Vectors(embedder.encode, [task.texts for task in tasks], separator=embedder.separator)
    found: dict[str, float] = {}
    for scoring in scorings:
        found |= _figures(scoring, vectors)
    return found


def _figures(scoring: Scoring, vectors: Vectors) -> dict[str, float]:
    metric = scoring.column.metric
    found: dict[str, float] = {}
    for name, verdict in judge(vectors, scoring.tasks).items():
        result = summarise(verdict)
        if metric not in result.scores:
            raise ConfigError(f"metric {metric!r}: {name} has {', '.join(result.scores)}")
        title = scoring.column.name or name
        found[title] = result.scores[metric]
        if scoring.column.parts:
            found |= {
                f"{title} {part}": figures.scores[metric]
                for part, figures in result.subsets.items()
                if metric in figures.scores
            }
    if scoring.column.mean:
        found[MEAN] = fmean(found[task.name] for task in scoring.tasks)
    return found
