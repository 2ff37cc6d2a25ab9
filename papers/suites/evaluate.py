"""Evaluate a model on a suite of the papers and compare its scores with the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import aoe_train
from aoe_train import Evaluation, tasks
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.making.dataset_card import table
from papers.suites import nli, retrieval, transfer
from papers.suites.published import MEAN, PUBLISHED, PublishedTable


class Suite(NamedTuple):
    """Names of tasks, and functions that list and read the files of a task."""

    tasks: tuple[str, ...]
    files: Callable[[str, Path, str], tuple[Path, ...]]
    read: Callable[[str, Sequence[Path]], tasks.EvaluationTask]


SUITES: dict[str, Suite] = {
    "transfer": Suite(transfer.TASKS, transfer.files, transfer.read),
    "nli": Suite(nli.TASKS, nli.files, nli.read),
    "retrieval": Suite(retrieval.TASKS, retrieval.files, retrieval.read),
}


def find_tasks(
    suite: str, data_dir: Path, names: Sequence[str] = (), split: str = "test"
) -> tuple[list[tasks.EvaluationTask], dict[str, str]]:
    """The tasks in a data folder, and the reasons why others are skipped."""
    if suite not in SUITES:
        raise ConfigError(f"--suite {suite}: expected sts, {', '.join(SUITES)}")
    if split not in ("test", "validation"):
        raise ConfigError(f"--split {split}: expected test or validation")
    known = SUITES[suite]
    if unknown := [name for name in names if name not in known.tasks]:
        raise ConfigError(f"no task {unknown[0]!r}; expected {', '.join(known.tasks)}")
    found: list[tasks.EvaluationTask] = []
    missing: dict[str, str] = {}
    for name in [name for name in known.tasks if name in (names or known.tasks)]:
        files = known.files(name, data_dir, split)
        absent = [path for path in files if not path.is_file()]
        if absent or not files:
            missing[name] = f"no file {absent[0]}" if absent else f"has no {split} split"
        else:
            found.append(known.read(name, files))
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise DataError(f"no data of any task ({reasons})", path=data_dir)
    return found, missing


def evaluate(
    model: Any,
    suite: str,
    data_dir: str | Path,
    *,
    tasks: Sequence[str] = (),
    split: str = "test",
    **options: Any,
) -> tuple[Evaluation, Mapping[str, str]]:
    """Evaluate a model on sts or a suite of `SUITES`, with further options of `aoe_train.evaluate`.

    Returns:
        The evaluation, and the reasons for skipped tasks.
    """
    if suite == "sts":
        found = aoe_train.evaluate(model, data_dir=data_dir, tasks=tasks, split=split, **options)
        return found, found.missing
    own, missing = find_tasks(suite, Path(data_dir), tasks, split)
    return aoe_train.evaluate(model, suite=suite, tasks=own, **options), missing


def compare_with_published(suite: str, evaluation: Evaluation) -> str:
    """The model's scores as Markdown, and as a row in each table of the papers."""
    ((model, by_task),) = evaluation.scores.items()
    scores = {task: score.result.scores for task, score in by_task.items()}
    parts = [evaluation.to_markdown().rstrip()]
    for published in PUBLISHED.values():
        if published.suite == suite:
            parts += [f"## Beside {published.source}", _comparison(published, scores, model)]
    return "\n\n".join(parts) + "\n"


def _comparison(
    published: PublishedTable, scores: Mapping[str, Mapping[str, float]], model: str
) -> str:
    """A table; the model has a mean only if it has all tasks."""
    columns = published.columns
    own = {task: 100 * scores[task][published.metric] for task in columns if task in scores}
    if len(own) == len(columns) - 1:
        own[MEAN] = fmean(own.values())
    by_row = {f"**{model}**": own, **{row: published.scores(row) for row in published.rows}}
    cells = [
        [row, *(_figure(found.get(column)) for column in columns)] for row, found in by_row.items()
    ]
    return table((published.metric, *columns), cells)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
