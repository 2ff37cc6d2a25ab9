"""The columns of a recipe's table: tasks read once, and scored for each trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from aoe_train._evaluate import SUITES, Vectors, find_tasks, judge, read_pair_task, summarise
from aoe_train._origin import hash_files
from pairkit.errors import ConfigError, DataError
from pairkit.files import sha256
from pairkit.labels import LabelRules

if TYPE_CHECKING:
    from aoe_train._evaluate import Task
    from aoe_train._evaluate.embedders.embedder import Embedder
    from aoe_train._reproduce.plan import Places
    from aoe_train._reproduce.recipe import Column

MEAN, RESERVED = "mean", "dev"
PAIRS = "pairs"  # instead of a suite: any pairs with labels


@dataclass(frozen=True)
class Scoring:
    """Tasks with the metric that the table shows of them.

    Attributes:
        files: What they were read from, by SHA-256.
    """

    column: Column
    tasks: Sequence[Task]
    files: Mapping[str, str]

    @property
    def titles(self) -> list[str]:
        """Its columns, but for those of parts."""
        own = [self.column.name or task.name for task in self.tasks]
        return [*own, MEAN] if self.column.mean else own


def read_scorings(columns: Iterable[Column], places: Places) -> list[Scoring]:
    """Read the tasks of every column.

    Raises:
        ConfigError: No such suite or metric, no data folder, or two columns of one name.
        DataError: A task is not there, or a file is not what it should be.
    """
    found = [_read(column, places) for column in columns]
    titles = [title for scoring in found for title in scoring.titles]
    for title in titles:
        if titles.count(title) > 1 or title == RESERVED:
            raise ConfigError(f"two columns would be named {title!r}; give each a name of its own")
    for scoring in found:
        _check_metric(scoring)
    return found


def _read(column: Column, places: Places) -> Scoring:
    if column.suite == PAIRS and column.data is not None:
        source = places.fill(column.data)
        task = read_pair_task(source, column.split, LabelRules(column.labels))
        return Scoring(column, [replace(task, name=column.name or Path(source).name)], hash_files(source))
    if column.suite not in SUITES:
        raise ConfigError(f"suite {column.suite!r}: expected {', '.join(SUITES)}, or {PAIRS} with data")
    suite, split = SUITES[column.suite](), column.split or "test"
    folder = Path(places.fill(column.data or "{data}"))
    tasks, missing = find_tasks(suite, folder, names=column.tasks, split=split)
    for name, reason in missing.items():
        raise DataError(f"the table has a column for {name}, which {reason}", path=folder)
    names = [name for name in (*suite.tasks, *suite.extra) if name in (column.tasks or suite.tasks)]
    files = [path for name in names for path in suite.files(name, folder, split)]
    return Scoring(column, tasks, {path.name: sha256(path) for path in files})


def _check_metric(scoring: Scoring) -> None:
    """Judge random vectors, where that takes no time: a bad metric should not be found after hours."""
    if scoring.column.suite not in (PAIRS, "sts", "gis"):
        return
    draw = np.random.default_rng(0)
    vectors = Vectors(lambda texts: draw.normal(size=(len(texts), 4)), [task.texts for task in scoring.tasks])
    _figures(scoring, vectors)


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
