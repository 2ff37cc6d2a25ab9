"""What watches a run: the clock, checkpoints and stops, progress, the mean of the weights, and reports.

A run also reports to what `log.report_to` names, in the words of transformers' callbacks:

| name | its files | a resumed run has |
|---|---|---|
| tensorboard | `OUT.runs/NAME-TIME`, or TENSORBOARD_LOGGING_DIR | the same folder, from its checkpoint on |
| wandb | `OUT.runs/wandb`, or WANDB_DIR; offline with WANDB_MODE=offline | the same id |
| trackio | trackio's own folder, or TRACKIO_DIR | the same name |

The others that transformers knows are set up as transformers does it. The mean of the weights that a run
passes through often does better than any of them (Izmailov et al., UAI 2018).
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback
from transformers.integrations.integration_utils import (
    TensorBoardCallback,
    TrackioCallback,
    WandbCallback,
    get_reporting_integration_callbacks,
)

from aoe_train.data.examples import Say
from aoe_train.training.checkpoints import trained_weights, wait_for_all
from aoe_train.training.processes import is_distributed, is_main
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.app.progress import Listener, Progress

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

    from aoe_train.settings.training import LogSettings


SCHEDULERS = (signal.SIGTERM, signal.SIGUSR1)  # they send the first, or what a job asks them for
_UNHANDLED = (signal.SIG_DFL, signal.default_int_handler)


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
def stop_signals(*kinds: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Whether one of these signals has come since; the first of them does not end the process.

    A second SIGINT raises KeyboardInterrupt, as ever. A signal that others handle already, or that is
    ignored, is left to them; so are all signals outside the main thread, which alone can handle any.
    """
    asked = False

    def ask(kind: int, _: object) -> None:
        nonlocal asked
        if asked and kind == signal.SIGINT:
            raise KeyboardInterrupt
        asked = True

    is_main = threading.current_thread() is threading.main_thread()
    before = {kind: signal.getsignal(kind) for kind in kinds if is_main}
    ours = {kind: handler for kind, handler in before.items() if handler in _UNHANDLED}
    for kind in ours:
        signal.signal(kind, ask)
    try:
        yield lambda: asked
    finally:
        for kind, handler in ours.items():
            signal.signal(kind, handler)


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


_ADAPTER_IN = ".lora_A."  # an adapter's product is 0 before training, and as linear in the other factor alone


class WeightMix:
    """Mixes trained weights with those that a model has when this is made."""

    def __init__(self, model: nn.Module, share: float) -> None:
        self._share = share
        self._first = {name: weight.clone() for name, weight in trained_weights(model).items()}

    @torch.no_grad()
    def mixed(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Weights `share` of the way from those before training; of adapters, their products are mixed."""
        return {
            name: weight if _ADAPTER_IN in name else self._first[name].lerp(weight, self._share)
            for name, weight in weights.items()
        }


_SAMPLES = 100  # of a run at most: more would say the same and take time


class WeightAverage(TrainerCallback):
    """The mean over the last `share` of a run's steps, in as many samples as pay; the last is at its end.

    A share of 0 takes none.
    """

    def __init__(self, share: float, mix: WeightMix | None = None) -> None:
        self._share, self._mix = share, mix
        self.mean: dict[str, Tensor] | None = None

    def samples(self, step: int, steps: int) -> int:
        """How many have been taken after `step` of `steps` steps."""
        if not self._share:
            return 0
        window = max(1, round(self._share * steps))
        every = math.ceil(window / _SAMPLES)
        first = steps - (window - 1) // every * every
        return 0 if step < first else (step - first) // every + 1

    @torch.no_grad()
    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **seen: Any
    ) -> None:
        """Take a sample where this step has one."""
        del args, control
        taken = self.samples(state.global_step, state.max_steps)
        if taken == self.samples(state.global_step - 1, state.max_steps):
            return
        weights = trained_weights(seen["model"])
        if self.mean is None:
            self.mean = {name: weight.clone() for name, weight in weights.items()}
        else:
            torch._foreach_lerp_([self.mean[name] for name in weights], list(weights.values()), 1 / taken)

    def chosen(self, model: nn.Module) -> dict[str, Tensor] | None:
        """The weights to judge and keep in place of the model's own; None where these are."""
        if self.mean is None and self._mix is None:
            return None
        weights = self.mean or trained_weights(model)
        return weights if self._mix is None else self._mix.mixed(weights)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The model has the weights to keep here, and its own again afterwards, to the bit."""
        chosen = self.chosen(model)
        if chosen is None:
            yield
            return
        _swap(chosen, model)
        try:
            yield
        finally:
            _swap(chosen, model)


@torch.no_grad()
def _swap(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Let them and the model's change places, one by one, so that no third copy of a model is held."""
    for name, weight in trained_weights(model).items():
        own = weight.clone()
        weight.copy_(weights[name])
        weights[name] = own


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
