"""Checkpoints of a run: one file `step-<n>.pt` each, complete or absent. The newest one suffices to resume.

It has the trained weights, the best ones and the average so far, optimiser and schedule, each rank's random
state, the log with the callbacks' states, losses that aren't logged yet, and the training time. The last one,
of a run that has `ended`, has the weights to save, the log and the time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState

from aoe_train.training.processes import (
    gather_objects,
    gather_weights,
    is_main,
    is_sharded,
    shard_like,
    trained_weights,
    wait_for_all,
)
from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import remove, whole_file

if TYPE_CHECKING or torch.distributed.is_available():
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )

if TYPE_CHECKING:
    from aoe_train.training.fit import TrainingRun


def newest(work: Path) -> Path | None:
    """The newest checkpoint, if there is one."""
    return max(work.glob("step-*.pt"), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """Number of optimiser steps that were done."""
    return int(checkpoint.stem.removeprefix("step-"))


def save(run: TrainingRun) -> None:
    """Write a checkpoint of a run, and remove older ones; all processes must call it.

    Raises Diverged instead of saving a model that has diverged.
    """
    run.check_divergence()
    process = run.built.loaded.process
    model = run.built.model
    scaler = run.step.accelerator.scaler
    path = process.work / f"step-{run.state.global_step}.pt"
    with run.clock.paused():
        stateful: Any = [
            each for each in run.handler.callbacks if isinstance(each, ExportableState)
        ]
        history = replace(run.state, stateful_callbacks=stateful)
        weights = {
            "weights": trained_weights(model),
            "best": run.best,
            "average": run.average.mean,
        }
        content: dict[str, Any] = {
            name: each and gather_weights(each, main=is_main())
            for name, each in weights.items()
        }
        content |= {
            "history": json.dumps(asdict(history)),
            "seconds": run.clock.seconds,
            "name": run.name,
            "ended": run.ended,
        }
        if not run.ended:
            content |= {
                "optimiser": optimiser_state(model, run.step.optimiser),
                "schedule": run.step.schedule.state_dict(),
                "scaler": scaler and scaler.state_dict(),  # of fp16
                "random": gather_objects(_random_state(run.built.args.device)),
                "losses": run.losses.pending(),
            }
        if is_main():
            with whole_file(path) as file:
                torch.save(content, file)
            for older in process.work.glob("*step-*.pt*"):
                if older != path:
                    remove(older)
        wait_for_all()
        run.sound = path


def restore(run: TrainingRun, checkpoint: Path) -> None:
    """Restore a run, except for its random state; all processes must call it."""
    model = run.built.model
    step = run.step
    content = read(checkpoint)
    restore_weights(model, content["weights"])
    run.clock.seconds += content["seconds"]
    run.name = content["name"]
    run.ended = content["ended"]
    run.state = replace(
        _restore_history(content["history"], run.handler.callbacks),
        is_world_process_zero=run.state.is_world_process_zero,
        is_local_process_zero=run.state.is_local_process_zero,
    )
    if run.ended:
        return
    run.best = content["best"]
    if run.best and is_sharded(model):
        run.best = _placed_like(trained_weights(model), run.best)
    run.average.mean = content["average"]
    if run.average.mean:
        run.average.mean = _placed_like(trained_weights(model), run.average.mean)
    run.losses.restore(content["losses"], run.built.args.device)
    if not is_sharded(model):  # parts of a sharded model can't run before the whole
        run.check_divergence()
        run.sound = checkpoint
    if step.accelerator.scaler is not None:
        step.accelerator.scaler.load_state_dict(content["scaler"])
    step.schedule.load_state_dict(content["schedule"])
    load_optimiser(model, step.optimiser, content["optimiser"])
    run.random_state = content["random"][run.built.args.process_index]


def read(path: Path) -> dict[str, Any]:
    """The content of a checkpoint; raises DataError for other objects than tensors and numbers.

    A checkpoint can't run code.
    """
    try:
        content: dict[str, Any] = torch.load(
            path, map_location="cpu", weights_only=True, mmap=True
        )
    except Exception as error:  # torch raises various errors
        reason = f"{type(error).__name__}: {one_line(str(error), 120)}"
        raise DataError(
            f"can't continue from this file ({reason}); start again with --fresh",
            path=path,
        ) from error
    return content


@torch.no_grad()
def restore_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy `weights` into the model's trained weights."""
    for name, weight in trained_weights(model).items():
        weight.copy_(shard_like(weights[name], weight))


def _placed_like(
    trained: dict[str, Tensor], weights: dict[str, Tensor]
) -> dict[str, Tensor]:
    """`weights` on the devices of the `trained` ones, sharded as these are."""
    return {name: shard_like(weight, trained[name]) for name, weight in weights.items()}


def optimiser_state(model: nn.Module, optimiser: Any) -> object:
    """The state of an optimiser; of a sharded model the whole, on rank 0. All processes must call it."""
    if not is_sharded(model):
        return optimiser.state_dict()
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return get_optimizer_state_dict(model, optimiser.optimizer, options=options)


def load_optimiser(model: nn.Module, optimiser: Any, state: Any) -> None:
    """Load the result of `optimiser_state`, or its shard; all processes must call it."""
    if is_sharded(model):
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_optimizer_state_dict(model, optimiser.optimizer, state, options=options)
    else:
        optimiser.load_state_dict(state)


def _random_state(device: torch.device) -> dict[str, Any]:
    """This process's random states."""
    algorithm, keys, *others = cast("tuple[Any, ...]", np.random.get_state())
    states = {
        "python": random.getstate(),
        "numpy": (algorithm, keys.tolist(), *others),
        "cpu": torch.random.get_rng_state(),
    }
    if device.type != "cpu":
        states["device"] = torch.get_device_module(device).get_rng_state()
    return states


def restore_random_state(states: dict[str, Any], device: torch.device) -> None:
    """Restore the result of `_random_state`."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.random.set_rng_state(states["cpu"])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states["device"])


def _restore_history(
    history: str, callbacks: Sequence[TrainerCallback]
) -> TrainerState:
    """Restore the callbacks' states, and return the log."""
    state = TrainerState(**json.loads(history))
    by_type: Any = state.stateful_callbacks
    for name, saved in by_type.items():
        same_type = [each for each in callbacks if type(each).__name__ == name]
        states = saved if isinstance(saved, list) else [saved]
        for callback, callback_state in zip(same_type, states, strict=False):
            for attribute, value in callback_state.get("attributes", {}).items():
                setattr(callback, attribute, value)
    return state
