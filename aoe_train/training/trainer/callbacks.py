"""What watches a run: the clock, the scheduler that may stop it, and the person at the terminal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

from aoe_train.training.trainer.checkpoints import wait_for_all
from aoe_train.training.trainer.gather import is_distributed, is_main
from pairkit.app.progress import Listener, Progress

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from aoe_train.settings.training import LogSettings


_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)  # schedulers send the one, or what a job asks them for


class Stopwatch:
    """Adds up the time inside `running`, without the time inside `paused`."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._stopped = seconds
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Up to now."""
        return self._stopped + (0.0 if self._since is None else time.perf_counter() - self._since)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside."""
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._stopped, self._since = self.seconds, None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out the time inside."""
        running = self._since is not None
        self._stopped, self._since = self.seconds, None
        try:
            yield
        finally:
            self._since = time.perf_counter() if running else None


class Stopped(KeyboardInterrupt):
    """A run was asked to end, and has left a checkpoint; the same command continues."""

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(f"stopped after step {step}")


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Whether a SIGTERM or SIGUSR1 has come since; neither ends the process meanwhile.

    A signal that is already handled by others, or ignored, is left to them; so are all where this is not the
    main thread, which alone can handle any.
    """
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    is_main = threading.current_thread() is threading.main_thread()
    ours = [kind for kind in _SIGNALS if is_main and signal.getsignal(kind) == signal.SIG_DFL]
    for kind in ours:
        signal.signal(kind, ask)
    try:
        yield lambda: asked
    finally:
        for kind in ours:
            signal.signal(kind, signal.SIG_DFL)


class CheckpointCallback(TrainerCallback):
    """Asks for a log entry at the end, and for a checkpoint every so many steps or minutes, or before a stop.

    Several processes agree with each log entry on the time and on whether to stop; one alone stops after any
    step.
    """

    def __init__(self, settings: LogSettings, asked: Callable[[], bool]) -> None:
        self._steps = settings.checkpoint_steps
        self._seconds = 60 * settings.checkpoint_minutes
        self._last = time.monotonic()
        self._asked = asked
        self._stops = False

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Decide; all ranks alike."""
        control.should_log |= state.global_step >= state.max_steps
        due = False
        if not is_distributed():
            due, self._stops = self._is_due(), self._asked()
        elif control.should_log:
            due, self._stops = self._agreed(args.device)
        if self._steps is not None:
            control.should_save = state.global_step % self._steps == 0
        else:
            control.should_save = control.should_log and due
        control.should_save |= self._stops
        if control.should_save:
            self._last = time.monotonic()

    def on_save(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ARG002
        """End the run where it is asked to, unless it is over anyway."""
        if self._stops and not control.should_training_stop:
            wait_for_all()
            raise Stopped(state.global_step)

    def _is_due(self) -> bool:
        return time.monotonic() - self._last >= self._seconds

    def _agreed(self, device: torch.device) -> tuple[bool, bool]:
        """Whether a checkpoint is due, by one clock, and whether any process is asked to stop."""
        own = (is_main() and self._is_due(), self._asked())
        flags = torch.tensor(own, device=device, dtype=torch.int32)
        torch.distributed.all_reduce(flags, torch.distributed.ReduceOp.MAX)
        due, stops = flags.tolist()
        return bool(due), bool(stops)


class ProgressCallback(TrainerCallback):
    """Tells steps, the loss and the dev score."""

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
