"""The parts and the state of a training loop: optimiser, callbacks, and what is done between steps."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import (  # type: ignore[import-untyped]
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    TorchDynamoPlugin,
)
from torch import Tensor, nn
from transformers import Trainer, TrainerControl, TrainerState, get_scheduler

from aoe_train.model.device import upload_batch
from aoe_train.training.monitoring import (
    Diverged,
    LossLog,
    gradient_problem,
)
from aoe_train.training.processes import (
    copy_weights,
    is_main,
    is_sharded,
    on_main,
    trained_weights,
    unsharded_root,
)
from aoe_train.training.step_graphs import make_step_graphs
from aoe_train.training.training_arguments import METRIC
from pairkit.base.cli.progress import Progress
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import TrainerCallback, TrainingArguments
    from transformers.trainer_callback import CallbackHandler

    from aoe_train.training.build import Built
    from aoe_train.training.callbacks import SavePolicy, Stopwatch, WeightAverage
    from aoe_train.training.monitoring import Baseline


# Weights without weight decay.
_NO_DECAY = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)")


class OptimiserStep:
    """The model with its optimiser and schedule; batches are already split among the ranks."""

    def __init__(self, built: Built, losses: LossLog, steps: int) -> None:
        self.model = built.model
        self._args = built.args
        self._losses = losses
        self._datasets = [dataset.name for dataset in built.datasets]
        self._graphs = make_step_graphs(built)
        self.accelerator = _make_accelerator(built.args)
        self._wrapped, self.optimiser = _wrap_model(
            self.model, self.accelerator, built.args
        )
        options: Any = self._args.lr_scheduler_kwargs
        with _rejections("lr_scheduler_kwargs"):
            self.schedule = get_scheduler(
                self._args.lr_scheduler_type,
                self.optimiser,
                self._args.get_warmup_steps(steps),
                steps,
                options,
            )
        self._wrapped.zero_grad()

    def no_sync(self) -> AbstractContextManager[object]:
        """Add gradients up without exchanging them; sharded ones would then take a whole model's memory."""
        if is_sharded(self.model):
            return nullcontext()
        return self.accelerator.no_sync(self._wrapped)  # type: ignore[no-any-return]

    def backward(self, inputs: dict[str, Any], step: int, batches: int) -> None:
        """Add the gradient of one of the `batches` of a step, and its losses to the log.

        Takes `numbers` out of `inputs`.
        """
        self._wrapped.train()
        row_numbers = inputs.pop("numbers")
        dataset_number = inputs.get("dataset")
        dataset = None if dataset_number is None else self._datasets[dataset_number]
        losses = None if self._graphs is None else self._graphs(inputs)
        if losses is not None:
            self._losses.add(losses, row_numbers, step, dataset)
            return
        # The copies overlap with the device's work on the previous batch.
        inputs = upload_batch(inputs, self._args.device)
        losses = self._wrapped(**inputs)
        self._losses.add(losses, row_numbers, step, dataset)
        del inputs
        self.accelerator.backward(losses["loss"] / batches)

    def clip(self) -> Tensor | None:
        """Clip the gradient, and return its norm before; None if the run doesn't clip."""
        if self._args.max_grad_norm <= 0:
            return None
        weights = self._wrapped.parameters()
        norm: Any = self.accelerator.clip_grad_norm_(weights, self._args.max_grad_norm)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[no-any-return]

    def advance(self) -> float:
        """Advance the schedule after an update, and return the update's learning rate."""
        lr, *_ = self.schedule.get_last_lr()
        if not self.accelerator.optimizer_step_was_skipped:
            self.schedule.step()
        self._wrapped.zero_grad()
        return float(lr)


@contextmanager
def _rejections(option: str) -> Iterator[None]:
    """Raise ConfigError for errors of transformers and torch about values of `run.trainer`."""
    try:
        yield
    except (ImportError, TypeError, ValueError) as error:
        raise ConfigError(
            f"run.trainer.{option} or an option for it isn't usable ({one_line(str(error), 100)}); correct it"
        ) from error


def _make_optimiser(model: nn.Module, args: TrainingArguments) -> torch.optim.Optimizer:
    """The optimiser; biases and norms have no weight decay, as in transformers' Trainer."""
    decaying: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        owner = model.get_submodule(name.rpartition(".")[0])
        if isinstance(owner, nn.LayerNorm) or _NO_DECAY.search(name.lower()):
            others.append(weight)
        else:
            decaying.append(weight)
    groups = [
        {"params": decaying, "weight_decay": args.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    with _rejections("optim"):
        kind, options = Trainer.get_optimizer_cls_and_kwargs(args)
        optimiser: torch.optim.Optimizer = kind(groups, **options)
    if "bitsandbytes" in str(kind) and options.get("optim_bits") == 8:
        import bitsandbytes  # type: ignore[import-not-found]

        manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
        for module in model.modules():  # 8 bits are too coarse for embeddings
            if isinstance(module, nn.Embedding):
                manager.register_module_override(module, "weight", {"optim_bits": 32})
    return optimiser


def _wrap_model(
    model: nn.Module, accelerator: Accelerator, args: TrainingArguments
) -> tuple[nn.Module, Any]:
    """The model, prepared for precision and processes, and its optimiser."""
    optimiser = _make_optimiser(model, args)
    with warnings.catch_warnings():
        # accelerate sets this option, so its deprecation is not the user's concern.
        warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)
        if not is_sharded(model):
            wrapped, prepared = accelerator.prepare(model, optimiser)
            return wrapped, prepared
        # A sharded model gathers weights and gradients itself.
        wrapped = accelerator.prepare_model(
            model, device_placement=False, evaluation_mode=True
        )
        return wrapped, accelerator.prepare(optimiser)


def _make_accelerator(args: TrainingArguments) -> Accelerator:
    """The accelerator with a run's precision, DDP options and compiler."""
    ddp = DistributedDataParallelKwargs(
        find_unused_parameters=args.ddp_find_unused_parameters,
        broadcast_buffers=args.ddp_broadcast_buffers,
    )
    dynamo = TorchDynamoPlugin(
        backend=args.torch_compile_backend, mode=args.torch_compile_mode
    )
    our_loop_accumulates = GradientAccumulationPlugin(num_steps=1)
    return Accelerator(
        mixed_precision=args.mixed_precision,
        gradient_accumulation_plugin=our_loop_accumulates,
        dynamo_plugin=dynamo,
        kwargs_handlers=[ddp],
    )


class Events:
    """Calls transformers callbacks, as its `Trainer` does, and collects their requests."""

    def __init__(
        self, handler: CallbackHandler, args: TrainingArguments, state: TrainerState
    ) -> None:
        self.callbacks: Sequence[TrainerCallback] = handler.callbacks
        self.state = state
        self.control = TrainerControl()
        self._handler = handler
        self._args = args

    def __call__(self, event: str, **seen: Any) -> None:
        """Call all callbacks for an event."""
        call = getattr(self._handler, event)
        self.control = call(self._args, self.state, self.control, **seen)


@dataclass
class TrainingRun:
    """The parts of a training loop, and what a checkpoint stores beside their states."""

    built: Built
    step: OptimiserStep
    events: Events
    policy: SavePolicy
    average: WeightAverage  # the weights to evaluate and keep
    losses: LossLog  # not logged yet
    baseline: Baseline
    clock: Stopwatch  # training time without evaluation and checkpoints
    name: str  # in reports
    # The best weights, in memory, so that an evaluation writes nothing.
    best: dict[str, Tensor] | None = None
    sound: Path | None = None  # the newest checkpoint that has not diverged
    # The state of a checkpoint, with which the next epoch starts.
    random_state: dict[str, Any] | None = None
    logged: int = 0  # step of the last log entry
    ended: bool = False  # whether the model has the weights to save
    _notes: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> TrainerState:
        """Steps, log and best score."""
        return self.events.state

    def after_step(self) -> None:
        """Average the weights, and request what is due: a last log entry, a checkpoint."""
        state = self.state
        control = self.events.control
        device = self.built.args.device
        self.average.add(self.built.model, state.global_step, state.max_steps)
        control.should_log |= state.global_step >= state.max_steps
        control.should_save |= self.policy.saves(
            state.global_step, device, logs=control.should_log
        )
        if not control.should_log:
            self.show()

    def show(self, *, ended: bool = False) -> None:
        """Show the progress, with the newest loss and dev score."""
        note = ", ".join(self._notes.values())
        state = self.state
        progress = Progress(
            "train", state.global_step, state.max_steps, note, ended=ended
        )
        self.built.loaded.process.show(progress)

    def log_losses(self, norm: Tensor | None, lr: float) -> None:
        """Log the mean losses since the last entry."""
        if self.state.global_step == self.logged:
            return
        self.logged = self.state.global_step
        losses = self.losses.drain()
        norms = {} if norm is None else {"grad_norm": float(norm)}
        self.log({"loss": losses["loss"], **norms, "learning_rate": lr, **losses})

    def log(self, logs: dict[str, float]) -> None:
        """Add a log entry; raises Diverged if the gradient shows divergence."""
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
            metrics = dict[str, float]()
            if is_main() or is_sharded(model):
                with self.average.applied(model), unsharded_root(model):
                    metrics = score().log_entry(deciding)
            metrics = on_main(lambda: metrics)
            self.log(metrics)
            self.events("on_evaluate", metrics=metrics)
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
        model = self.built.model
        collapse = self.baseline.collapse
        with self.clock.paused():
            spread = 0.0
            if is_main() or is_sharded(model):
                with unsharded_root(model):
                    spread = collapse.spread()
            self._raise_if_diverged(collapse.problem(on_main(lambda: spread)))

    def _raise_if_diverged(self, problem: str | None) -> None:
        if problem is not None:
            raise Diverged.at(
                self.state.global_step, problem, lr=self.built.args.learning_rate
            )
