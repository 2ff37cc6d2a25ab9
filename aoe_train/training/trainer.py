"""The training loop, on accelerate: planned batches go in, the best weights are left in the model."""

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
from transformers.utils.logging import set_verbosity

from aoe_train.data.examples import Say, silent
from aoe_train.model.device import upload_batch
from aoe_train.training.arguments import METRIC, make_accelerator, wrap
from aoe_train.training.callbacks import Reports, Stopwatch, new_name, report_callbacks
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

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainingArguments

    from aoe_train.data.batches import PlannedLoader
    from aoe_train.training.callbacks import WeightAverage
    from aoe_train.training.loss_log import CollapseCheck
    from aoe_train.training.pair_model import PairModel


Evaluate = Callable[[], Sequence[float]]
_WEIGHTS = "model.safetensors"
# What a callback asks for holds until the loop comes to the next of these events.
_RESET = {
    "on_train_begin": ["should_training_stop"],
    "on_epoch_begin": ["should_epoch_stop"],
    "on_step_begin": ["should_log", "should_evaluate", "should_save"],
    "on_log": ["should_log"],
    "on_evaluate": ["should_evaluate"],
    "on_save": ["should_save"],
}


class PairTrainer:
    """Trains a PairModel on batches that are already planned, and keeps the best weights.

    Callbacks are those of transformers: each event has the arguments that its `Trainer` gives.

    * Batches come from the plan as they are: accelerate would share them out among the ranks once more.
    * A run that has diverged ends (`divergence`).
    * Evaluation calls `evaluate_dev` on rank 0 and sends its figures to the others: one for each of
      `dev_sets` after the one that chooses the best weights. All ranks evaluate a sharded model together.
    * The weights that `average` chooses, such as the mean so far, are evaluated and kept.
    * The log has the parts of each of `datasets` under its name, if there are several.
    * The best weights stay in memory (whole ones in the host's) and are written with each checkpoint. So
      evaluating costs no writing, and one folder holds all that a killed run needs.
    * A checkpoint holds the weights that learn, and is whole or absent.
    * Time spent on evaluation and checkpoints is not counted as training.
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
    ) -> None:
        (enable_full_determinism if args.full_determinism else set_seed)(args.seed)
        set_verbosity(args.get_process_log_level())  # type: ignore[no-untyped-call]
        self.model, self.args, self.batches, self.work = model, args, batches, work
        if not is_sharded(model):
            model.to(args.device)
        self.accelerator = make_accelerator(args)
        reporting = report_callbacks(args.report_to)
        self.callbacks: list[TrainerCallback] = [DefaultFlowCallback(), *reporting, average, *callbacks]
        self.reports = Reports(self.callbacks, args, work)
        self.name = new_name(work)
        self.evaluate_dev = evaluate_dev
        self.dev_figures = [METRIC, *(f"{METRIC}.{name}" for name in dev_sets)]
        self.datasets, self.average, self.collapse = datasets, average, collapse
        self.losses = LossLog(args.learning_rate)
        self.best: dict[str, Tensor] | None = None
        self.clock = Stopwatch()
        self.is_main = args.process_index == 0
        self.steps_an_epoch = math.ceil(len(batches) / args.gradient_accumulation_steps)
        self.state, self.control = self._state(TrainerState()), TrainerControl()
        self.optimizer: Any = None
        self.lr_scheduler: Any = None
        self._logged = 0  # the step of the last log entry
        self._sound: Checkpoint | None = None  # the newest that was seen not to have diverged
        self._call("on_init_end")

    def _state(self, state: TrainerState) -> TrainerState:
        """A new state, or that of a checkpoint, as this run has it."""
        args = self.args
        if not state.global_step:
            state.logging_steps, state.eval_steps = int(args.logging_steps), int(args.eval_steps or 1)
        state.max_steps = math.ceil(args.num_train_epochs * self.steps_an_epoch)
        state.num_train_epochs = math.ceil(args.num_train_epochs)
        state.train_batch_size = args.per_device_train_batch_size
        state.is_world_process_zero, state.is_local_process_zero = self.is_main, args.local_process_index == 0
        return state

    def fit(self, resume: Checkpoint | None = None, say: Say = silent) -> None:
        """Train to the end, and leave the best weights in the model if there is dev data."""
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
        """Put weights from before the run diverged into the model, and name them; None if there are none.

        They are the best ones, or those of the newest checkpoint. All processes must call it.
        """
        if self.best is not None:
            step, found = self.state.best_global_step, "the best weights"
            restore_weights(self.model, self.best, self.work)
        elif self._sound is not None:
            step, found = self._sound.step, "the weights"
            path = self._sound.trainer_folder / _WEIGHTS
            restore_weights(self.model, load_file(path), path)
        else:
            return None
        unshard(self.model)
        return f"{found} of step {step:,}" if step else found

    # The loop

    def _run(self, wrapped: nn.Module, resume: Checkpoint | None) -> None:
        self._logged = first = self.state.global_step
        wrapped.zero_grad()
        begun = time.perf_counter()
        self._call("on_train_begin")
        for epoch in range(first // self.steps_an_epoch, self.state.num_train_epochs):
            self._call("on_epoch_begin")
            with self.clock.running():
                self._epoch(wrapped, epoch, resume)
            resume = None
            if self.control.should_training_stop:
                break
        runtime, steps = time.perf_counter() - begun, self.state.global_step - first
        self.log({"train_runtime": runtime, "train_steps_per_second": steps / runtime})
        self._call("on_train_end")

    def _epoch(self, wrapped: nn.Module, epoch: int, resume: Checkpoint | None) -> None:
        """The steps of an epoch, or the rest of them; random numbers go on where the checkpoint left them."""
        accumulation, count = self.args.gradient_accumulation_steps, len(self.batches)
        done = self.state.global_step % self.steps_an_epoch if resume is not None else 0
        if resume is not None and not done:
            load_random_state(resume.trainer_folder, self.args)
        self.batches.set_epoch(epoch)
        coming = iter(skip_first_batches(self.batches, done * accumulation) if done else self.batches)
        for step in range(done, self.steps_an_epoch):
            group = list(islice(coming, accumulation))
            if resume is not None and step == done != 0:  # beginning an epoch draws a number
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
        """One step of the optimiser over some batches: the norm of the gradient, and the learning rate."""
        self._call("on_step_begin")
        for inputs in group[:-1]:
            # Gradients of a sharded model add up as shards: whole ones would take a whole model's memory.
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
        """Forward and backward pass of one of the `batches` of a step."""
        wrapped.train()
        # Sent from pinned memory while the device still computes.
        inputs = upload_batch(inputs, self.args.device)
        rows, dataset = inputs.pop("numbers"), inputs.get("dataset")
        parts = wrapped(**inputs)
        name = None if dataset is None else self.datasets[dataset]
        self.losses.add(parts, rows, self.state.global_step, name)
        del inputs
        empty = self.args.torch_empty_cache_steps
        if empty is not None and self.state.global_step % empty == 0:
            clear_device_cache()
        self.accelerator.backward(parts["loss"] / batches)

    def clip_gradients(self, wrapped: nn.Module) -> Tensor:
        """Clip the gradient to `max_grad_norm`; its norm before that."""
        norm: Any = self.accelerator.clip_grad_norm_(wrapped.parameters(), self.args.max_grad_norm)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[no-any-return]

    def _call(self, event: str, **seen: Any) -> None:
        """Let all callbacks hear of an event."""
        for flag in _RESET.get(event, ()):
            setattr(self.control, flag, False)
        for callback in self.callbacks:
            found = getattr(callback, event)(
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
            self.control = self.control if found is None else found

    # Log and evaluation

    def _log_evaluate_save(self, norm: Tensor | None, lr: float) -> None:
        """What callbacks asked for."""
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
        """Note an entry, and end a run whose gradient shows that it diverged."""
        logs["epoch"] = self.state.epoch or 0.0
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self._call("on_log", logs=logs)
        # Under fp16's loss scaling, a gradient beyond its range is skipped and means nothing.
        norms = [] if self.args.fp16 else [entry.get("grad_norm") for entry in self.state.log_history]
        self._stop_if(gradient_problem([norm for norm in norms if norm is not None]), self.state.global_step)

    def _check(self, step: int) -> None:
        """Look for all signs of divergence that the steps so far may have left; all ranks alike."""
        self.losses.check()
        with self.clock.paused():
            found = torch.zeros((), dtype=torch.float64)
            if self.is_main or is_sharded(self.model):
                with unsharded_root(self.model):
                    found += self.collapse.spread()
            self._stop_if(self.collapse.problem(float(self._from_main(found))), step)

    def _stop_if(self, problem: str | None, step: int) -> None:
        if problem is not None:
            raise Diverged(problem, step=step, lr=self.args.learning_rate)

    def evaluate(self) -> dict[str, float]:
        """Score the dev data on rank 0, or, if the model is sharded, on all ranks; all get the figures."""
        if self.evaluate_dev is None:
            return {}
        self._check(self.state.global_step)
        with self.clock.paused():
            self.model.eval()
            scores = torch.zeros(len(self.dev_figures), dtype=torch.float64)
            if self.is_main or is_sharded(self.model):
                with self.average.applied(self.model), unsharded_root(self.model):
                    scores += torch.tensor(self.evaluate_dev(), dtype=torch.float64)
            found = self._from_main(scores).tolist()
            metrics = {f"eval_{name}": score for name, score in zip(self.dev_figures, found, strict=True)}
            self.log(metrics)
            self._call("on_evaluate", metrics=metrics)
        self._keep_best(found[0])
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
            return  # the model itself comes next
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
        """Take up all that a checkpoint has but the optimiser, which is made later."""
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
        if not is_sharded(self.model):  # whose parts can't run by themselves yet
            self._check(resume.step)
            self._sound = resume
        self.state = self._state(load_history(resume.trainer_folder, self.callbacks))
