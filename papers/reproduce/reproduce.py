"""Run a recipe and write its table. Kill it and run it again: finished runs are not repeated.

Processes share the runs of a folder: each run has a lock, which ends with the process that does it. Local
processes have a GPU each, if there are any.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pairkit.base.errors import ConfigError, DataError, PairkitError
from pairkit.base.system.files import remove, write_json, write_text
from pairkit.base.system.folders import lock_folder, try_lock_folder
from papers.reproduce.plan import Folders, Run, plan
from papers.reproduce.runner import CLAIMS, Record, Runner
from papers.reproduce.scoring import Scoring
from papers.reproduce.table import markdown, summary
from papers.reproduce.training_data import missing_files, prepare

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe, Scale

TABLE = "table.md"
FIGURES = "figures.json"
_OUTPUTS = ("runs", CLAIMS, "models", "data", TABLE, FIGURES)
_PAUSE_S = 1.0  # between two looks at the runs of other processes
_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Options:
    """Which runs of a recipe to do, and the folders."""

    scale: Scale
    data_dir: Path | None
    out: Path
    seeds: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    keep_models: bool = False
    fresh: bool = False
    workers: int = 1

    @property
    def folders(self) -> Folders:
        """The folders that a recipe names."""
        return Folders(self.data_dir, self.out / "data")


def output_folder(
    recipe: str, scale: Scale, assignments: Sequence[str], out: Path
) -> Path:
    """The folder of a recipe at a scale; other settings have a folder of their own."""
    name = f"{Path(recipe).stem}-{scale}"
    if assignments:
        name += f"-{sha256(repr(list(assignments)).encode()).hexdigest()[:8]}"
    return out / name


def plan_runs(recipe: Recipe, options: Options) -> tuple[list[Run], dict[str, str]]:
    """The runs, and the reasons why rows are skipped, such as an absent backbone; Hub ids are not checked."""
    runs, skipped = plan(
        recipe,
        options.scale,
        options.folders,
        seeds=options.seeds,
        only=options.only,
        assignments=options.assignments,
    )
    for run in runs:
        backbone = Path(run.backbone)
        if backbone.is_absolute() and not backbone.exists():
            skipped[run.row] = f"no backbone at {backbone}"
    return [run for run in runs if run.row not in skipped], skipped


def reproduce(
    recipe: Recipe, options: Options, *, say: Callable[[str], None]
) -> dict[str, Any]:
    """Do the runs that have no record yet, write the table of all records, and return figures.json.

    Several processes can work in one folder: each run is done by one of them. If a run fails, the remaining
    ones continue; the first error is raised at the end.
    """
    shared = _open(recipe, options, say)
    if options.workers > 1:
        _work_in_processes(recipe, options, say)
    else:
        shared.work()
    return shared.finish()


def _open(recipe: Recipe, options: Options, say: Callable[[str], None]) -> SharedRuns:
    """Check the recipe and make its data; other processes wait until it is made."""
    plan_runs(recipe, options)
    at = recipe.at(options.scale)
    folders = options.folders
    missing = missing_files(at.source, folders)
    if missing:
        raise DataError(
            "no such file; --data-dir must be the folder that has it", path=missing[0]
        )
    # Making data may take hours or cost money, so all that can be checked is checked before.
    if at.source.prepare:
        ready = [
            column for column in at.evaluate if "{work}" not in (column.data or "")
        ]
        Scoring(ready, folders)
    with try_lock_folder(options.out, wait=True):
        if options.fresh:
            _discard(options.out)
        prepare(at.source, folders, say)
        shared = SharedRuns(recipe, options, say)
        shared.forget_failures()
    for row, reason in shared.skipped.items():
        say(f"skipped {row}: {reason}")
    return shared


def _discard(out: Path) -> None:
    """Remove the results, unless another process does a run."""
    in_use = "another process does this run; wait for it or choose another --out"
    for claim in sorted((out / CLAIMS).glob("*")):
        with lock_folder(claim, in_use):
            pass
    for name in _OUTPUTS:
        remove(out / name)


class SharedRuns:
    """The runs of a command, which other processes may do too, and the table of all runs in the folder."""

    def __init__(
        self, recipe: Recipe, options: Options, say: Callable[[str], None]
    ) -> None:
        self._recipe = recipe
        self._options = options
        self._say = say
        self._runs, self.skipped = plan_runs(recipe, options)
        if not self._runs:
            raise ConfigError(
                "every row is skipped at this scale; choose another --scale"
            )
        at = recipe.at(options.scale)
        scoring = Scoring(at.evaluate, options.folders)
        self._runner = Runner(
            options.out,
            at,
            options.folders,
            scoring,
            keep_models=options.keep_models,
        )
        seeds = tuple(dict.fromkeys((*at.seeds, *options.seeds)))
        self._all_runs, _ = plan_runs(recipe, replace(options, seeds=seeds, only=()))

    def forget_failures(self) -> None:
        """Let failed runs be repeated."""
        for run in self._runs:
            remove(self._failure(run))

    def work(self) -> None:
        """Do the runs that no other process does. Returns when all are done, also those of others."""
        while True:
            for run in self._left():
                # The lock of a killed process is free.
                with try_lock_folder(self._runner.claim(run)) as is_ours:
                    if is_ours and run in self._left():
                        self._do(run)
            if not self._left():
                break
            time.sleep(_PAUSE_S)
        for run in self._runs:
            # A kill may have left the model of a finished run.
            if not self._failure(run).exists():
                self._runner.remove_model(run)

    def finish(self) -> dict[str, Any]:
        """Write the table; an error if a run failed, or was not done because its process was killed."""
        result = self._write()
        total = len(self._runs)
        failed = [run for run in self._runs if self._failure(run).exists()]
        if failed:
            first = failed[0]
            reason = self._failure(first).read_text(encoding="utf-8")
            raise PairkitError(
                f"{len(failed)} of {total} runs failed, first {first.row}: {reason}"
            )
        left = self._left()
        if left:
            raise PairkitError(
                f"{len(left)} of {total} runs were not finished; run the same command again"
            )
        return result

    def _failure(self, run: Run) -> Path:
        """The file with the error of a failed run."""
        return self._runner.claim(run) / "failed"

    def _left(self) -> list[Run]:
        """The runs that are neither recorded nor failed."""
        left = [run for run in self._runs if not self._failure(run).exists()]
        return [run for run in left if self._runner.record(run) is None]

    def _do(self, run: Run) -> None:
        name = f"{run.row}, seed {run.seed}"
        self._say(f"{self._runs.index(run) + 1} of {len(self._runs)}: {name}")
        try:
            self._say(_summary_line(self._runner.do(run)))
        except PairkitError as error:
            self._say(f"{name}: failed: {error}")
            write_text(self._failure(run), str(error))
        self._write()

    def _write(self) -> dict[str, Any]:
        """Write the table of all runs that have a record; only one process reads and writes at a time."""
        at = self._runner.at
        out = self._options.out
        with try_lock_folder(out, wait=True):
            records = [*filter(None, map(self._runner.record, self._all_runs))]
            runs = [
                {"row": record.row, "seed": record.seed, "key": record.key}
                for record in records
            ]
            result = {
                "recipe": self._recipe.title,
                "paper": self._recipe.paper,
                "about": at.about,
                "scale": self._options.scale,
                "backbone": at.backbone,
                "changed": list(self._options.assignments),
                "left_out": self.skipped,
                "rows": summary(self._recipe, records, self._runner.scoring.titles),
                "runs": runs,
                "wall_s": round(sum(record.wall_s for record in records), 1),
            }
            write_json(out / FIGURES, result)
            write_text(out / TABLE, markdown(self._recipe, result))
        return result


def _summary_line(record: Record) -> str:
    last_scores = list(record.scores.items())[-3:]
    figures = [f"{name} {100 * value:.2f}" for name, value in last_scores]
    if record.dev is not None:
        figures.append(f"dev {100 * record.dev:.2f}")
    return f"{record.row}, seed {record.seed}: {', '.join(figures)} ({record.wall_s:.0f} s)"


def _work_in_processes(
    recipe: Recipe, options: Options, say: Callable[[str], None]
) -> None:
    """Start the workers and wait for them. If one is killed, the others do its runs."""
    gpus = _gpus()
    context = get_context("spawn")  # a forked process can't use CUDA
    workers = [
        context.Process(
            target=_work, args=(recipe, options, say, gpus[number % len(gpus)])
        )
        for number in range(options.workers)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
                worker.join()


def _gpus() -> list[str | None]:
    """The GPUs as in CUDA_VISIBLE_DEVICES; None without any."""
    listed = os.environ.get(_DEVICES)
    names = listed.split(",") if listed else map(str, range(torch.cuda.device_count()))
    return [*names] or [None]


def _work(
    recipe: Recipe, options: Options, say: Callable[[str], None], gpu: str | None
) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if gpu is not None:
        os.environ[_DEVICES] = gpu
    try:
        SharedRuns(recipe, options, say).work()
    except KeyboardInterrupt:
        sys.exit(130)
    except PairkitError as error:
        sys.exit(str(error))
