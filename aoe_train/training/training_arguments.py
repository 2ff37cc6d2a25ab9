"""The `TrainingArguments` of transformers from settings, and the optimiser and accelerator that they configure."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import (  # type: ignore[import-untyped]
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    TorchDynamoPlugin,
)
from torch import Tensor, nn
from transformers import get_scheduler
from transformers.integrations.integration_utils import (
    get_available_reporting_integrations,
    get_reporting_integration_callbacks,
)
from transformers.trainer_pt_utils import get_parameter_names

from aoe_train.model.device import upload_batch
from aoe_train.training.processes import exit_cleanly, is_sharded
from aoe_train.training.step_graphs import make_step_graphs
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.data.examples import Say
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.build import Built
    from aoe_train.training.load import Loaded
    from aoe_train.training.monitoring import LossLog
    from pairkit.base.cli.progress import Listener


PROJECT = "aoe"  # the trackers' project for all runs
METRIC = "dev"  # the score that chooses the best weights
# TrainingArguments that users can set. Others are settings of ours, or have no effect in our loop.
_PASSED_ON = {
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "ddp_backend",
    "ddp_timeout",
    "logging_first_step",
    "lr_scheduler_kwargs",
    "optim",
    "optim_args",
    "project",
    "run_name",
    "tf32",
}
_SHARDING_LAUNCHED = (
    "ACCELERATE_USE_FSDP",
    "ACCELERATE_USE_DEEPSPEED",
    "ACCELERATE_USE_PARALLELISM_CONFIG",
)
# Optimisers that support sharded weights.
_SHARDED_OPTIMISERS = ("adamw_torch", "adamw_torch_fused")
# First words of the optimisers that need no more arguments than a name.
_OPTIMISERS = ("adamw", "adafactor", "sgd", "adagrad", "rmsprop")
# Schedules that depend on scores, which our loop doesn't pass to them.
_SCORED_SCHEDULES = ("greedy", "reduce_lr_on_plateau")
# Weights without weight decay.
_NO_DECAY = [r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)"]


@dataclass(frozen=True)
class Process:
    """One process of a run."""

    args: TrainingArguments  # without those that `completed` adds
    work: Path
    say: Say  # on rank 0 only
    show: Listener
    start: float = field(default_factory=time.perf_counter)


def start_processes(settings: TrainSettings, work: Path) -> TrainingArguments:
    """Join the process group, if any, and return the arguments that don't depend on data and model."""
    from transformers import TrainingArguments

    optim = settings.optim
    run = settings.run
    log = settings.log
    for name in _SHARDING_LAUNCHED:
        if os.environ.get(name, "").lower() in ("1", "true", "yes"):
            raise ConfigError(
                f"{name} is set: not supported; use FSDP with --set run.shard=true under torchrun"
            )
    if optim.scheduler in _SCORED_SCHEDULES:
        raise ConfigError(
            f"optim.scheduler {optim.scheduler}: not supported; choose one such as cosine"
        )
    _check_trainer(run.trainer)
    _check_reports(log.report_to)
    if run.deterministic:  # cuBLAS reads this variable at its first product
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    try:
        args = TrainingArguments(
            **{
                "output_dir": str(work),
                "seed": settings.seed,
                "full_determinism": run.deterministic,
                "gradient_accumulation_steps": optim.accumulation,
                "lr_scheduler_type": optim.scheduler,  # refuses unknown names
                "warmup_steps": optim.warmup,
                "weight_decay": optim.weight_decay,
                "max_grad_norm": optim.max_grad_norm,
                "optim": "adamw_torch_fused",
                "torch_compile": run.compile,
                "use_cpu": not torch.accelerator.is_available(),  # or accelerate joins no group on CPUs
                "logging_steps": log.steps,
                "logging_first_step": True,
                "report_to": list(log.report_to) or "none",
                "project": PROJECT,
                "save_strategy": "no",  # TrainingRun decides
                "ddp_find_unused_parameters": False,  # unused weights are frozen at loading
                "ddp_broadcast_buffers": False,  # all processes load the same buffers
                "disable_tqdm": True,
                "log_level": "error",
                **run.trainer,
            }
        )
    except (ValueError, ImportError) as error:
        raise ConfigError(f"transformers rejects these settings: {error}") from error
    _check_shard(settings, args)
    _ = args.device  # joins the process group
    exit_cleanly()
    return args


def idle_processors(args: TrainingArguments) -> str | None:
    """A note if a single process uses one of several GPUs, or was launched as one of several on a CPU."""
    if args.world_size > 1:
        return None
    count = torch.cuda.device_count()
    if count == 0 and "ACCELERATE_MIXED_PRECISION" in os.environ:
        return (
            "one process trains, as `accelerate launch` starts no more on a CPU; for several, start with"
            " `torchrun --nproc-per-node 2`"
        )
    if count < 2:
        return None
    return f"1 of {count} GPUs is used; to use all, start with `torchrun --nproc-per-node {count}`"


def completed(
    loaded: Loaded, *, batches: int, evaluate: bool, find_unused: bool
) -> TrainingArguments:
    """The arguments with those that depend on rows and model; a step may leave weights `find_unused`."""
    from transformers import SchedulerType

    args = copy(loaded.process.args)
    optim = loaded.settings.optim
    precision = loaded.precision
    args.per_device_train_batch_size = optim.batch_size
    args.num_train_epochs = optim.epochs
    args.learning_rate = optim.lr
    args.lr_scheduler_type = SchedulerType(optim.scheduler)
    args.bf16 = precision == "bf16"
    args.fp16 = precision == "fp16"
    args.mixed_precision = "no" if precision == "fp32" else precision
    args.ddp_find_unused_parameters = find_unused
    if evaluate:
        steps = math.ceil(batches / optim.accumulation)
        interval = max(1, math.ceil(steps / optim.evaluations))
        args.set_evaluate(strategy="steps", steps=interval, delay=0)
        args.metric_for_best_model = METRIC
        args.greater_is_better = True
    return args


def autocast(args: TrainingArguments) -> AbstractContextManager[object]:
    """The precision of training."""
    if args.bf16:
        return torch.autocast(args.device.type, torch.bfloat16)
    if args.fp16:
        return torch.autocast(args.device.type, torch.float16)
    return nullcontext()


def evaluation_precision(args: TrainingArguments) -> AbstractContextManager[object]:
    """The precision of evaluation: that in which the finished model will encode, float32 on a CPU."""
    return nullcontext() if args.device.type == "cpu" else autocast(args)


def memory_advice(settings: TrainSettings) -> str:
    """What to change if memory ran out."""
    run = settings.run
    chunk = ""
    if not run.shard:
        chunk = f" --set run.chunk=16 (now {run.chunk or 'off'}; same result) or"
    return (
        f"lower --batch-size (now {settings.optim.batch_size}) or --max-length, or use{chunk} --set"
        " run.gradient_checkpointing=true (slower)"
    )


def _check_shard(settings: TrainSettings, args: TrainingArguments) -> None:
    """Refuse settings that don't work with sharded weights."""
    run = settings.run
    lora = settings.lora
    if not run.shard:
        return
    if args.world_size == 1:
        raise ConfigError(
            "run.shard: needs several processes; start with `torchrun --nproc-per-node 2`"
        )
    unsupported = {
        "run.chunk, as processes may have different numbers of chunks": run.chunk,
        "run.compile": run.compile,
        "lora.four_bit": lora is not None and lora.four_bit,
        f"the optimiser {args.optim}": args.optim not in _SHARDED_OPTIMISERS,
    }
    for option, is_set in unsupported.items():
        if is_set:
            raise ConfigError(
                f"run.shard doesn't support {option}; leave one of them out"
            )


def _check_reports(names: Sequence[str]) -> None:
    """Refuse unknown or uninstalled trackers before anything is loaded."""
    for name in names:
        try:
            get_reporting_integration_callbacks([name])  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise ConfigError(
                f"log.report_to {name!r}: {one_line(str(error), 300)}"
            ) from error
        if name not in get_available_reporting_integrations():  # type: ignore[no-untyped-call]
            raise ConfigError(
                f"log.report_to {name!r}: its package is not installed; pip install {name}"
            )


def _check_trainer(options: dict[str, object]) -> None:
    """Refuse arguments of transformers that have no effect in our loop, or are settings of ours."""
    if unknown := sorted(options.keys() - _PASSED_ON):
        raise ConfigError(
            f"run.trainer.{unknown[0]}: expected one of {', '.join(sorted(_PASSED_ON))}"
        )
    optimiser = str(options.get("optim", _OPTIMISERS[0]))
    if not optimiser.startswith(_OPTIMISERS):
        raise ConfigError(
            f"run.trainer.optim {optimiser!r}: expected a name in transformers that starts with "
            f"{', '.join(_OPTIMISERS)}"
        )


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
        if losses is None:
            # The copies overlap with the device's work on the previous batch.
            losses = self._wrapped(**upload_batch(inputs, self._args.device))
            self.accelerator.backward(losses["loss"] / batches)
        self._losses.add(losses, row_numbers, step, dataset)

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
    from transformers import Trainer  # imports datasets, which a dry run doesn't need

    weights = {
        name: weight
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }
    names = get_parameter_names(model, [nn.LayerNorm], _NO_DECAY)  # type: ignore[no-untyped-call]
    decaying = set(names)
    groups = [
        {
            "params": [weights[name] for name in weights if name in decaying],
            "weight_decay": args.weight_decay,
        },
        {
            "params": [weights[name] for name in weights if name not in decaying],
            "weight_decay": 0.0,
        },
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
