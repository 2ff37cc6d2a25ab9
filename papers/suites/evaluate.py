"""Evaluate a model on a suite of the papers and compare its scores with the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import aoe_train
from aoe_train import Evaluation, tasks
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.making.dataset_folder import table
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
    for name in names:
        if name not in known.tasks:
            raise ConfigError(f"no task {name!r}; expected {', '.join(known.tasks)}")
    available: list[tasks.EvaluationTask] = []
    missing: dict[str, str] = {}
    for name in known.tasks:
        if names and name not in names:
            continue
        files = known.files(name, data_dir, split)
        absent = [path for path in files if not path.is_file()]
        if absent:
            missing[name] = f"no file {absent[0]}"
        elif not files:
            missing[name] = f"has no {split} split"
        else:
            available.append(known.read(name, files))
    if not available:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise DataError(f"no data of any task ({reasons})", path=data_dir)
    return available, missing


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
        evaluation = aoe_train.evaluate(
            model, data_dir=data_dir, tasks=tasks, split=split, **options
        )
        return evaluation, evaluation.missing
    available, missing = find_tasks(suite, Path(data_dir), tasks, split)
    return aoe_train.evaluate(model, suite=suite, tasks=available, **options), missing


def compare_with_published(suite: str, evaluation: Evaluation) -> str:
    """The model's scores as Markdown, and as a row in each table of the papers."""
    ((model, by_task),) = evaluation.scores.items()
    scores = {task: score.result.scores for task, score in by_task.items()}
    parts = [evaluation.to_markdown().rstrip()]
    for published in PUBLISHED.values():
        if published.suite == suite:
            parts += [
                f"## Beside {published.source}",
                _comparison(published, scores, model),
            ]
    return "\n\n".join(parts) + "\n"


def _comparison(
    published: PublishedTable, scores: Mapping[str, Mapping[str, float]], model: str
) -> str:
    """A table; the model has a mean only if it has all tasks."""
    columns = published.columns
    own = {
        task: 100 * scores[task][published.metric] for task in columns if task in scores
    }
    if len(own) == len(columns) - 1:
        own[MEAN] = fmean(own.values())
    rows = {f"**{model}**": own}
    for row in published.rows:
        rows[row] = published.scores(row)
    cells = []
    for name, by_column in rows.items():
        cells.append([name, *(_figure(by_column.get(column)) for column in columns)])
    return table((published.metric, *columns), cells)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
