"""What watches a run: the clock, and the person at the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

from aoe_train._trainer.gather import is_distributed
from pairkit.progress import Listener, Progress

if TYPE_CHECKING:
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
    """Tells steps, the loss and the dev score.

    Args:
        show: Told after each step, on the first process.
    """

    def __init__(self, show: Listener) -> None:
        self._show = show
        self._notes: dict[str, str] = {}

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Begin at the step that a resumed run goes on from."""
        self._tell(state)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Move on; where the log comes next, with the loss that it tells."""
        if not control.should_log:
            self._tell(state)

    def on_log(self, args: Any, state: Any, control: Any, **seen: Any) -> None:  # noqa: ARG002
        """Take the newest figures."""
        names = {"loss": "loss", "eval_dev": "dev"}
        self._note(**{names[name]: value for name, value in seen["logs"].items() if name in names})
        if "loss" in seen["logs"]:
            self._tell(state)

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Say that it is over."""
        self._tell(state, ended=True)

    def _note(self, **figures: float) -> None:
        self._notes |= {name: f"{name} {value:.4f}" for name, value in figures.items()}

    def _tell(self, state: TrainerState, *, ended: bool = False) -> None:
        if state.is_world_process_zero:
            note = ", ".join(self._notes.values())
            self._show(Progress("train", state.global_step, state.max_steps, note, ended=ended))
