"""One step of the optimiser: gradients of a group of batches, clipping, and the update."""

from __future__ import annotations

import re
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import (  # type: ignore[import-untyped]
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    TorchDynamoPlugin,
)
from accelerate.utils.memory import clear_device_cache  # type: ignore[import-untyped]
from torch import nn
from transformers import Trainer, get_scheduler

from aoe_train.model.device import upload_batch
from aoe_train.training.processes import is_sharded
from aoe_train.training.step_graphs import make_step_graphs

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import TrainingArguments

    from aoe_train.training.build import Built
    from aoe_train.training.loss_log import LossLog


class OptimiserStep:
    """The model with its optimiser and schedule, in the run's precision and processes.

    The batches are already split among the ranks, so accelerate doesn't prepare the loader.
    """

    def __init__(self, built: Built, losses: LossLog, steps: int) -> None:
        self.model, self._args, self._losses = built.model, built.args, losses
        self._datasets = [dataset.name for dataset in built.datasets]
        self._graphs = make_step_graphs(built)
        self.accelerator = _accelerator(built.args)
        self._wrapped, self.optimiser = _wrapped(self.model, self.accelerator, built.args)
        options: Any = self._args.lr_scheduler_kwargs
        self.schedule = get_scheduler(
            self._args.lr_scheduler_type,
            optimizer=self.optimiser,
            num_warmup_steps=self._args.get_warmup_steps(steps),
            num_training_steps=steps,
            scheduler_specific_kwargs=options,
        )
        self._wrapped.zero_grad()

    def no_sync(self) -> AbstractContextManager[object]:
        """Add gradients up without exchanging them; sharded ones would then take a whole model's memory."""
        context: AbstractContextManager[object] = (
            nullcontext() if is_sharded(self.model) else self.accelerator.no_sync(self._wrapped)
        )
        return context

    def backward(self, inputs: dict[str, Any], step: int, batches: int) -> None:
        """Add the gradient of one of the `batches` of a step, and its losses to the log."""
        self._wrapped.train()
        rows, dataset = inputs.pop("numbers"), inputs.get("dataset")
        if self._graphs is not None and (parts := self._graphs(inputs)) is not None:
            self._losses.add(parts, rows, step)
            return
        inputs = upload_batch(inputs, self._args.device)  # while the device still computes
        parts = self._wrapped(**inputs)
        self._losses.add(parts, rows, step, None if dataset is None else self._datasets[dataset])
        del inputs
        empty = self._args.torch_empty_cache_steps
        if empty is not None and step % empty == 0:
            clear_device_cache()
        self.accelerator.backward(parts["loss"] / batches)

    def clip(self) -> Tensor | None:
        """Clip the gradient, and return its norm before; None if the run doesn't clip."""
        if self._args.max_grad_norm <= 0:
            return None
        norm: Any = self.accelerator.clip_grad_norm_(self._wrapped.parameters(), self._args.max_grad_norm)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[no-any-return]

    def advance(self) -> float:
        """Advance the schedule after an update, and return the update's learning rate."""
        lr = float(self.schedule.get_last_lr()[0])
        if not self.accelerator.optimizer_step_was_skipped:
            self.schedule.step()
        self._wrapped.zero_grad()
        return lr


_NO_DECAY = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)")


def _optimiser(model: nn.Module, args: TrainingArguments) -> torch.optim.Optimizer:
    """The optimiser; biases and norms have no weight decay, as in transformers' Trainer."""
    norms = {name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)}
    decaying: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            decays = name.rpartition(".")[0] not in norms and not _NO_DECAY.search(name.lower())
            (decaying if decays else others).append(weight)
    kind, options = Trainer.get_optimizer_cls_and_kwargs(args)
    groups = [
        {"params": decaying, "weight_decay": args.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimiser: torch.optim.Optimizer = kind(groups, **options)
    if "bitsandbytes" in str(kind) and options.get("optim_bits") == 8:
        import bitsandbytes  # type: ignore[import-not-found]

        manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
        for module in model.modules():  # 8 bits are too coarse for embeddings
            if isinstance(module, nn.Embedding):
                manager.register_module_override(module, "weight", {"optim_bits": 32})
    return optimiser


def _wrapped(model: nn.Module, accelerator: Accelerator, args: TrainingArguments) -> tuple[nn.Module, Any]:
    """The model, prepared for precision and processes, and its optimiser."""
    optimiser = _optimiser(model, args)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)  # a matter for accelerate
        if not is_sharded(model):
            wrapped, prepared = accelerator.prepare(model, optimiser)
            return wrapped, prepared
        # It gathers weights and gradients itself.
        wrapped = accelerator.prepare_model(model, device_placement=False, evaluation_mode=True)
        return wrapped, accelerator.prepare(optimiser)


def _accelerator(args: TrainingArguments) -> Accelerator:
    """The accelerator with a run's precision, DDP options and compiler."""
    ddp: dict[str, Any] = {
        "find_unused_parameters": args.ddp_find_unused_parameters,
        "broadcast_buffers": args.ddp_broadcast_buffers,
    }
    if args.ddp_bucket_cap_mb is not None:
        ddp["bucket_cap_mb"] = args.ddp_bucket_cap_mb
    return Accelerator(
        mixed_precision=args.mixed_precision,
        gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),  # our loop accumulates
        dynamo_plugin=TorchDynamoPlugin(backend=args.torch_compile_backend, mode=args.torch_compile_mode),
        kwargs_handlers=[DistributedDataParallelKwargs(**ddp)],
    )
