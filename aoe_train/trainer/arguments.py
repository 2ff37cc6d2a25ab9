"""Our settings in the words of transformers."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from aoe_train.precision import choose_precision
from aoe_train.trainer.trainer import METRIC
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.settings import TrainSettings

# Ours to decide: a further argument that changed one of them would go behind the back of what was checked.
_OURS = {
    *("output_dir", "seed", "full_determinism", "num_train_epochs", "max_steps", "learning_rate"),
    *("lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm", "bf16", "fp16", "torch_compile"),
    *("per_device_train_batch_size", "gradient_accumulation_steps", "auto_find_batch_size"),
    *("save_strategy", "eval_strategy", "load_best_model_at_end", "metric_for_best_model"),
    *("logging_steps", "logging_nan_inf_filter", "report_to", "restore_callback_states_from_checkpoint"),
}


def start_processes(settings: TrainSettings, work: Path) -> TrainingArguments:
    """The arguments without those that need the data; joins the process group where there is one.

    Raises:
        ConfigError: an argument under `run.trainer` that transformers doesn't know, refuses, or that is ours.
    """
    from transformers import TrainingArguments

    optim, run, log = settings.optim, settings.run, settings.log
    further = _further(run.trainer)
    try:
        return TrainingArguments(
            **{
                "output_dir": str(work),
                "seed": settings.seed,
                "full_determinism": run.deterministic,
                "per_device_train_batch_size": optim.batch_size,
                "gradient_accumulation_steps": optim.accumulation,
                "num_train_epochs": optim.epochs,
                "learning_rate": optim.lr,
                "lr_scheduler_type": optim.scheduler,
                "warmup_steps": optim.warmup,
                "weight_decay": optim.weight_decay,
                "max_grad_norm": optim.max_grad_norm,
                "optim": "adamw_torch_fused",
                "torch_compile": run.compile,
                "use_cpu": not torch.accelerator.is_available(),  # else accelerate joins no group on CPUs
                "logging_steps": log.steps,
                "logging_nan_inf_filter": False,  # it would wait for each step's loss; see Ledger
                "report_to": list(log.report_to) or "none",
                "save_strategy": "no",  # PaceCallback decides
                "restore_callback_states_from_checkpoint": True,
                "remove_unused_columns": False,
                "ddp_find_unused_parameters": False,  # loading freezes what no text goes through
                "disable_tqdm": True,
                "log_level": "error",
                **further,
            }
        )
    except (ValueError, ImportError) as error:
        raise ConfigError(f"transformers refuses these settings: {error}") from error


def set_precision(args: TrainingArguments, settings: TrainSettings) -> None:
    """Add what depends on the device."""
    precision = choose_precision(settings.run.precision, args.device)
    args.bf16, args.fp16 = precision == "bf16", precision == "fp16"
    args.mixed_precision = "no" if precision == "fp32" else precision


def set_evaluation(args: TrainingArguments, settings: TrainSettings, batches: int, *, evaluate: bool) -> None:
    """Add what depends on the data: when to evaluate.

    Args:
        args: To be changed.
        settings: The run's.
        batches: Batches of an epoch.
        evaluate: Whether there is dev data.
    """
    if evaluate:
        steps = math.ceil(batches / settings.optim.accumulation)
        every = max(1, math.ceil(steps / settings.optim.evaluations))
        args.set_evaluate(strategy="steps", steps=every, delay=0)
        args.metric_for_best_model, args.greater_is_better = METRIC, True


def _further(given: dict[str, Any]) -> dict[str, Any]:
    from transformers import TrainingArguments

    known = {field.name for field in fields(TrainingArguments) if field.init} - _OURS
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ConfigError(
            f"run.trainer.{unknown[0]}: no TrainingArguments of transformers has it, or it is set elsewhere"
        )
    return given
