"""The columns of a recipe's table, by `aoe_train.evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

import aoe_train
from pairkit.app.errors import ConfigError, DataError
from papers import suites

if TYPE_CHECKING:
    from papers.reproduce.plan import Places
    from papers.reproduce.recipe import Column

MEAN, RESERVED = "mean", "dev"
PAIRS = "pairs"  # instead of a suite: any pairs with labels
_QUICK = PAIRS, "sts", "gis"  # suites that random vectors are scored on in no time


class Scoring:
    """Scores models on all columns."""

    def __init__(self, columns: Sequence[Column], places: Places, precision: str) -> None:
        self._columns, self._places, self._precision = columns, places, precision
        self.titles: list[str] = []
        for column in columns:  # a bad metric or absent data should not be found after hours
            if column.suite in _QUICK:
                tasks = list(self._tasks(column, _drawn))
                self._figures(column, tasks)
                self.titles += [column.name or name for name, _ in tasks]
                self.titles += [MEAN] if column.mean else []
        for title in self.titles:
            if self.titles.count(title) > 1 or title == RESERVED:
                raise ConfigError(f"two columns would be named {title!r}; give each a name of its own")

    def score(self, model: Any) -> tuple[dict[str, float], dict[str, int]]:
        """A model's figure in each column, and by task how many examples it was trained on."""
        found: dict[str, float] = {}
        seen: dict[str, int] = {}
        for column in self._columns:
            tasks = list(self._tasks(column, model))
            found |= self._figures(column, tasks)
            seen |= {column.name or name: each.overlap.rows for name, each in tasks if each.overlap}
        return found, {name: rows for name, rows in seen.items() if rows}

    def _tasks(self, column: Column, model: Any) -> Any:
        """A column's tasks by name, each with its score."""
        given: dict[str, Any] = {"precision": self._precision} if isinstance(model, str) else {}
        if column.suite == PAIRS and column.data is not None:
            given |= {"data": self._places.fill(column.data), "labels": column.labels}
        elif column.suite == "gis":
            given |= {"suite": "gis", "data": self._places.fill(column.data or "{data}")}
        given |= {"resamples": 0, "cache": False, "progress": False}
        if "data" in given:
            found = aoe_train.evaluate(model, split=column.split, **given)
            missing = found.missing
        else:
            folder = self._places.fill(column.data or "{data}")
            names, split = column.tasks, column.split or "test"
            found, missing = suites.evaluate(model, column.suite, folder, tasks=names, split=split, **given)
        if missing:
            name, reason = next(iter(missing.items()))
            raise DataError(f"the table has a column for {name}, which {reason}")
        for scores in found.scores.values():
            yield from scores.items()

    def _figures(self, column: Column, tasks: Sequence[tuple[str, Any]]) -> dict[str, float]:
        metric = column.metric
        found: dict[str, float] = {}
        for name, each in tasks:
            result, title = each.result, column.name or name
            if metric not in result.scores:
                raise ConfigError(f"metric {metric!r}: {name} has {', '.join(result.scores)}")
            found[title] = result.scores[metric]
            if column.parts:
                found |= {
                    f"{title} {part}": figures.scores[metric]
                    for part, figures in result.subsets.items()
                    if metric in figures.scores
                }
        if column.mean:
            found[MEAN] = fmean(found[name] for name, _ in tasks)
        return found


def _drawn(texts: list[str]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(texts), 4))
