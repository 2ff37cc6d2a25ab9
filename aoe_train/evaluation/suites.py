"""Test sets by name: a suite, pairs of one's own, or tasks of one's own, as `evaluate` is asked for them.

STS as the papers measure it: STS 2012-2016, STS-B and SICK-R.

```
DATA_DIR/sts/STS12.tsv … STS16.tsv       score, sentence1, sentence2; `subset` where a year has parts
        /sts/STS12.senteval-tok.tsv …    the same lower-cased and tokenised, as SentEval and SimCSE score it
        /stsb/stsb-{dev,test}.tsv
        /sick/sick-{trial,test}.tsv
```

One header line, tabs, no quoting; further columns are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from aoe_train.evaluation.duplicate_tables import read_duplicates
from aoe_train.evaluation.pairs import PairTask, pair_task, read_binary_task, read_pair_task
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.reader import read_pairs

if TYPE_CHECKING:
    from aoe_train.evaluation.tasks import EvaluationTask, Split
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import LabelRules

DUPLICATES = "duplicates"
_SUITES = ("sts", "gis", DUPLICATES)
_YEARS = {  # 2013 without SMT, which LDC keeps
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
}
_FILES: dict[str, dict[Split, tuple[str, int]]] = {
    **{name: {"test": (f"sts/{name}.tsv", rows)} for name, rows in _YEARS.items()},
    "STS-B": {"test": ("stsb/stsb-test.tsv", 1379), "dev": ("stsb/stsb-dev.tsv", 1500)},
    "SICK-R": {"test": ("sick/sick-test.tsv", 4927), "dev": ("sick/sick-trial.tsv", 500)},
}
STS = tuple(_FILES)
"""What is read if nothing is chosen, in the order of the papers' tables."""

_FILES |= {
    name: {"test": (f"sts/{name}.tsv", rows)}
    for name, rows in ((f"{year}.senteval-tok", rows) for year, rows in _YEARS.items())
}


def read_sts(
    data_dir: Path, names: Sequence[str] = (), split: Split = "test"
) -> tuple[list[PairTask], dict[str, str]]:
    """The tasks that a data folder has, all subsets of a year together; and why others are left out."""
    for name in names:
        if name not in _FILES:
            raise ConfigError(f"no task {name!r}; there are {', '.join(_FILES)}")
    found: list[PairTask] = []
    missing: dict[str, str] = {}
    for name in [name for name in _FILES if name in (names or STS)]:
        if split not in _FILES[name]:
            missing[name] = f"has no {split} split"
            continue
        file, rows = _FILES[name][split]
        path = data_dir / file
        if not path.is_file():
            missing[name] = f"no file {path}"
            continue
        (frame,) = read_pairs(path).splits.values()
        if len(frame) != rows:
            raise DataError(
                f"{len(frame):,} rows, but {rows:,} are published: not the whole file, or another one;"
                " fetch it again (pairs are scored as they are with --data)",
                path=path,
            )
        found.append(pair_task(name, frame))
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise DataError(f"none of the tasks is here ({reasons})", path=data_dir)
    return found, missing


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
