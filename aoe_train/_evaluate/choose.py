"""From what a person asks for to the tasks of each suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aoe_train._conflicts import Say, silent
from aoe_train._evaluate.duplicates.tables import read_duplicates
from aoe_train._evaluate.pairs import read_pair_task
from aoe_train._evaluate.suites import SUITES
from aoe_train._evaluate.suites.gis import read_gis_task
from aoe_train._evaluate.tasks import NoTaskHere, Split, Task, find_tasks
from pairkit.errors import ConfigError, DataError
from pairkit.in_memory import Source
from pairkit.labels import AS_FOUND, LabelRules

ALL, DUPLICATES = "all", "duplicates"
_Read = Callable[[Source, Split | None, LabelRules, Say, Mapping[str, str] | None], Task]
_READERS: Mapping[str, _Read] = {"sts": read_pair_task, "gis": read_gis_task}
"""The suites that judge any dataset of pairs."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be judged.

    Attributes:
        tasks: By suite.
        missing: What was left out, with the reason.
    """

    tasks: Mapping[str, Sequence[Task]]
    missing: Mapping[str, str] = field(default_factory=dict)


def choose_pairs(
    suite: str | None,
    data: Source,
    split: Split | None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
    reports: Source | None = None,
) -> Chosen:
    """A dataset of one's own, judged as a suite judges pairs.

    Args:
        suite: Its name; None for what suits the labels: gis where they are 0 and 1, else sts.
        data: The pairs.
        split: Which of them; see `aoe_train._evaluate.pairs.read_one_split`.
        rules: What labels count as.
        say: Told what was made of the labels.
        columns: Roles to names of columns.
        reports: All reports of the tracker, for the suite duplicates.

    Raises:
        ConfigError: A suite that judges no pairs, or no such dataset.
        DataError: Not readable as pairs.
        RemoteError: The Hub could not be asked.
    """
    if suite == DUPLICATES:
        return Chosen({suite: [read_duplicates(data, reports, split, rules, say, columns)]})
    if reports is not None:
        raise ConfigError(f"--reports is for --suite {DUPLICATES}; leave it out")
    if suite is None:
        return _by_labels(data, split, rules, say, columns)
    if suite not in _READERS:
        known = ", ".join([*_READERS, DUPLICATES])
        raise ConfigError(f"--data: pairs of your own are judged as one of the suites {known}, not {suite}")
    return Chosen({suite: [_READERS[suite](data, split, rules, say, columns)]})


def _by_labels(
    data: Source, split: Split | None, rules: LabelRules, say: Say, columns: Mapping[str, str] | None
) -> Chosen:
    task = read_pair_task(data, split, rules, say, columns)
    if not np.isin(task.labels, (0, 1)).all():
        return Chosen({"sts": [task]})
    say("labels are 0 and 1: judged by AUC, F1 and accuracy, as --suite gis does; sts: by correlations alone")
    return Chosen({"gis": [read_gis_task(data, split, rules, silent, columns)]})


def choose_tasks(suite: str, data_dir: Path, names: Sequence[str], split: Split) -> Chosen:
    """The tasks of a suite, or of all suites, that a data folder has.

    Args:
        suite: Its name, or `all`.
        data_dir: Where the suites' files are.
        names: Only these tasks.
        split: Which part of them.

    Raises:
        ConfigError: No such suite or task, or one that lacks a library.
        DataError: A damaged file, or nothing there.
    """
    if suite == DUPLICATES:
        raise ConfigError(f"--suite {suite}: give --data, its pairs, and --reports instead of --data-dir")
    if suite != ALL:
        if suite not in SUITES:
            raise ConfigError(f"--suite {suite}: expected {', '.join(SUITES)}, mteb or {ALL}")
        tasks, missing = find_tasks(SUITES[suite](), data_dir, names=names, split=split)
        return Chosen({suite: tasks}, missing)
    if names:
        raise ConfigError(f"--task chooses among the tasks of one suite; give that instead of --suite {ALL}")
    found: dict[str, Sequence[Task]] = {}
    left_out: dict[str, str] = {}
    for name, make in SUITES.items():
        try:
            found[name], missing = find_tasks(make(), data_dir, split=split)
        except NoTaskHere as error:
            missing = {name: str(error)}
        left_out |= missing
    if not found:
        raise DataError(f"holds no task of any suite ({', '.join(SUITES)})", path=data_dir)
    return Chosen(found, left_out)
