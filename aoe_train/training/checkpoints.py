"""Checkpoints of a run: folders `step-<n>`, each complete or absent. The newest one suffices to resume.

```
step-120/checkpoint-120/     trained weights, optimiser, schedule, random states, history
step-120/best.safetensors    the best weights so far, with dev data
step-120/average.safetensors the average of the weights so far, if there is one
step-120/clock.json          training time, the run's name in reports, and losses that aren't logged yet
```
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState
from transformers.trainer_pt_utils import safe_globals

from aoe_train.model.folder_checks import read_json
from aoe_train.training.processes import gather_weights, is_sharded, shard_like, wait_for_all
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.system.files import remove, whole_folder, write_json

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.training.training_run import TrainingRun

_PREFIX = "step-"
BEST_FILE = "best.safetensors"
AVERAGE_FILE = "average.safetensors"
CLOCK_FILE = "clock.json"
WEIGHTS_FILE = "model.safetensors"
_REMEDY = "start again with --fresh"


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint."""

    folder: Path

    @property
    def step(self) -> int:
        """Number of optimiser steps done."""
        return int(self.folder.name.removeprefix(_PREFIX))

    @property
    def trainer_folder(self) -> Path:
        """Folder with trained weights, optimiser, schedule, random states and history."""
        return self.folder / f"checkpoint-{self.step}"

    def best(self) -> dict[str, Tensor] | None:
        """The best weights so far; None before the first evaluation."""
        return _load(self.folder / BEST_FILE)

    def average(self) -> dict[str, Tensor] | None:
        """The average of the weights so far, if there is one."""
        return _load(self.folder / AVERAGE_FILE)

    def clock(self) -> dict[str, Any]:
        """The training time so far, the run's name in reports, and the losses that aren't logged yet."""
        clock: dict[str, Any] = read_json(self.folder / CLOCK_FILE, _REMEDY)
        return clock


def check_state_files(folder: Path) -> None:
    """Refuse damaged states, and states with other objects than tensors and numbers; runs no code."""
    for path in sorted(folder.iterdir()):
        try:
            if path.suffix in (".pt", ".pth"):
                with safe_globals():  # type: ignore[no-untyped-call]
                    torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            elif path.suffix == ".safetensors":
                with safe_open(path, framework="pt") as weights:
                    weights.keys()
            elif path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
        except Exception as error:  # torch raises various errors
            reason = f"{type(error).__name__}: {one_line(str(error), 120)}"
            raise DataError(f"can't continue from this file ({reason}); {_REMEDY}", path=path) from error


def newest_checkpoint(work: Path) -> Checkpoint | None:
    """The newest checkpoint, if there is one."""
    folders = [path for path in work.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdecimal()]
    checkpoints = [Checkpoint(path) for path in folders if path.is_dir()]
    return max(checkpoints, key=lambda checkpoint: checkpoint.step, default=None)


@contextmanager
def checkpoint_folder(work: Path, step: int, *, main: bool) -> Iterator[Path]:
    """Yield a temporary folder for all ranks to write to; rank 0 (`main`) then moves it into place.

    Older checkpoints are removed after that.
    """
    folder = work / f"{_PREFIX}{step}"
    if not main:
        wait_for_all()
        yield work / f".{folder.name}.partial"
        wait_for_all()
        return
    with whole_folder(folder) as partial:
        wait_for_all()
        yield partial
        wait_for_all()
    for path in work.glob(f"{_PREFIX}*"):
        if path != folder:
            remove(path)


def _load(path: Path) -> dict[str, Tensor] | None:
    try:
        return load_file(path) if path.exists() else None
    except (OSError, SafetensorError) as error:
        raise DataError(f"not readable ({error}); {_REMEDY}", path=path) from error


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """The trained weights by name; frozen ones come with the backbone."""
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


@torch.no_grad()
def restore_weights(model: nn.Module, weights: dict[str, Tensor], source: Path | str) -> None:
    """Copy `weights` into the model's trained weights."""
    own = trained_weights(model)
    if own.keys() != weights.keys() or any(own[name].shape != weights[name].shape for name in own):
        raise DataError(f"has the weights of another model; {_REMEDY}", path=source)
    for name, weight in own.items():
        weight.copy_(shard_like(weights[name], weight))


if TYPE_CHECKING or torch.distributed.is_available():
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )

# File names of transformers' Trainer.
_OPTIMISER, _SCHEDULE, _SCALER, _HISTORY = "optimizer.pt", "scheduler.pt", "scaler.pt", "trainer_state.json"


def save_optimiser(
    model: nn.Module, optimiser: Any, schedule: Any, scaler: Any, folder: Path, *, main: bool
) -> None:
    """Write optimiser, schedule and scaler; all processes must call it."""
    if is_sharded(model):
        state = get_optimizer_state_dict(
            model, optimiser.optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
        )
    elif main:
        state = optimiser.state_dict()
    if main:
        torch.save(state, folder / _OPTIMISER)
        torch.save(schedule.state_dict(), folder / _SCHEDULE)
        if scaler is not None:  # with fp16
            torch.save(scaler.state_dict(), folder / _SCALER)


def load_optimiser(model: nn.Module, optimiser: Any, schedule: Any, scaler: Any, folder: Path) -> None:
    """Load the state that `save_optimiser` wrote, or its shard; all processes must call it."""
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
    """Write this process's random states."""
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
    """Restore the random states that `save_random_state` wrote."""
    with safe_globals():  # type: ignore[no-untyped-call]
        states = torch.load(_random_file(folder, args), map_location="cpu", weights_only=True)
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.random.set_rng_state(states["cpu"])
    if args.device.type != "cpu":
        device, state = torch.get_device_module(args.device), states[args.device.type]
        (device.set_rng_state_all if isinstance(state, list) else device.set_rng_state)(state)


def _random_file(folder: Path, args: TrainingArguments) -> Path:
    return folder / (f"rng_state_{args.process_index}.pth" if args.world_size > 1 else "rng_state.pth")


def save_history(folder: Path, state: TrainerState, callbacks: Sequence[TrainerCallback]) -> None:
    """Write the log and the callbacks' states."""
    stateful: Any = [callback for callback in callbacks if isinstance(callback, ExportableState)]
    replace(state, stateful_callbacks=stateful).save_to_json(str(folder / _HISTORY))


def load_history(folder: Path, callbacks: Sequence[TrainerCallback]) -> TrainerState:
    """Load the state that `save_history` wrote, and restore the callbacks' states."""
    state: TrainerState = TrainerState.load_from_json(str(folder / _HISTORY))
    states: Any = state.stateful_callbacks
    for name, saved in states.items():
        same_type = (callback for callback in callbacks if type(callback).__name__ == name)
        for callback, each in zip(same_type, saved if isinstance(saved, list) else [saved], strict=False):
            for attribute, value in each.get("attributes", {}).items():
                setattr(callback, attribute, value)
    return state


def save_run(run: TrainingRun) -> None:
    """Write a checkpoint of a run; all processes must call it."""
    run.check_divergence()
    process, model, step = run.built.loaded.process, run.built.model, run.state.global_step
    main = process.is_main
    with run.clock.paused():
        with checkpoint_folder(process.work, step, main=main) as partial:
            folder = partial / f"checkpoint-{step}"
            folder.mkdir(parents=True, exist_ok=True)  # each rank writes its random state
            save_optimiser(
                model, run.step.optimiser, run.step.schedule, run.step.accelerator.scaler, folder, main=main
            )
            save_random_state(folder, run.built.args)
            files = {
                folder / WEIGHTS_FILE: trained_weights(model),
                partial / BEST_FILE: run.best,
                partial / AVERAGE_FILE: run.average.mean,
            }
            for path, weights in files.items():
                whole = weights and gather_weights(weights, main=main)
                if main and whole is not None:
                    save_file({name: weight.contiguous() for name, weight in whole.items()}, path)
            if main:
                save_history(folder, run.state, run.events.callbacks)
                clock = {"seconds": run.clock.seconds, "name": run.name, "losses": run.losses.pending()}
                write_json(partial / CLOCK_FILE, clock)
        run.sound = newest_checkpoint(process.work)


def restore_run(run: TrainingRun, checkpoint: Checkpoint) -> None:
    """Restore a run, except for its random state; all processes must call it."""
    model, folder = run.built.model, checkpoint.trainer_folder
    check_state_files(folder)
    clock = checkpoint.clock()
    run.clock.add(clock["seconds"])
    run.name = clock["name"]
    run.losses.restore(clock["losses"], run.built.args.device)
    trained = trained_weights(model)
    run.best = checkpoint.best()
    if run.best is not None and is_sharded(model):
        run.best = {name: shard_like(weight, trained[name]) for name, weight in run.best.items()}
    if (mean := checkpoint.average()) is not None:
        run.average.mean = {name: shard_like(weight, trained[name]) for name, weight in mean.items()}
    restore_weights(model, load_file(folder / WEIGHTS_FILE), folder / WEIGHTS_FILE)
    run.events.state = replace(
        load_history(folder, run.events.callbacks),
        is_world_process_zero=run.state.is_world_process_zero,
        is_local_process_zero=run.state.is_local_process_zero,
    )
    if not is_sharded(model):  # parts of a sharded model can't run before the whole
        run.check_divergence()
        run.sound = checkpoint
    load_optimiser(model, run.step.optimiser, run.step.schedule, run.step.accelerator.scaler, folder)
