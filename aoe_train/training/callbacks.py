"""Callbacks of a run: clock, checkpoints and stops, progress, weight average, and reports.

`log.report_to` names trackers to report to, through transformers' callbacks:

| name | files | a resumed run continues |
|---|---|---|
| tensorboard | `OUT.runs/NAME-TIME`, or TENSORBOARD_LOGGING_DIR | in the same folder |
| wandb | `OUT.runs/wandb`, or WANDB_DIR; offline with WANDB_MODE=offline | with the same id |
| trackio | trackio's own folder, or TRACKIO_DIR | with the same name |

Other trackers are set up by transformers. The average of the weights of a run is often better than the last
weights (Izmailov et al., UAI 2018).
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers.integrations.integration_utils import (
    TensorBoardCallback,
    TrackioCallback,
    WandbCallback,
)

from aoe_train.training.processes import trained_weights
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.training.fit import TrainingRun


# Signals that job schedulers send before they end a job.
SCHEDULERS = (signal.SIGTERM, signal.SIGUSR1)
_UNHANDLED = (signal.SIG_DFL, signal.default_int_handler)
# An adapter's product B A is 0 before training, so scaling B alone averages the product.
_ADAPTER_A = ".lora_A."
# Samples of the weights to average; more would cost time without changing the average.
_MAX_SAMPLES = 100


class Stopwatch:
    """Adds up the time inside `running`, without the time inside `paused`."""

    seconds = 0.0  # up to the last pause
    _since: float | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside."""
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._pause()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Don't count the time inside."""
        running = self._since is not None
        self._pause()
        try:
            yield
        finally:
            self._since = time.perf_counter() if running else None

    def _pause(self) -> None:
        """Stop counting."""
        if self._since is not None:
            self.seconds += time.perf_counter() - self._since
            self._since = None


class Stopped(KeyboardInterrupt):
    """A run stopped on request, with a checkpoint; the same command continues it."""


@contextmanager
def stop_signals(*kinds: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether one of these signals has come; they don't end the process.

    A second SIGINT raises KeyboardInterrupt. Signals that are ignored or have other handlers are left alone,
    as are all signals outside the main thread, the only one that can handle them. A signal that
    stopped nothing is passed on to `signal.default_int_handler` at the end if that is its handler.
    """
    received: list[int] = []

    def receive(kind: int, _: object) -> None:
        if received and kind == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(kind)

    replaced: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for kind in kinds:
            if signal.getsignal(kind) in _UNHANDLED:
                replaced[kind] = signal.signal(kind, receive)
    try:
        yield lambda: bool(received)
    finally:
        for kind, handler in replaced.items():
            signal.signal(kind, handler)
    if received and signal.getsignal(received[-1]) is signal.default_int_handler:
        raise KeyboardInterrupt


class WeightAverage:
    """The average of the weights over the last `share` of a run's steps, and then with the initial weights.

    A share of 0 averages no steps; `weight` is that of the trained weights against the initial ones.
    """

    def __init__(self, model: nn.Module, share: float, weight: float = 1.0) -> None:
        self._share = share
        self._weight = weight
        self._initial: dict[str, Tensor] | None = None
        if weight != 1:
            self._initial = _cloned(trained_weights(model))
        self.mean: dict[str, Tensor] | None = None

    def samples(self, step: int, steps: int) -> int:
        """Number of samples after `step` of `steps` steps; the last step is always a sample."""
        if not self._share:
            return 0
        window = max(1, round(self._share * steps))
        interval = math.ceil(window / _MAX_SAMPLES)
        first = steps - (window - 1) // interval * interval
        return 0 if step < first else (step - first) // interval + 1

    @torch.no_grad()
    def add(self, model: nn.Module, step: int, steps: int) -> None:
        """Add the weights after a step if it is a sample."""
        count = self.samples(step, steps)
        if count == self.samples(step - 1, steps):
            return
        weights = trained_weights(model)
        if self.mean is None:
            self.mean = _cloned(weights)
        else:
            means = [self.mean[name] for name in weights]
            torch._foreach_lerp_(means, list(weights.values()), 1 / count)

    @torch.no_grad()
    def chosen(self, model: nn.Module) -> dict[str, Tensor] | None:
        """The weights to evaluate and save; None if these are the model's current ones."""
        if self._initial is None:
            return self.mean
        chosen = {**(self.mean or trained_weights(model))}
        for name, weight in chosen.items():
            if _ADAPTER_A not in name:
                chosen[name] = self._initial[name].lerp(weight, self._weight)
        return chosen

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Give the model the chosen weights inside, and restore its own exactly."""
        chosen = self.chosen(model)
        if chosen is None:
            yield
            return
        _swap_weights(chosen, model)
        try:
            yield
        finally:
            _swap_weights(chosen, model)


def _cloned(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the weights on their device."""
    return {name: weight.clone() for name, weight in weights.items()}


@torch.no_grad()
def _swap_weights(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Swap the weights with the model's one by one, to avoid a third copy of the model."""
    for name, weight in trained_weights(model).items():
        current = weight.clone()
        weight.copy_(weights[name])
        weights[name] = current


def open_trackers(run: TrainingRun) -> None:
    """Open the trackers of a run, from its step on, and print the location of each."""
    args = run.built.args
    process = run.built.loaded.process
    root = process.work.with_suffix(".runs")
    say = process.say
    name = run.name
    step = run.state.global_step
    for callback in run.handler.callbacks:
        tracker: Any = callback
        if type(callback) is TensorBoardCallback:
            folder = tracker.logging_dir or str(root / name)
            # Steps after the checkpoint will be written again.
            purge = step + 1 if step else None
            tracker.tb_writer = tracker._SummaryWriter(log_dir=folder, purge_step=purge)
            say(
                f"tensorboard: reporting to {folder}; view it with `tensorboard --logdir {root}`"
            )
        elif type(callback) is WandbCallback:
            say(f"wandb: reporting to {_open_wandb(tracker._wandb, args, root, name)}")
        elif type(callback) is TrackioCallback:
            from trackio.utils import TRACKIO_DIR

            # The callback resumes the run of this name.
            args.run_name = args.run_name or name
            say(
                f"trackio: reporting to {TRACKIO_DIR}; view it with `trackio show --project {args.project}`"
            )


def _open_wandb(wandb: Any, args: TrainingArguments, root: Path, name: str) -> str:
    """Open wandb's run, unless the user has started one in this process, and return its location."""
    from wandb.errors import Error

    if wandb.run is None:
        folder = Path(os.environ.get("WANDB_DIR") or root)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            wandb.init(
                id=name,
                resume="allow",
                name=args.run_name or name,
                project=os.environ.get("WANDB_PROJECT") or args.project,
                dir=str(folder),
            )
        except Error as error:
            reason = one_line(str(error), 200).rstrip(".")
            raise ConfigError(
                f"log.report_to 'wandb': {reason}; run `wandb login`, or set WANDB_MODE=offline"
            ) from error
    folder = Path(wandb.run.dir).parent
    return wandb.run.url or f"{folder}, offline; upload it with wandb sync {folder}"
