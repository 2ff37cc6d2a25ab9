"""What a checkpoint has beside weights: optimiser, schedule, loss scale, random numbers, history."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState
from transformers.trainer_pt_utils import safe_globals

from aoe_train.training.trainer.sharding import is_sharded

if TYPE_CHECKING or torch.distributed.is_available():
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )

if TYPE_CHECKING:
    from transformers import TrainingArguments

# Named as transformers' Trainer names them.
_OPTIMISER, _SCHEDULE, _SCALER, _HISTORY = "optimizer.pt", "scheduler.pt", "scaler.pt", "trainer_state.json"


def save_optimiser(
    model: nn.Module, optimiser: Any, schedule: Any, scaler: Any, folder: Path, *, main: bool
) -> None:
    """Write the whole state; all processes must call it."""
    if is_sharded(model):
        state = get_optimizer_state_dict(
            model, optimiser.optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
        )
    elif main:
        state = optimiser.state_dict()
    if main:
        torch.save(state, folder / _OPTIMISER)
        torch.save(schedule.state_dict(), folder / _SCHEDULE)
        if scaler is not None:  # fp16's
            torch.save(scaler.state_dict(), folder / _SCALER)


def load_optimiser(model: nn.Module, optimiser: Any, schedule: Any, scaler: Any, folder: Path) -> None:
    """Give each process the state that `save_optimiser` wrote, or its shard; all processes must call it."""
    if scaler is not None:
        scaler.load_state_dict(torch.load(folder / _SCALER, weights_only=True))
    schedule.load_state_dict(torch.load(folder / _SCHEDULE, map_location="cpu", weights_only=True))
    if not is_sharded(model):
        optimiser.load_state_dict(torch.load(folder / _OPTIMISER, map_location="cpu", weights_only=True))
        return
    state = torch.load(folder / _OPTIMISER, map_location="cpu", weights_only=True, mmap=True)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_optimizer_state_dict(model, optimiser.optimizer, state, options=options)


def save_random_state(folder: Path, args: TrainingArguments) -> None:
    """Write where this process's random numbers are."""
    states: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "cpu": torch.random.get_rng_state(),
    }
    if args.device.type != "cpu":
        device = torch.get_device_module(args.device)
        several = args.world_size > 1
        states[args.device.type] = device.get_rng_state_all() if several else device.get_rng_state()
    torch.save(states, _random_file(folder, args))


def load_random_state(folder: Path, args: TrainingArguments) -> None:
    """Go on with the random numbers that `save_random_state` noted."""
    with safe_globals():  # type: ignore[no-untyped-call]
        states = torch.load(_random_file(folder, args), map_location="cpu", weights_only=True)
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.random.set_rng_state(states["cpu"])
    if args.device.type != "cpu":
        device, found = torch.get_device_module(args.device), states[args.device.type]
        (device.set_rng_state_all if isinstance(found, list) else device.set_rng_state)(found)


def _random_file(folder: Path, args: TrainingArguments) -> Path:
    return folder / (f"rng_state_{args.process_index}.pth" if args.world_size > 1 else "rng_state.pth")


def save_history(folder: Path, state: TrainerState, callbacks: Sequence[TrainerCallback]) -> None:
    """Write the log, and what callbacks remember."""
    stateful: Any = [callback for callback in callbacks if isinstance(callback, ExportableState)]
    replace(state, stateful_callbacks=stateful).save_to_json(str(folder / _HISTORY))


def load_history(folder: Path, callbacks: Sequence[TrainerCallback]) -> TrainerState:
    """The state that `save_history` wrote; callbacks remember again."""
    state: TrainerState = TrainerState.load_from_json(str(folder / _HISTORY))
    remembered: Any = state.stateful_callbacks
    for name, saved in remembered.items():
        own = (callback for callback in callbacks if type(callback).__name__ == name)
        for callback, one in zip(own, saved if isinstance(saved, list) else [saved], strict=False):
            for attribute, value in one.get("attributes", {}).items():
                setattr(callback, attribute, value)
    return state
