"""Scores models for the columns of a recipe's table, with `aoe_train.evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

import aoe_train
from pairkit.base.errors import ConfigError, DataError
from papers import suites
from papers.reproduce.table import DEV
from papers.suites.mteb import MTEB, evaluate_mteb, mteb_tasks
from papers.suites.published import MEAN

if TYPE_CHECKING:
    from papers.reproduce.plan import Folders
    from papers.reproduce.recipe import Column, Precision

PAIRS = "pairs"  # any pairs with labels, instead of a suite
_FAST = (PAIRS, "sts", "gis")  # suites that are cheap to score with random vectors


class Scoring:
    """Scores models on all columns."""

    def __init__(self, columns: Sequence[Column], folders: Folders) -> None:
        self._columns = columns
        self._folders = folders
        self.titles: list[str] = []
        # A dry run, so that a bad metric or absent data is not found after hours.
        for column in columns:
            if column.suite in _FAST:
                tasks = list(self._tasks(column, _random_vectors, None))
                self._scores(column, tasks)
                self.titles += [column.name or name for name, _ in tasks]
            elif column.suite in suites.SUITES:
                self.titles += column.tasks or suites.SUITES[column.suite].tasks
            elif column.suite == MTEB:
                mteb_tasks(column.tasks)
            if column.mean:
                self.titles.append(MEAN)
        for title in self.titles:
            if self.titles.count(title) > 1 or title == DEV:
                raise ConfigError(
                    f"two columns would be named {title!r}; set different names"
                )

    def score(
        self, model: Any, precision: Precision
    ) -> tuple[dict[str, float], dict[str, int]]:
        """A model's score in each column, and for each task the number of examples that it was trained on."""
        scores: dict[str, float] = {}
        overlap: dict[str, int] = {}
        for column in self._columns:
            if column.suite == MTEB:
                by_task = evaluate_mteb(model, column.tasks, precision=precision)
                scores |= by_task
                if column.mean:
                    scores[MEAN] = fmean(by_task.values())
                continue
            tasks = list(self._tasks(column, model, precision))
            scores |= self._scores(column, tasks)
            for name, task in tasks:
                if task.overlap and task.overlap.rows:
                    overlap[column.name or name] = task.overlap.rows
        return scores, overlap

    def _tasks(self, column: Column, model: Any, precision: str | None) -> Any:
        """The tasks of a column by name, each with its score."""
        options: dict[str, Any] = {"resamples": 0, "cache": False, "progress": False}
        if isinstance(model, str):
            options["precision"] = precision
        data = self._folders.fill(column.data or "{data}")
        if column.suite == PAIRS and column.data is not None:
            options |= {"data": data, "labels": column.labels}
        elif column.suite == "binary":
            options |= {"suite": "gis", "data": data}
        if "data" in options:
            evaluation = aoe_train.evaluate(model, split=column.split, **options)
            missing = evaluation.missing
        else:
            split = column.split or "test"
            evaluation, missing = suites.evaluate(
                model, column.suite, data, tasks=column.tasks, split=split, **options
            )
        for name, reason in missing.items():
            raise DataError(f"{name}: {reason}; the table has a column for it")
        for scores in evaluation.scores.values():
            yield from scores.items()

    def _scores(
        self, column: Column, tasks: Sequence[tuple[str, Any]]
    ) -> dict[str, float]:
        metric = column.metric
        scores: dict[str, float] = {}
        for name, task in tasks:
            result = task.result
            title = column.name or name
            if metric not in result.scores:
                raise ConfigError(
                    f"metric {metric!r}: {name} has {', '.join(result.scores)}"
                )
            scores[title] = result.scores[metric]
            for part, subset in result.subsets.items() if column.parts else ():
                if metric in subset.scores:
                    scores[f"{title} {part}"] = subset.scores[metric]
        if column.mean:
            scores[MEAN] = fmean(scores[name] for name, _ in tasks)
        return scores


def _random_vectors(texts: list[str]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(texts), 4))
