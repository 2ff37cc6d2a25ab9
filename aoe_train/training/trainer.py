"""The training loop, based on accelerate: trains on planned batches and restores the best weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import skip_first_batches  # type: ignore[import-untyped]
from accelerate.utils.memory import clear_device_cache  # type: ignore[import-untyped]
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    DefaultFlowCallback,
    TrainerControl,
    TrainerState,
    enable_full_determinism,
    set_seed,
)
from transformers.integrations.integration_utils import get_reporting_integration_callbacks
from transformers.utils.logging import set_verbosity

from aoe_train.data.examples import Say, silent
from aoe_train.model.device import upload_batch
from aoe_train.training.callbacks import Reports, Stopwatch
from aoe_train.training.checkpoints import (
    Checkpoint,
    check_state_files,
    checkpoint_folder,
    load_history,
    load_optimiser,
    load_random_state,
    newest_checkpoint,
    restore_weights,
    save_history,
    save_optimiser,
    save_random_state,
    trained_weights,
    write_extras,
)
from aoe_train.training.loss_log import Diverged, LossLog, gradient_problem
from aoe_train.training.processes import (
    copy_weights,
    gather_weights,
    is_distributed,
    is_sharded,
    shard_like,
    unshard,
    unsharded_root,
)
from aoe_train.training.training_arguments import METRIC, make_accelerator, wrap

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainingArguments

    from aoe_train.data.token_batches import PlannedLoader
    from aoe_train.training.callbacks import WeightAverage
    from aoe_train.training.loss_log import CollapseCheck
    from aoe_train.training.pair_model import PairModel
    from aoe_train.training.step_graphs import StepGraphs


Evaluate = Callable[[], Sequence[float]]
_WEIGHTS = "model.safetensors"
# Requests of callbacks that are reset before each event, as in transformers' Trainer.
_RESET = {
    "on_train_begin": ["should_training_stop"],
    "on_epoch_begin": ["should_epoch_stop"],
    "on_step_begin": ["should_log", "should_evaluate", "should_save"],
    "on_log": ["should_log"],
    "on_evaluate": ["should_evaluate"],
    "on_save": ["should_save"],
}


class PairTrainer:
    """Trains a PairModel on planned batches, and keeps the best weights.

    Callbacks are transformers callbacks and get the arguments of its `Trainer`.

    * The batches are already split among the ranks, so accelerate doesn't prepare the loader.
    * `evaluate_dev` runs on rank 0, or on all ranks if the model is sharded. Its first score chooses the best
      weights; the others are those of `dev_sets`.
    * Evaluated and kept are the weights that `average` chooses, such as the mean so far.
    * With several `datasets`, the log has the loss parts of each.
    * The best weights stay in memory and are written with each checkpoint, so that evaluation writes nothing
      and one folder has everything to resume from.
    * A checkpoint has only the trained weights, and is complete or absent.
    * The clock excludes evaluation and checkpoints.
    """

    def __init__(
        self,
        model: PairModel,
        args: TrainingArguments,
        batches: PlannedLoader,
        *,
        work: Path,
        evaluate_dev: Evaluate | None = None,
        dev_sets: Sequence[str] = (),
        datasets: Sequence[str] = (),
        average: WeightAverage,
        collapse: CollapseCheck,
        callbacks: Sequence[TrainerCallback] = (),
        graphs: StepGraphs | None = None,
    ) -> None:
        (enable_full_determinism if args.full_determinism else set_seed)(args.seed)
        set_verbosity(args.get_process_log_level())  # type: ignore[no-untyped-call]
        self.model, self.args, self.batches, self.work = model, args, batches, work
        if not is_sharded(model):
            model.to(args.device)
        self.accelerator = make_accelerator(args)
        trackers = get_reporting_integration_callbacks(args.report_to)  # type: ignore[no-untyped-call]
        self.callbacks: list[TrainerCallback] = [DefaultFlowCallback()]
        self.callbacks += [*(tracker() for tracker in trackers), average, *callbacks]
        self.reports = Reports(self.callbacks, args, work)
        self.name = f"{work.stem}-{time.strftime('%Y%m%d-%H%M%S')}"  # in reports
        self.evaluate_dev = evaluate_dev
        self.dev_metrics = [METRIC, *(f"{METRIC}.{name}" for name in dev_sets)]
        self.datasets, self.average, self.collapse, self.graphs = datasets, average, collapse, graphs
        self.losses = LossLog(args.learning_rate)
        self.best: dict[str, Tensor] | None = None
        self.clock = Stopwatch()
        self.is_main = args.process_index == 0
        self.steps_an_epoch = math.ceil(len(batches) / args.gradient_accumulation_steps)
        self.state, self.control = self._state(TrainerState()), TrainerControl()
        self.optimizer: Any = None
        self.lr_scheduler: Any = None
        self._logged = 0  # step of the last log entry
        self._sound: Checkpoint | None = None  # the newest checkpoint that has not diverged
        self._call("on_init_end")

    def _state(self, state: TrainerState) -> TrainerState:
        """Complete a new state or that of a checkpoint."""
        args = self.args
        if not state.global_step:
            state.logging_steps, state.eval_steps = int(args.logging_steps), int(args.eval_steps or 1)
        state.max_steps = math.ceil(args.num_train_epochs * self.steps_an_epoch)
        state.num_train_epochs = math.ceil(args.num_train_epochs)
        state.train_batch_size = args.per_device_train_batch_size
        state.is_world_process_zero, state.is_local_process_zero = self.is_main, args.local_process_index == 0
        return state

    def fit(self, resume: Checkpoint | None = None, say: Say = silent) -> None:
        """Train to the end, and restore the best weights if there is dev data."""
        if resume is not None:
            self._restore(resume)
        if self.is_main:
            self.reports.begin(self.name, step=resume.step if resume else 0, say=say)
        wrapped, self.optimizer, self.lr_scheduler = wrap(
            self.model, self.accelerator, self.args, self.state.max_steps
        )
        if resume is not None:
            parts = (self.model, self.optimizer, self.lr_scheduler, self.accelerator.scaler)
            load_optimiser(*parts, resume.trainer_folder)
        self._run(wrapped, resume)
        self._check(self.state.global_step)
        if (chosen := self.best or self.average.chosen(self.model)) is not None:
            restore_weights(self.model, chosen, self.work)
        unshard(self.model)

    def restore_sound(self) -> str | None:
        """Restore the best weights, or else those of the newest sound checkpoint, and return their name.

        All processes must call it.
        """
        if self.best is not None:
            step, name = self.state.best_global_step, "the best weights"
            restore_weights(self.model, self.best, self.work)
        elif self._sound is not None:
            step, name = self._sound.step, "the weights"
            path = self._sound.trainer_folder / _WEIGHTS
            restore_weights(self.model, load_file(path), path)
        else:
            return None
        unshard(self.model)
        return f"{name} of step {step:,}" if step else name

    # The loop

    def _run(self, wrapped: nn.Module, resume: Checkpoint | None) -> None:
        self._logged = first = self.state.global_step
        wrapped.zero_grad()
        start = time.perf_counter()
        self._call("on_train_begin")
        for epoch in range(first // self.steps_an_epoch, self.state.num_train_epochs):
            self._call("on_epoch_begin")
            with self.clock.running():
                self._epoch(wrapped, epoch, resume)
            resume = None
            if self.control.should_training_stop:
                break
        runtime, steps = time.perf_counter() - start, self.state.global_step - first
        self.log({"train_runtime": runtime, "train_steps_per_second": steps / runtime})
        self._call("on_train_end")

    def _epoch(self, wrapped: nn.Module, epoch: int, resume: Checkpoint | None) -> None:
        """Run the steps of an epoch, or its remaining steps with the checkpoint's random state."""
        accumulation, count = self.args.gradient_accumulation_steps, len(self.batches)
        done = self.state.global_step % self.steps_an_epoch if resume is not None else 0
        if resume is not None and not done:
            load_random_state(resume.trainer_folder, self.args)
        self.batches.set_epoch(epoch)
        upcoming = iter(skip_first_batches(self.batches, done * accumulation) if done else self.batches)
        for step in range(done, self.steps_an_epoch):
            group = list(islice(upcoming, accumulation))
            if resume is not None and step == done != 0:  # starting an epoch draws a random number
                load_random_state(resume.trainer_folder, self.args)
            norm, lr = self._step(wrapped, group)
            self.state.global_step += 1
            self.state.epoch = epoch + min((step + 1) * accumulation, count) / count
            self._call("on_step_end")
            self._log_evaluate_save(norm, lr)
            if self.control.should_epoch_stop or self.control.should_training_stop:
                break
        self._call("on_epoch_end")
        self._log_evaluate_save(norm, lr)

    def _step(self, wrapped: nn.Module, group: list[dict[str, Any]]) -> tuple[Tensor | None, float]:
        """Run one optimiser step on a group of batches; returns the gradient norm and the learning rate."""
        self._call("on_step_begin")
        for inputs in group[:-1]:
            # Accumulating unsharded gradients would take a whole model's memory.
            sharded = is_sharded(self.model)
            with nullcontext() if sharded else self.accelerator.no_sync(wrapped):
                self.training_step(wrapped, inputs, len(group))
            self._call("on_substep_end")
        self.training_step(wrapped, group[-1], len(group))
        norm = None
        if self.args.max_grad_norm > 0:
            norm = self.clip_gradients(wrapped)
        self._call("on_pre_optimizer_step")
        self.optimizer.step()
        self._call("on_optimizer_step")
        lr = float(self.lr_scheduler.get_last_lr()[0])
        if not self.accelerator.optimizer_step_was_skipped:
            self.lr_scheduler.step()
        wrapped.zero_grad()
        return norm, lr

    def training_step(self, wrapped: nn.Module, inputs: dict[str, Any], batches: int) -> None:
        """Forward and backward pass of one batch, in a step of this many `batches`."""
        wrapped.train()
        rows, dataset = inputs.pop("numbers"), inputs.get("dataset")
        if self.graphs is not None and (parts := self.graphs(inputs)) is not None:
            self.losses.add(parts, rows, self.state.global_step)
            return
        inputs = upload_batch(inputs, self.args.device)  # while the device still computes
        parts = wrapped(**inputs)
        name = None if dataset is None else self.datasets[dataset]
        self.losses.add(parts, rows, self.state.global_step, name)
        del inputs
        empty = self.args.torch_empty_cache_steps
        if empty is not None and self.state.global_step % empty == 0:
            clear_device_cache()
        self.accelerator.backward(parts["loss"] / batches)

    def clip_gradients(self, wrapped: nn.Module) -> Tensor:
        """Clip the gradient to `max_grad_norm`, and return its norm before clipping."""
        norm: Any = self.accelerator.clip_grad_norm_(wrapped.parameters(), self.args.max_grad_norm)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[no-any-return]

    def _call(self, event: str, **seen: Any) -> None:
        """Call all callbacks for an event."""
        for flag in _RESET.get(event, ()):
            setattr(self.control, flag, False)
        for callback in self.callbacks:
            control = getattr(callback, event)(
                self.args,
                self.state,
                self.control,
                model=self.model,
                processing_class=None,
                optimizer=self.optimizer,
                lr_scheduler=self.lr_scheduler,
                train_dataloader=self.batches,
                eval_dataloader=None,
                **seen,
            )
            self.control = self.control if control is None else control

    # Log and evaluation

    def _log_evaluate_save(self, norm: Tensor | None, lr: float) -> None:
        """Log, evaluate and save as callbacks have requested."""
        if self.control.should_log and self.state.global_step > self._logged:
            self._logged = self.state.global_step
            parts = self.losses.drain()
            logs = {"loss": parts["loss"]}
            if norm is not None:
                logs["grad_norm"] = float(norm)
            self.log({**logs, "learning_rate": lr, **parts})
        if self.control.should_evaluate:
            self.evaluate()
        if self.control.should_save:
            self._save_checkpoint()
            self._call("on_save")

    def log(self, logs: dict[str, float]) -> None:
        """Add a log entry, and stop a run whose gradient shows divergence."""
        logs["epoch"] = self.state.epoch or 0.0
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self._call("on_log", logs=logs)
        # fp16's loss scaling skips steps with an infinite gradient, which is no sign of divergence.
        norms = [] if self.args.fp16 else [entry.get("grad_norm") for entry in self.state.log_history]
        self._stop_if(gradient_problem([norm for norm in norms if norm is not None]), self.state.global_step)

    def _check(self, step: int) -> None:
        """Stop a run that has diverged, with the same result on all ranks."""
        self.losses.check()
        with self.clock.paused():
            spread = torch.zeros((), dtype=torch.float64)
            if self.is_main or is_sharded(self.model):
                with unsharded_root(self.model):
                    spread += self.collapse.spread()
            self._stop_if(self.collapse.problem(float(self._from_main(spread))), step)

    def _stop_if(self, problem: str | None, step: int) -> None:
        if problem is not None:
            raise Diverged(problem, step=step, lr=self.args.learning_rate)

    def evaluate(self) -> dict[str, float]:
        """Score the dev data on rank 0, or on all ranks if the model is sharded; all get the scores."""
        if self.evaluate_dev is None:
            return {}
        self._check(self.state.global_step)
        with self.clock.paused():
            self.model.eval()
            scores = torch.zeros(len(self.dev_metrics), dtype=torch.float64)
            if self.is_main or is_sharded(self.model):
                with self.average.applied(self.model), unsharded_root(self.model):
                    scores += torch.tensor(self.evaluate_dev(), dtype=torch.float64)
            values = self._from_main(scores).tolist()
            metrics = {f"eval_{name}": value for name, value in zip(self.dev_metrics, values, strict=True)}
            self.log(metrics)
            self._call("on_evaluate", metrics=metrics)
        self._keep_best(values[0])
        return metrics

    def _from_main(self, value: Tensor) -> Tensor:
        if not is_distributed():
            return value
        value = value.to(self.args.device)
        torch.distributed.broadcast(value, src=0)
        return value.cpu()

    def _keep_best(self, score: float) -> None:
        state = self.state
        if state.best_metric is None:
            state.best_metric = -math.inf
        if score > state.best_metric:
            state.best_metric, state.best_global_step = score, state.global_step
            self.best = copy_weights(self.average.chosen(self.model) or trained_weights(self.model))

    # Checkpoints

    def _save_checkpoint(self) -> None:
        if self.control.should_training_stop:
            return  # the finished model is saved next
        step, main = self.state.global_step, self.is_main
        self._check(step)
        with self.clock.paused():
            with checkpoint_folder(self.work, step, main=main) as partial:
                self._write_states(partial / f"checkpoint-{step}")
                best, mean = (
                    weights and gather_weights(weights, main=main)
                    for weights in (self.best, self.average.mean)
                )
                if main:
                    pending, seconds = self.losses.pending(), self.clock.seconds
                    write_extras(partial, best, mean, seconds=seconds, name=self.name, losses=pending)
            self._sound = newest_checkpoint(self.work)

    def _write_states(self, folder: Path) -> None:
        main = self.is_main
        folder.mkdir(parents=True, exist_ok=True)  # each rank writes its random state
        weights = gather_weights(trained_weights(self.model), main=main)
        parts = (self.model, self.optimizer, self.lr_scheduler, self.accelerator.scaler)
        save_optimiser(*parts, folder, main=main)
        save_random_state(folder, self.args)
        if main:
            weights = {name: weight.contiguous() for name, weight in weights.items()}
            save_file(weights, folder / _WEIGHTS)
            save_history(folder, self.state, self.callbacks)

    def _restore(self, resume: Checkpoint) -> None:
        """Restore a checkpoint except for the optimiser, which is created later."""
        check_state_files(resume.trainer_folder)
        self.best, self.clock = resume.best(), Stopwatch(resume.seconds())
        self.name = resume.name() or self.name
        self.losses.restore(resume.losses(), self.args.device)
        own = trained_weights(self.model)
        if self.best is not None and is_sharded(self.model):
            self.best = {name: shard_like(weight, own[name]) for name, weight in self.best.items()}
        if (mean := resume.average()) is not None:
            self.average.mean = {name: shard_like(weight, own[name]) for name, weight in mean.items()}
        path = resume.trainer_folder / _WEIGHTS
        restore_weights(self.model, load_file(path), path)
        if not is_sharded(self.model):  # parts of a sharded model can't run before the whole
            self._check(resume.step)
            self._sound = resume
        self.state = self._state(load_history(resume.trainer_folder, self.callbacks))
