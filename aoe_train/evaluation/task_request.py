"""The tasks that a call of `evaluate` asks for: a suite, pairs of one's own, or tasks of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from aoe_train.evaluation.duplicates.tables import read_duplicates
from aoe_train.evaluation.pairs import read_binary_task, read_pair_task
from aoe_train.evaluation.sts import read_sts
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train.evaluation.task import EvaluationTask, Split
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import LabelRules

DUPLICATES = "duplicates"
_SUITES = ("sts", "gis", DUPLICATES)


class ChosenTasks(NamedTuple):
    """The tasks that models are measured on."""

    suite: str
    tasks: Sequence[EvaluationTask]
    missing: Mapping[str, str]


class TaskRequest(NamedTuple):
    """Arguments of `evaluate` that choose its tasks."""

    suite: str | None
    data_dir: str | Path | None
    tasks: tuple[str | EvaluationTask, ...]
    data: Source | None
    reports: Source | None
    split: str | None
    columns: Mapping[str, str] | None

    def check(self, rules: Mapping[str, object]) -> None:
        """Refuse options that contradict each other, before anything is read."""
        if self.data is not None and (self.data_dir is not None or self.tasks):
            raise ConfigError("--data replaces the test sets; leave --data-dir and --task out")
        own = {"--columns": self.columns, "--reports": self.reports, **rules}
        given = [flag for flag, value in own.items() if value is not None]
        if self.data is None and given:
            raise ConfigError(f"{given[0]} is for --data, pairs of your own; leave it out")
        if self.reports is not None and self.suite != DUPLICATES:
            raise ConfigError(f"--reports is for --suite {DUPLICATES}; leave it out")
        if self.split not in (None, "test", "dev"):
            raise ConfigError(f"--split {self.split}: expected test or dev")
        if self.own_tasks:
            if self.data_dir is not None or self.split is not None or len(self.own_tasks) < len(self.tasks):
                raise ConfigError("tasks of your own go without data_dir, split and names of tasks")
        elif self.suite is not None and self.suite not in _SUITES:
            raise ConfigError(f"--suite {self.suite}: expected {', '.join(_SUITES)}")
        elif self.data is None and self.suite in ("gis", DUPLICATES):
            raise ConfigError(f"--suite {self.suite}: give --data, its pairs, instead of --data-dir")
        elif self.data is None and self.data_dir is None:
            raise ConfigError("give --data, pairs of your own, or --data-dir, the folder with the test sets")

    @property
    def own_tasks(self) -> list[EvaluationTask]:
        """Those that are not names."""
        return [task for task in self.tasks if not isinstance(task, str)]

    def read(self, rules: LabelRules, say: Callable[[str], None]) -> ChosenTasks:
        """Read the tasks."""
        split = cast("Split | None", self.split)
        if self.own_tasks:
            return ChosenTasks(self.suite or "own tasks", self.own_tasks, {})
        if self.data is None:
            names = [str(name) for name in self.tasks]
            return ChosenTasks("sts", *read_sts(Path(self.data_dir or ""), names, split or "test"))
        if self.suite == DUPLICATES:
            task = read_duplicates(self.data, self.reports, split, rules, say, self.columns)
            return ChosenTasks(DUPLICATES, [task], {})
        if self.suite == "gis":
            return ChosenTasks("gis", [read_binary_task(self.data, split, rules, say, self.columns)], {})
        pairs = read_pair_task(self.data, split, rules, say, self.columns)
        if self.suite == "sts" or not np.isin(pairs.labels, (0, 1)).all():
            return ChosenTasks("sts", [pairs], {})
        say("labels are 0 and 1: judged by AUC, F1 and accuracy, as --suite gis does; sts: by correlations")
        silent = read_binary_task(self.data, split, rules, lambda _: None, self.columns)
        return ChosenTasks("gis", [silent], {})
