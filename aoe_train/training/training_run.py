"""The state of a training loop, and what is done between steps: log, evaluation, divergence checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerControl, TrainerState

from aoe_train.training.checkpoints import trained_weights
from aoe_train.training.loss_log import Diverged, gradient_problem
from aoe_train.training.processes import copy_weights, from_main, is_sharded, unsharded_root
from aoe_train.training.training_arguments import METRIC
from pairkit.base.cli.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import TrainerCallback, TrainingArguments

    from aoe_train.evaluation.dev import DevScores
    from aoe_train.training.build import Built
    from aoe_train.training.callbacks import SavePolicy, Stopwatch, WeightAverage
    from aoe_train.training.loss_log import CollapseCheck, LossLog
    from aoe_train.training.optimiser_step import OptimiserStep

# Requests of callbacks that are reset before each event, as in transformers' Trainer.
_RESET = {
    "on_train_begin": ["should_training_stop"],
    "on_epoch_begin": ["should_epoch_stop"],
    "on_step_begin": ["should_log", "should_evaluate", "should_save"],
    "on_log": ["should_log"],
    "on_evaluate": ["should_evaluate"],
    "on_save": ["should_save"],
}


class Events:
    """Calls transformers callbacks with the arguments of its `Trainer`, and collects their requests."""

    def __init__(
        self,
        callbacks: Sequence[TrainerCallback],
        args: TrainingArguments,
        state: TrainerState,
        **objects: Any,
    ) -> None:
        self.callbacks, self.state, self.control = callbacks, state, TrainerControl()
        self._args, self._objects = args, {"processing_class": None, "eval_dataloader": None, **objects}

    def __call__(self, event: str, **seen: Any) -> None:
        """Call all callbacks for an event."""
        for flag in _RESET.get(event, ()):
            setattr(self.control, flag, False)
        for callback in self.callbacks:
            control = getattr(callback, event)(self._args, self.state, self.control, **self._objects, **seen)
            self.control = self.control if control is None else control


@dataclass
class TrainingRun:
    """The parts of a training loop, and what a checkpoint stores beside their states.

    Attributes:
        built: The inputs.
        step: Model, optimiser and schedule.
        events: Callbacks with transformers' state: steps, log and best score.
        policy: When to save, and whether to stop then.
        average: The weights to evaluate and keep.
        losses: The losses that aren't logged yet.
        collapse: A check of the embeddings.
        clock: Training time without evaluation and checkpoints.
        score: Scores the dev data; on rank 0, or on all ranks if the model is sharded.
        before: The backbone's dev scores.
        name: The run's name in reports.
        best: The best weights so far. In memory, so that an evaluation writes nothing.
        sound: The newest checkpoint that has not diverged.
        random_state: That of a checkpoint, with which the next epoch starts.
        logged: Step of the last log entry.
    """

    built: Built
    step: OptimiserStep
    events: Events
    policy: SavePolicy
    average: WeightAverage
    losses: LossLog
    collapse: CollapseCheck
    clock: Stopwatch
    score: Callable[[], DevScores] | None
    before: DevScores | None
    name: str
    best: dict[str, Tensor] | None = None
    sound: Path | None = None
    random_state: dict[str, Any] | None = None
    logged: int = 0
    _notes: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> TrainerState:
        """Steps, log and best score."""
        return self.events.state

    def after_step(self) -> None:
        """Average the weights, and request what is due: a last log entry, a checkpoint."""
        state, control, device = self.state, self.events.control, self.built.args.device
        self.average.add(self.built.model, state.global_step, state.max_steps)
        control.should_log |= state.global_step >= state.max_steps
        control.should_save |= self.policy.saves(state.global_step, device, logs=control.should_log)
        if not control.should_log:
            self.show()

    def show(self, *, ended: bool = False) -> None:
        """Show the progress, with the newest loss and dev score."""
        note, state = ", ".join(self._notes.values()), self.state
        process = self.built.loaded.process
        if process.is_main:
            process.show(Progress("train", state.global_step, state.max_steps, note, ended=ended))

    def log_losses(self, norm: Tensor | None, lr: float) -> None:
        """Log the mean losses since the last entry."""
        if self.state.global_step == self.logged:
            return
        self.logged = self.state.global_step
        parts = self.losses.drain()
        norms = {} if norm is None else {"grad_norm": float(norm)}
        self.log({"loss": parts["loss"], **norms, "learning_rate": lr, **parts})

    def log(self, logs: dict[str, float]) -> None:
        """Add a log entry, and stop a run whose gradient shows divergence."""
        logs["epoch"] = self.state.epoch or 0.0
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self.events("on_log", logs=logs)
        for key, name in (("loss", "loss"), ("eval_dev", "dev")):
            if key in logs:
                self._notes[name] = f"{name} {logs[key]:.4f}"
        if "loss" in logs:
            self.show()
        # fp16's loss scaling skips steps with an infinite gradient, which is no sign of divergence.
        history = [] if self.built.args.fp16 else self.state.log_history
        self._stop_if(gradient_problem([entry["grad_norm"] for entry in history if "grad_norm" in entry]))

    def evaluate(self) -> None:
        """Score the dev data, and keep the weights if they are the best; all ranks get the same scores."""
        if self.score is None:
            return
        self.check_divergence()
        model, state = self.built.model, self.state
        sets = [] if self.before is None or len(self.before.by_set) < 2 else self.before.by_set
        names = [METRIC, *(f"{METRIC}.{name}" for name in sets)]
        with self.clock.paused():
            model.eval()
            figures = torch.zeros(len(names), dtype=torch.float64)
            if self.built.loaded.process.is_main or is_sharded(model):
                with self.average.applied(model), unsharded_root(model):
                    figures += torch.tensor(self.score().figures, dtype=torch.float64)
            values = from_main(figures, self.built.args.device).tolist()
            metrics = {f"eval_{name}": value for name, value in zip(names, values, strict=True)}
            self.log(metrics)
            self.events("on_evaluate", metrics=metrics)
        if values[0] > (-math.inf if state.best_metric is None else state.best_metric):
            state.best_metric, state.best_global_step = values[0], state.global_step
            self.best = copy_weights(self.average.chosen(model) or trained_weights(model))

    def check_divergence(self) -> None:
        """Stop a run that has diverged, with the same result on all ranks."""
        self.losses.check()
        model = self.built.model
        with self.clock.paused():
            spread = torch.zeros((), dtype=torch.float64)
            if self.built.loaded.process.is_main or is_sharded(model):
                with unsharded_root(model):
                    spread += self.collapse.spread()
            self._stop_if(self.collapse.problem(float(from_main(spread, self.built.args.device))))

    def _stop_if(self, problem: str | None) -> None:
        if problem is not None:
            raise Diverged.at(self.state.global_step, problem, lr=self.built.args.learning_rate)
