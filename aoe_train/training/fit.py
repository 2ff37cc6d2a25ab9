"""Training: the loop, from the newest checkpoint to the best weights, and what the model has gained.

The loop runs on accelerate and calls transformers' callbacks, which request logs, evaluations and checkpoints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from accelerate import skip_first_batches  # type: ignore[import-untyped]
from transformers import (
    DefaultFlowCallback,
    EarlyStoppingCallback,
    TrainerControl,
    TrainerState,
    enable_full_determinism,
    set_seed,
)
from transformers.integrations.integration_utils import (
    get_reporting_integration_callbacks,
)
from transformers.trainer_callback import CallbackHandler
from transformers.utils.logging import set_verbosity

from aoe_train.training import checkpoints
from aoe_train.training.callbacks import (
    Stopped,
    Stopwatch,
    WeightAverage,
    open_trackers,
)
from aoe_train.training.monitoring import (
    Baseline,
    Diverged,
    LossLog,
    collapse_problem,
    gradient_problem,
)
from aoe_train.training.processes import (
    copy_weights,
    is_distributed,
    is_main,
    is_sharded,
    run_on_main,
    shard,
    trained_weights,
    unshard,
    wait_for_all,
)
from aoe_train.training.training_arguments import METRIC, OptimiserStep
from pairkit.base.cli.progress import Progress
from pairkit.base.errors import ConfigError
from pairkit.base.system.files import whole_folder

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import TrainerCallback

    from aoe_train.evaluation.dev import DevScores
    from aoe_train.evaluation.gain import Gain
    from aoe_train.training.build import Built

# Folder of the last sound model, in the working folder.
BEFORE_DIVERGENCE = "before-divergence"


@dataclass(frozen=True)
class Fitted:
    """A trained model."""

    built: Built  # `built.model` has the weights to save
    state: TrainerState  # steps, log and best score
    seconds: float  # of training, without evaluation and checkpoints
    before: DevScores | None  # of the backbone
    dev_gain: dict[str, Any] | None  # in the deciding dev metric
    gain: Gain | None  # on judged pairs
    keeps_model: bool  # whether the weights are the trained ones, not the backbone's


@dataclass
class TrainingRun:
    """The parts of a training loop, and what a checkpoint stores beside their states."""

    built: Built
    step: OptimiserStep
    handler: CallbackHandler  # of callbacks, which set `control` to request something
    state: TrainerState  # steps, log and best score
    stop_requested: Callable[[], bool]
    average: WeightAverage  # the weights to evaluate and keep
    losses: LossLog  # not logged yet
    baseline: Baseline
    clock: Stopwatch  # training time without evaluation and checkpoints
    name: str  # in reports
    control: TrainerControl = field(default_factory=TrainerControl)
    # The best weights, in memory, so that an evaluation writes nothing.
    best: dict[str, Tensor] | None = None
    sound: Path | None = None  # the newest checkpoint that has not diverged
    # The state of a checkpoint, with which the next epoch starts.
    random_state: dict[str, Any] | None = None
    ended: bool = False  # whether the model has the weights to save
    stops: bool = False  # whether to stop after the checkpoint
    last_save: float = field(default_factory=time.monotonic)
    _notes: dict[str, str] = field(default_factory=dict)

    def event(self, name: str, **seen: object) -> None:
        """Call all callbacks for an event, as transformers' `Trainer` does."""
        call = getattr(self.handler, name)
        self.control = call(self.built.args, self.state, self.control, **seen)

    def after_step(self) -> None:
        """Average the weights, and request what is due: a last log entry, a checkpoint."""
        state = self.state
        control = self.control
        self.average.add(self.built.model, state.global_step, state.max_steps)
        control.should_log |= state.global_step >= state.max_steps
        if self._save_is_due():
            control.should_save = True
            self.last_save = time.monotonic()
        if not control.should_log:
            self.show()

    def _save_is_due(self) -> bool:
        """Whether to save after this step; processes agree at log entries, a single one after any step."""
        settings = self.built.loaded.settings.log
        logs = self.control.should_log
        due = time.monotonic() - self.last_save >= 60 * settings.checkpoint_minutes
        if not is_distributed():
            self.stops = self.stop_requested()
        elif logs:
            flags = torch.tensor(
                [is_main() and due, self.stop_requested()], dtype=torch.int32
            )
            flags = flags.to(self.built.args.device)
            torch.distributed.all_reduce(flags, torch.distributed.ReduceOp.MAX)
            due, self.stops = map(bool, flags.tolist())
        if settings.checkpoint_steps is not None:
            due = self.state.global_step % settings.checkpoint_steps == 0
        else:
            due = due and logs
        return due or self.stops

    def show(self, *, ended: bool = False) -> None:
        """Show the progress, with the newest loss and dev score."""
        note = ", ".join(self._notes.values())
        state = self.state
        progress = Progress(
            "train", state.global_step, state.max_steps, note, ended=ended
        )
        self.built.loaded.process.show(progress)

    def log_losses(self, norm: Tensor | None, lr: float) -> None:
        """Log the mean losses since the last entry, if there are any."""
        losses = self.losses.drain()
        if not losses:
            return
        norms = {} if norm is None else {"grad_norm": float(norm)}
        self.log({"loss": losses["loss"], **norms, "learning_rate": lr, **losses})

    def log(self, logs: dict[str, float]) -> None:
        """Add a log entry; raises Diverged if the gradient shows divergence."""
        logs["epoch"] = self.state.epoch or 0.0
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self.event("on_log", logs=logs)
        for key in ("loss", "eval_dev"):
            if key in logs:
                self._notes[key] = f"{key.removeprefix('eval_')} {logs[key]:.4f}"
        if "loss" in logs:
            self.show()
        # fp16's loss scaling skips steps with an infinite gradient, which is no sign of divergence.
        history = [] if self.built.args.fp16 else self.state.log_history
        norms = [entry["grad_norm"] for entry in history if "grad_norm" in entry]
        self._raise_if_diverged(gradient_problem(norms))

    def evaluate(self) -> None:
        """Score the dev data, and keep the weights if they are the best; all ranks get the same scores.

        Raises Diverged instead of scoring a model that has diverged.
        """
        score = self.baseline.score
        if score is None:
            return
        self.check_divergence()
        model = self.built.model
        state = self.state
        deciding = f"eval_{METRIC}"
        with self.clock.paused():
            model.eval()
            with self.average.applied(model):
                metrics = run_on_main(model, lambda: score().log_entry(deciding))
            self.log(metrics)
            self.event("on_evaluate", metrics=metrics)
        best_before = -math.inf if state.best_metric is None else state.best_metric
        if metrics[deciding] > best_before:  # not if it is NaN
            state.best_metric = metrics[deciding]
            state.best_global_step = state.global_step
            self.best = copy_weights(
                self.average.chosen(model) or trained_weights(model)
            )

    def check_divergence(self) -> None:
        """Raise Diverged on all ranks if the losses or the vectors of one show divergence."""
        self.losses.check()
        baseline = self.baseline
        with self.clock.paused():
            spread = run_on_main(self.built.model, baseline.spread)
        texts = len(baseline.sample)
        self._raise_if_diverged(collapse_problem(baseline.spread_before, spread, texts))

    def _raise_if_diverged(self, problem: str | None) -> None:
        if problem is not None:
            raise Diverged.at(
                self.state.global_step, problem, lr=self.built.args.learning_rate
            )


def fit(
    built: Built,
    baseline: Baseline,
    callbacks: Sequence[TrainerCallback],
    stop_requested: Callable[[], bool],
) -> Fitted:
    """Train to the end, restore the best weights, and compare the model with its backbone.

    Raises Stopped after a checkpoint on request, except after the last step, and Diverged once training
    can't recover.
    """
    settings = built.loaded.settings
    if settings.run.shard:
        shard(built.model)
    run = _prepare_run(built, callbacks, stop_requested, baseline)
    _train_to_end(run)
    dev_gain = baseline.dev_gain()
    gain = baseline.judged_gain()
    keeps_model = (
        gain is None or gain.word == "better" or settings.optim.if_not_better == "model"
    )
    if not keeps_model:
        baseline.restore_weights()
    return Fitted(
        built, run.state, run.clock.seconds, baseline.dev, dev_gain, gain, keeps_model
    )


def _train_to_end(run: TrainingRun) -> None:
    """Train from the newest checkpoint to the end, and restore the best weights; raises as `fit`."""
    process = run.built.loaded.process
    try:
        _resume(run)
        if not run.ended:
            run_epochs(run)
            run.check_divergence()
            _restore_best_weights(run)
    except Diverged as error:
        raise Diverged(f"{error}{_save_sound_weights(run)}") from error
    except Stopped as stopped:
        process.say(f"{process.work}: {stopped} with a checkpoint")
        raise
    unshard(run.built.model)


def _restore_best_weights(run: TrainingRun) -> None:
    """Give the model the weights to save, and save them, so that a run that is killed now needn't train again."""
    model = run.built.model
    best = run.best or run.average.chosen(model)
    if best is not None:
        checkpoints.restore_weights(model, best)
    run.best = None
    run.average.mean = None
    run.ended = True
    checkpoints.save(run)


def run_epochs(run: TrainingRun) -> None:
    """Run all steps, or those that remain after a checkpoint.

    Raises ConfigError if a callback ends an epoch early, since the epoch and rows of a
    checkpoint are derived from its step.
    """
    state = run.state
    built = run.built
    first_step = state.global_step
    run.event("on_train_begin")
    run.show()
    for epoch in range(first_step // built.steps_an_epoch, state.num_train_epochs):
        run.event("on_epoch_begin")
        with run.clock.running():
            for batches in _batches_of_steps(run, epoch):
                norm, lr = _run_step(run, batches)
                _log_evaluate_save(run, norm, lr)
                if run.control.should_training_stop:
                    break
                is_epoch_over = state.global_step % built.steps_an_epoch == 0
                if run.control.should_epoch_stop and not is_epoch_over:
                    raise ConfigError(
                        "callbacks: one set should_epoch_stop, but an epoch can't end early,"
                        " since the run couldn't be resumed; set should_training_stop, or"
                        " change epochs"
                    )
            run.event("on_epoch_end")
            _log_evaluate_save(run, norm, lr)
        if run.control.should_training_stop:
            break
    run.event("on_train_end")
    run.show(ended=True)


def _run_step(
    run: TrainingRun, batches: Sequence[dict[str, object]]
) -> tuple[Tensor | None, float]:
    """Update the weights with some batches; returns the gradient's norm and the learning rate."""
    state = run.state
    step = run.step
    run.event("on_step_begin")
    for batch in batches[:-1]:
        with step.no_sync():
            step.backward(batch, state.global_step, len(batches))
        run.event("on_substep_end")
    step.backward(batches[-1], state.global_step, len(batches))
    norm = step.clip()
    run.event("on_pre_optimizer_step")
    step.optimiser.step()
    run.event("on_optimizer_step")
    lr = step.advance()
    state.global_step += 1
    state.epoch = state.global_step / run.built.steps_an_epoch
    run.event("on_step_end")
    run.after_step()
    return norm, lr


def _batches_of_steps(
    run: TrainingRun, epoch: int
) -> Iterator[list[dict[str, object]]]:
    """The batches of each step of an epoch, or of its remaining steps with the checkpoint's random state."""
    loader = run.built.loader
    args = run.built.args
    random_state = run.random_state
    run.random_state = None
    steps_done = 0
    if random_state is not None:
        steps_done = run.state.global_step % run.built.steps_an_epoch
        if not steps_done:
            checkpoints.restore_random_state(random_state, args.device)
    run.built.batches.set_epoch(epoch)
    accumulation = args.gradient_accumulation_steps
    if steps_done:
        loader = skip_first_batches(loader, steps_done * accumulation)
    batches = iter(loader)
    for step in range(steps_done, run.built.steps_an_epoch):
        group = list(islice(batches, accumulation))
        # Only now, as starting an epoch draws a random number.
        if random_state is not None and step == steps_done > 0:
            checkpoints.restore_random_state(random_state, args.device)
        yield group


def _log_evaluate_save(run: TrainingRun, norm: Tensor | None, lr: float) -> None:
    """Log, evaluate and save as callbacks have requested; raises Stopped after the checkpoint of a stop."""
    if run.control.should_log:
        run.log_losses(norm, lr)
    if run.control.should_evaluate:
        run.evaluate()
    if run.control.should_save:
        # At the end of training, the finished model is saved next.
        if not run.control.should_training_stop:
            checkpoints.save(run)
        run.event("on_save")
        if run.stops and not run.control.should_training_stop:
            wait_for_all()
            raise Stopped(f"stopped after step {run.state.global_step}")


def _prepare_run(
    built: Built,
    callbacks: Sequence[TrainerCallback],
    stop_requested: Callable[[], bool],
    baseline: Baseline,
) -> TrainingRun:
    """The parts of the loop, before the first step."""
    args = built.args
    process = built.loaded.process
    model = built.model
    optim = built.loaded.settings.optim
    if args.full_determinism:
        enable_full_determinism(args.seed)
    else:
        set_seed(args.seed)
    set_verbosity(args.get_process_log_level())  # type: ignore[no-untyped-call]
    if not is_sharded(model):
        model.to(args.device)
    losses = LossLog(args.learning_rate)
    state = TrainerState(
        logging_steps=int(args.logging_steps),
        eval_steps=int(args.eval_steps or 1),
        max_steps=built.steps,
        num_train_epochs=math.ceil(args.num_train_epochs),
        is_world_process_zero=is_main(),
        is_local_process_zero=args.local_process_index == 0,
    )
    average = WeightAverage(model, optim.average, optim.interpolate)
    step = OptimiserStep(built, losses, state.max_steps)
    trackers = get_reporting_integration_callbacks(args.report_to)  # type: ignore[no-untyped-call]
    all_callbacks: list[TrainerCallback] = [DefaultFlowCallback()]
    all_callbacks += [tracker() for tracker in trackers]
    if optim.patience is not None:
        all_callbacks.append(EarlyStoppingCallback(optim.patience))
    all_callbacks += callbacks
    handler = CallbackHandler(  # type: ignore[no-untyped-call]
        all_callbacks, model, None, step.optimiser, step.schedule
    )
    handler.train_dataloader = built.loader
    run = TrainingRun(
        built,
        step,
        handler,
        state,
        stop_requested,
        average,
        losses,
        baseline,
        Stopwatch(),
        name=f"{process.work.stem}-{time.strftime('%Y%m%d-%H%M%S')}",
    )
    run.event("on_init_end")
    return run


def _resume(run: TrainingRun) -> None:
    """Restore the newest checkpoint, if there is one, and open the trackers."""
    process = run.built.loaded.process
    newest = checkpoints.newest(process.work)
    if newest is not None:
        process.say(
            f"{process.work}: continuing after step {checkpoints.step_of(newest)}"
        )
        checkpoints.restore(run, newest)
    if is_main() and not run.ended:
        open_trackers(run)


def _save_sound_weights(run: TrainingRun) -> str:
    """Save the best weights, or else those of the newest sound checkpoint, as a model; returns a note."""
    process = run.built.loaded.process
    model = run.built.model
    if run.best is not None:
        name = "the best weights"
        step = run.state.best_global_step
        weights = run.best
    elif run.sound is not None:
        name = "the weights"
        step = checkpoints.step_of(run.sound)
        weights = checkpoints.read(run.sound)["weights"]
    else:
        return ""
    checkpoints.restore_weights(model, weights)
    unshard(model)
    folder = process.work / BEFORE_DIVERGENCE
    if is_main():
        with whole_folder(folder) as unfinished:
            run.built.save(unfinished)
    return f"; {name} of step {step:,} are in {folder}"
