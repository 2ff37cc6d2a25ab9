"""The test sets of `evaluate`: a suite, the user's own pairs, or the user's own tasks.

STS has STS 2012-2016, STS-B and SICK-R, as in papers, in the files of `docs/formats/data-dir.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from aoe_train.evaluation.duplicate_tables import read_duplicates
from aoe_train.evaluation.pair_task import (
    PairSource,
    PairTask,
    pair_task,
    search_task,
)
from aoe_train.evaluation.search_results import (
    GroupTask,
    RetrievalTask,
    corpus_task,
    group_task,
)
from aoe_train.evaluation.tasks import EvaluationTask
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.reading.beir import is_beir
from pairkit.dataset.reading.parts import valid_path
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.records import is_search

if TYPE_CHECKING:
    from aoe_train.evaluation.tasks import Split
    from aoe_train.objectives.training_rows import Examples
    from pairkit.dataset.reading.in_memory import Source

TRACKER = "tracker"
_SUITES = ("sts", "binary", TRACKER)
_STS_ROWS = {  # 2013 without SMT, which is only available from LDC
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
}
_FILES: dict[str, dict[Split, tuple[str, int]]] = {
    **{name: {"test": (f"sts/{name}.tsv", rows)} for name, rows in _STS_ROWS.items()},
    "STS-B": {
        "test": ("stsb/stsb-test.tsv", 1379),
        "validation": ("stsb/stsb-dev.tsv", 1500),
    },
    "SICK-R": {
        "test": ("sick/sick-test.tsv", 4927),
        "validation": ("sick/sick-trial.tsv", 500),
    },
}
"""The file and the published number of rows of each task and split."""
STS = tuple(_FILES)
"""The default tasks, in the order of the papers' tables."""

for _name, _rows in _STS_ROWS.items():
    _tokenised = f"{_name}.senteval-tok"
    _FILES[_tokenised] = {"test": (f"sts/{_tokenised}.tsv", _rows)}


def read_sts(
    data_dir: Path,
    names: Sequence[str],
    split: Split,
) -> tuple[list[PairTask], dict[str, str]]:
    """The tasks in a data folder, each with all its subsets, and the reasons why others are missing."""
    for name in names:
        if name not in _FILES:
            raise ConfigError(f"no task {name!r}; choose from {', '.join(_FILES)}")
    tasks = []
    missing = {}
    chosen = [name for name in _FILES if name in (names or STS)]
    for name in chosen:
        if split not in _FILES[name]:
            missing[name] = f"has no {split} split"
            continue
        file, rows = _FILES[name][split]
        path = data_dir / file
        if not path.is_file():
            missing[name] = f"no file {path}"
            continue
        (frame,) = read_pairs(path).splits.values()
        if frame.height != rows:
            raise DataError(
                f"has {frame.height:,} rows instead of the published {rows:,}; download it again, or score its"
                " pairs with --data",
                path=path,
            )
        tasks.append(pair_task(name, frame))
    if not tasks:
        reasons = [f"{name}: {reason}" for name, reason in missing.items()]
        raise DataError(
            f"contains none of the tasks ({'; '.join(reasons)})", path=data_dir
        )
    return tasks, missing


class ChosenTasks(NamedTuple):
    """The tasks on which models are scored."""

    suite: str
    tasks: Sequence[EvaluationTask]
    missing: Mapping[str, str]


class TaskRequest(NamedTuple):
    """Arguments of `evaluate` that choose its tasks."""

    suite: str | None
    data_dir: str | Path | None
    tasks: Sequence[str | EvaluationTask]
    data: Source | None
    reports: Source | None
    split: str | None
    columns: Mapping[str, str] | None

    def check(self, rules: Mapping[str, object]) -> None:
        """Refuse contradictory options before anything is read; `rules` are the values of flags on labels."""
        options = {"--columns": self.columns, "--reports": self.reports, **rules}
        flags = [flag for flag, value in options.items() if value is not None]
        if self.data is None and flags:
            raise ConfigError(f"{flags[0]} needs --data, your own pairs; leave it out")
        if self.data is not None and (self.data_dir is not None or self.tasks):
            raise ConfigError(
                "--data replaces the test sets; leave --data-dir and --tasks out"
            )
        if self.reports is not None and self.suite != TRACKER:
            raise ConfigError(f"--reports needs --suite={TRACKER}; leave it out")
        if self.split not in (None, "test", "validation"):
            raise ConfigError(f"--split {self.split}: expected test or validation")
        if self.own_tasks:
            self._check_own_tasks()
        elif self.suite is not None and self.suite not in _SUITES:
            raise ConfigError(f"--suite {self.suite}: expected {', '.join(_SUITES)}")
        elif self.data is None and self.suite in ("binary", TRACKER):
            raise ConfigError(
                f"--suite {self.suite}: give its pairs as --data instead of --data-dir"
            )
        elif self.data is None and self.data_dir is None:
            raise ConfigError(
                "give your own pairs as --data, or the folder with the test sets as --data-dir"
            )

    @property
    def own_tasks(self) -> list[EvaluationTask]:
        """The user's own tasks."""
        return [task for task in self.tasks if not isinstance(task, str)]

    def _check_own_tasks(self) -> None:
        has_names = len(self.own_tasks) < len(self.tasks)
        if self.data_dir is not None or self.split is not None or has_names:
            raise ConfigError(
                "your own tasks can't be combined with data_dir, split or names of tasks"
            )
        names = set[str]()
        for task in self.own_tasks:
            if not isinstance(task, EvaluationTask):
                raise ConfigError(
                    f"tasks: {task!r:.60} isn't a task; expected an object with name, texts and measure"
                )
            if task.name in names:
                raise ConfigError(
                    f"tasks: several are named {task.name}; give each its own name"
                )
            names.add(task.name)

    def read(self, rules: LabelRules, say: Callable[[str], None]) -> ChosenTasks:
        """Read the data of the tasks."""
        split = cast("Split | None", self.split)
        if self.own_tasks:
            return ChosenTasks(self.suite or "own tasks", self.own_tasks, {})
        if self.data is None:
            names = [str(name) for name in self.tasks]
            folder = Path(self.data_dir or "")
            tasks, missing = read_sts(folder, names, split or "test")
            return ChosenTasks("sts", tasks, missing)
        if isinstance(self.data, str | Path):
            valid_path(self.data)
        noting_once = cache(say)
        source = PairSource(self.data, split, rules, noting_once, self.columns)
        suite, task = self._read_data(source)
        return ChosenTasks(suite, [task], {})

    def _read_data(self, source: PairSource) -> tuple[str, EvaluationTask]:
        """The suite and task of the user's own data, by its columns unless a suite is given."""
        if self.suite == TRACKER:
            if self.reports is not None:
                _refuse_label_rules(source)
            return TRACKER, read_duplicates(source, self.reports)
        if self.suite == "binary":
            return "binary", source.binary_task()
        if self.suite is None and is_beir(source.source):
            if self.columns:
                raise ConfigError(
                    f"--columns: BEIR's layout of {source.name} sets them; leave it out"
                )
            _refuse_label_rules(source)
            folder = Path(str(source.source))
            return "retrieval", corpus_task(folder, source.split, source.say)
        if "group" in (self.columns or {}):
            return "groups", self._groups(source)
        if self.suite is None:
            positives = source.positives()
            if positives:
                _refuse_label_rules(source)
                return "retrieval", RetrievalTask(source.name, positives)
        frame = source.frame()
        if self.suite is None and is_search(frame):
            return "search", search_task(source.name, frame, source.say)
        pairs = pair_task(source.name, frame)
        if self.suite == "sts" or not np.isin(pairs.labels, (0, 1)).all():
            return "sts", pairs
        source.say(
            "labels are 0 and 1: using AUC, F1 and accuracy (--suite=binary); --suite=sts uses correlations"
        )
        return "binary", source.binary_task()

    def _groups(self, source: PairSource) -> GroupTask:
        """The texts of a table, and the group of each."""
        columns = dict(self.columns or {})
        roles = {"text": columns.pop("text", "text"), "group": columns.pop("group")}
        if columns or self.suite is not None:
            raise ConfigError(
                "--columns with group takes only text and group, and no --suite"
            )
        _refuse_label_rules(source)
        examples = source._replace(columns=roles).positives()
        return group_task(source.name, cast("Examples", examples), source.say)


def _refuse_label_rules(source: PairSource) -> None:
    """Refuse options on labels for data that has none."""
    rules = {
        "--labels": source.rules.values,
        "--label-range": source.rules.scale,
    }
    for flag, rule in rules.items():
        if rule is not None:
            raise ConfigError(
                f"{flag} has no effect, because {source.name} has no labels; leave it out"
            )
