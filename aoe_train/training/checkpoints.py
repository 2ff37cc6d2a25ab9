"""Checkpoints of a run: one file `step-<n>.pt` each, complete or absent. The newest one suffices to resume."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

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


Weights = dict[str, Tensor]  # by name
State = dict[str, Any]  # of an optimiser, a schedule, or the like


class Checkpoint(TypedDict, total=False):
    """The content of a checkpoint. The last one, of a run that has `ended`, lacks all after `ended`."""

    weights: Weights  # the trained ones, or those to save if `ended`
    best: Weights | None
    average: Weights | None
    history: str  # steps, log and the callbacks' states, in JSON
    seconds: float  # of training
    name: str
    ended: bool
    optimiser: object
    schedule: State
    scaler: State | None  # of fp16
    random: list[State]  # of each rank
    losses: list[dict[str, object]]  # that aren't logged yet


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
    work = run.built.loaded.process.work
    path = work / f"step-{run.state.global_step}.pt"
    with run.clock.paused():
        content = _content(run)
        if is_main():
            with whole_file(path) as file:
                torch.save(content, file)
            for older in work.glob("*step-*.pt*"):
                if older != path:
                    remove(older)
        wait_for_all()
    run.sound = path


def _content(run: TrainingRun) -> Checkpoint:
    """The content of a checkpoint, which is complete on rank 0; all processes must call it."""
    model = run.built.model
    callbacks = run.handler.callbacks
    stateful: Any = [each for each in callbacks if isinstance(each, ExportableState)]
    history = replace(run.state, stateful_callbacks=stateful)
    content: Checkpoint = {
        "weights": gather_weights(trained_weights(model), main=is_main()),
        "best": _gathered(run.best),
        "average": _gathered(run.average.mean),
        "history": json.dumps(asdict(history)),
        "seconds": run.clock.seconds,
        "name": run.name,
        "ended": run.ended,
    }
    if not run.ended:
        scaler = run.step.accelerator.scaler
        content |= {
            "optimiser": optimiser_state(model, run.step.optimiser),
            "schedule": run.step.schedule.state_dict(),
            "scaler": scaler and scaler.state_dict(),
            "random": gather_objects(_random_state(run.built.args.device)),
            "losses": run.losses.pending(),
        }
    return content


def _gathered(weights: Weights | None) -> Weights | None:
    """The whole weights, if there are any."""
    return weights and gather_weights(weights, main=is_main())


def restore(run: TrainingRun, checkpoint: Path) -> None:
    """Restore a run, except for its random state; all processes must call it.

    Raises Diverged if the model has diverged.
    """
    model = run.built.model
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
    _restore_loop(run, content)
    if not is_sharded(model):  # parts of a sharded model can't run before the whole
        run.check_divergence()
        run.sound = checkpoint


def _restore_loop(run: TrainingRun, content: Checkpoint) -> None:
    """Restore what only a run that goes on needs."""
    model = run.built.model
    step = run.step
    args = run.built.args
    trained = trained_weights(model)
    run.average.mean = _placed_like(trained, content["average"])
    run.best = content["best"]  # in host memory, unless they are sharded
    if is_sharded(model):
        run.best = _placed_like(trained, run.best)
    run.losses.restore(content["losses"], args.device)
    scaler = step.accelerator.scaler
    if scaler:
        scaler.load_state_dict(content["scaler"])
    step.schedule.load_state_dict(content["schedule"])
    load_optimiser(model, step.optimiser, content["optimiser"])
    run.random_state = content["random"][args.process_index]


def read(path: Path) -> Checkpoint:
    """The content of a checkpoint; raises DataError for other objects than tensors and numbers.

    A checkpoint can't run code.
    """
    try:
        return torch.load(  # type: ignore[no-any-return]
            path, map_location="cpu", weights_only=True, mmap=True
        )
    except Exception as error:  # torch raises various errors
        reason = f"{type(error).__name__}: {one_line(str(error), 120)}"
        raise DataError(
            f"can't continue from this file ({reason}); start again with --fresh",
            path=path,
        ) from error


@torch.no_grad()
def restore_weights(model: nn.Module, weights: Weights) -> None:
    """Copy `weights` into the model's trained weights."""
    for name, weight in trained_weights(model).items():
        weight.copy_(shard_like(weights[name], weight))


def _placed_like(trained: Weights, weights: Weights | None) -> Weights | None:
    """`weights`, if there are any, on the devices of the `trained` ones, sharded as these are."""
    return weights and {
        name: shard_like(weight, trained[name]) for name, weight in weights.items()
    }


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


def _random_state(device: torch.device) -> State:
    """This process's random states."""
    numpy_state: Any = np.random.get_state()
    algorithm, keys, *others = numpy_state
    states = {
        "python": random.getstate(),
        # Without arrays, which `weights_only` refuses.
        "numpy": (algorithm, keys.tolist(), *others),
        "cpu": torch.random.get_rng_state(),
    }
    if device.type != "cpu":
        states["device"] = torch.get_device_module(device).get_rng_state()
    return states


def restore_random_state(states: State, device: torch.device) -> None:
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
