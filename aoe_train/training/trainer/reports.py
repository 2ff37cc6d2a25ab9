"""Where a run also reports to: `log.report_to`, in the words of transformers' callbacks.

| name | its files | a resumed run has |
|---|---|---|
| tensorboard | `OUT.runs/NAME-TIME`, or TENSORBOARD_LOGGING_DIR | the same folder, from its checkpoint on |
| wandb | `OUT.runs/wandb`, or WANDB_DIR; offline with WANDB_MODE=offline | the same id |
| trackio | trackio's own folder, or TRACKIO_DIR | the same name |

The others that transformers knows are set up as transformers does it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers.integrations.integration_utils import (
    TensorBoardCallback,
    TrackioCallback,
    WandbCallback,
    get_reporting_integration_callbacks,
)

from aoe_train.data.conflicts import Say
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainingArguments

PROJECT = "aoe"  # where runs of several models stand together


def report_callbacks(names: Sequence[str] | str | None) -> list[TrainerCallback]:
    """The callbacks of what a run reports to."""
    kinds = get_reporting_integration_callbacks(names)  # type: ignore[no-untyped-call]
    return [kind() for kind in kinds]


def check_reports(names: Sequence[str]) -> None:
    """Refuse what can't be reported to, before anything is loaded."""
    for name in names:
        try:
            callbacks = get_reporting_integration_callbacks([name])  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise ConfigError(f"log.report_to {name!r}: {one_line(str(error), 300)}") from error
        for callback in callbacks:
            try:
                callback()
            except (RuntimeError, ImportError) as error:
                raise ConfigError(
                    f"log.report_to {name!r} needs a package that is not installed: pip install {name}"
                ) from error


def new_name(work: Path) -> str:
    """What a run that begins now is called where it reports to."""
    return f"{work.stem}-{time.strftime('%Y%m%d-%H%M%S')}"


class Reports:
    """What one run reports to, on the first process."""

    def __init__(self, callbacks: Sequence[TrainerCallback], args: TrainingArguments, work: Path) -> None:
        self._callbacks, self._args = callbacks, args
        self._home = work.with_suffix(".runs")

    def begin(self, name: str, *, step: int, say: Say) -> None:
        """Open them, and say where each is."""
        openers = {
            TensorBoardCallback: self._tensorboard,
            WandbCallback: self._wandb,
            TrackioCallback: self._trackio,
        }
        for callback in self._callbacks:
            if (opener := openers.get(type(callback))) is not None:
                say(opener(callback, name, step))

    def _tensorboard(self, callback: Any, name: str, step: int) -> str:
        folder = callback.logging_dir or str(self._home / name)
        # What was written after the checkpoint comes again.
        callback.tb_writer = callback._SummaryWriter(log_dir=folder, purge_step=step + 1 if step else None)
        return f"tensorboard: reports to {folder}; see it by tensorboard --logdir {self._home}"

    def _wandb(self, callback: Any, name: str, _: int) -> str:
        from wandb.errors import Error

        if callback._wandb.run is None:  # else a person's own, in the same process
            home = Path(os.environ.get("WANDB_DIR") or self._home)
            home.mkdir(parents=True, exist_ok=True)
            project = os.environ.get("WANDB_PROJECT") or self._args.project
            known = {"id": name, "name": self._args.run_name or name, "project": project, "dir": str(home)}
            try:
                callback._wandb.init(**known, resume="allow")
            except Error as error:
                found = one_line(str(error), 200).rstrip(".")
                raise ConfigError(
                    f"log.report_to 'wandb': {found}; run `wandb login`, or set WANDB_MODE=offline"
                ) from error
        run = callback._wandb.run
        folder = Path(run.dir).parent
        return f"wandb: reports to {run.url or f'{folder}, offline; send it by wandb sync {folder}'}"

    def _trackio(self, _: Any, name: str, __: int) -> str:
        from trackio.utils import TRACKIO_DIR

        self._args.run_name = self._args.run_name or name  # by which the callback finds it again
        project = self._args.project
        return f"trackio: reports to {TRACKIO_DIR}; see it by trackio show --project {project}"
