"""What watches a run: the clock, and the person at the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

from aoe_train._trainer.gather import is_distributed
from pairkit.terminal import progress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from aoe_train._settings import LogSettings


class PaceCallback(TrainerCallback):
    """Asks for a log entry at the end, and for a checkpoint every so many steps or minutes.

    The clock is looked at with each log entry, as the processes have to agree on it.
    """

    def __init__(self, settings: LogSettings) -> None:
        self._steps = settings.checkpoint_steps
        self._seconds = 60 * settings.checkpoint_minutes
        self._last = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Decide; all ranks alike."""
        control.should_log |= state.global_step >= state.max_steps
        if self._steps is not None:
            control.should_save = state.global_step % self._steps == 0
        elif control.should_log:
            control.should_save = self._due(args.device)
        if control.should_save:
            self._last = time.monotonic()

    def _due(self, device: torch.device) -> bool:
        due = time.monotonic() - self._last >= self._seconds
        if is_distributed():  # one clock decides
            flag = torch.tensor(due, device=device, dtype=torch.int32)
            torch.distributed.broadcast(flag, src=0)
            due = bool(flag)
        return due


class ProgressCallback(TrainerCallback):
    """A bar with ETA, the loss and the dev score on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._notes: dict[str, str] = {}

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Show the bar, at the step that a resumed run goes on from."""
        if state.is_world_process_zero:
            self._bar = progress(quiet=self._quiet)
            self._bar.start()
            self._task = self._bar.add_task(
                "training", total=state.max_steps, completed=state.global_step, note=""
            )

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Move on."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, **seen: Any) -> None:  # noqa: ARG002
        """Show the newest figures."""
        self._notes |= {
            name: f"{label} {seen['logs'][name]:.4f}"
            for name, label in (("loss", "loss"), ("eval_dev", "dev"))
            if name in seen["logs"]
        }
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, note=" · ".join(self._notes.values()))

    def close(self) -> None:
        """Leave the terminal as it was, however the run ended."""
        if self._bar is not None:
            self._bar.stop()
