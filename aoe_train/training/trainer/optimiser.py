"""Accelerate, the optimiser and its schedule, as the arguments name them."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import (  # type: ignore[import-untyped]
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    TorchDynamoPlugin,
)
from torch import nn
from transformers import Trainer, get_scheduler

from aoe_train.training.trainer.sharding import is_sharded

if TYPE_CHECKING:
    from transformers import TrainingArguments

_NO_DECAY = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)")


def make_optimiser(model: nn.Module, args: TrainingArguments) -> torch.optim.Optimizer:
    """The optimiser; biases and the weights of norms don't decay, as with transformers' Trainer."""
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
        for module in model.modules():  # 8 bits are too few for embeddings
            if isinstance(module, nn.Embedding):
                manager.register_module_override(module, "weight", {"optim_bits": 32})
    return optimiser


class Wrapped(NamedTuple):
    """What accelerate makes of a model and its optimiser."""

    model: nn.Module
    optimiser: Any
    schedule: Any


def wrap(model: nn.Module, accelerator: Accelerator, args: TrainingArguments, steps: int) -> Wrapped:
    """The model with the run's precision and processes around it, and what moves its weights."""
    optimiser = make_optimiser(model, args)
    wrapped: nn.Module
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)  # accelerate's to change
        if is_sharded(model):  # which gathers its weights and gradients itself
            wrapped = accelerator.prepare_model(model, device_placement=False, evaluation_mode=True)
            optimiser = accelerator.prepare(optimiser)
        else:
            wrapped, optimiser = accelerator.prepare(model, optimiser)
    options: Any = args.lr_scheduler_kwargs
    schedule = get_scheduler(
        args.lr_scheduler_type,
        optimizer=optimiser,
        num_warmup_steps=args.get_warmup_steps(steps),
        num_training_steps=steps,
        scheduler_specific_kwargs=options,
    )
    return Wrapped(wrapped, optimiser, schedule)


def make_accelerator(args: TrainingArguments) -> Accelerator:
    """Accelerate for the processes, the precision and the compiler of a run."""
    ddp: dict[str, Any] = {
        "find_unused_parameters": args.ddp_find_unused_parameters,
        "broadcast_buffers": args.ddp_broadcast_buffers,
    }
    if args.ddp_bucket_cap_mb is not None:
        ddp["bucket_cap_mb"] = args.ddp_bucket_cap_mb
    return Accelerator(
        mixed_precision=args.mixed_precision,
        gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),  # the loop adds up itself
        dynamo_plugin=TorchDynamoPlugin(backend=args.torch_compile_backend, mode=args.torch_compile_mode),
        kwargs_handlers=[DistributedDataParallelKwargs(**ddp)],
    )
