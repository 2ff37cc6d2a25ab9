"""Checkpoints of a run: folders `step-<n>`, each whole or absent; the newest is enough to go on from.

```
step-120/checkpoint-120/     trained weights, optimiser, schedule, random states, history
step-120/best.safetensors    the best weights so far, where there is dev data
step-120/average.safetensors the mean of the weights so far, where one is asked for
step-120/clock.json          how long training took up to here, and what the run is called in reports
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers.trainer_pt_utils import safe_globals

from aoe_train.model.folder.files import Foreign, decode, read_json
from aoe_train.training.trainer.gather import is_distributed
from aoe_train.training.trainer.sharding import shard_like
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.system.files import remove, whole_folder, write_json

_PREFIX = "step-"
BEST_FILE = "best.safetensors"
AVERAGE_FILE = "average.safetensors"
CLOCK_FILE = "clock.json"
_REMEDY = "begin anew with --fresh"


class _Clock(Foreign):
    seconds: Annotated[float, Field(ge=0)]
    name: Annotated[str, Field(pattern=r"^[^/\x00-\x1f]{1,255}$")] | None = None


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint."""

    folder: Path

    @property
    def step(self) -> int:
        """Optimiser steps done."""
        return int(self.folder.name.removeprefix(_PREFIX))

    @property
    def trainer_folder(self) -> Path:
        """Weights that learn, optimiser, schedule, random states and history."""
        return self.folder / f"checkpoint-{self.step}"

    def best(self) -> dict[str, Tensor] | None:
        """The best weights so far; None where nothing was evaluated."""
        return _load(self.folder / BEST_FILE)

    def average(self) -> dict[str, Tensor] | None:
        """The mean of the weights so far; None where there is none yet."""
        return _load(self.folder / AVERAGE_FILE)

    def seconds(self) -> float:
        """How long training took up to here."""
        return self._clock().seconds

    def name(self) -> str | None:
        """What the run is called where it reports to."""
        return self._clock().name

    def _clock(self) -> _Clock:
        path = self.folder / CLOCK_FILE
        return decode(_Clock, read_json(path, _REMEDY), path, _REMEDY)


def check_state_files(folder: Path) -> None:
    """Refuse states that can't be read, or hold more than tensors and numbers; nothing of them runs."""
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
        except Exception as error:  # whatever a damaged or foreign file makes torch raise
            text = f"{type(error).__name__}: {one_line(str(error), 120)}"
            raise DataError(
                f"no state from which a run can continue ({text}); {_REMEDY}", path=path
            ) from error


def newest_checkpoint(work: Path) -> Checkpoint | None:
    """The checkpoint to go on from; None to begin."""
    named = [path for path in work.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdecimal()]
    found = [Checkpoint(path) for path in named if path.is_dir()]
    return max(found, key=lambda checkpoint: checkpoint.step, default=None)


@contextmanager
def checkpoint_folder(work: Path, step: int, *, main: bool) -> Iterator[Path]:
    """Yield the folder to fill for a step; every rank may write into it, rank 0 (`main`) puts it in place.

    Only once it stands there are older ones removed.
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


def write_extras(
    folder: Path,
    best: dict[str, Tensor] | None,
    average: dict[str, Tensor] | None,
    *,
    seconds: float,
    name: str | None = None,
) -> None:
    """Write the best and the mean weights, the time and the name in reports."""
    write_json(folder / CLOCK_FILE, {"seconds": seconds, "name": name})
    for weights, file in ((best, BEST_FILE), (average, AVERAGE_FILE)):
        if weights is not None:
            save_file(weights, folder / file)


def _load(path: Path) -> dict[str, Tensor] | None:
    try:
        return load_file(path) if path.exists() else None
    except (OSError, SafetensorError) as error:
        raise DataError(f"not readable ({error}); {_REMEDY}", path=path) from error


def wait_for_all() -> None:
    """Wait until every rank is here."""
    if is_distributed():
        torch.distributed.barrier()


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights that learn, by name: all that a checkpoint needs, as the others come with the backbone."""
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


@torch.no_grad()
def restore_weights(model: nn.Module, weights: dict[str, Tensor], source: Path | str) -> None:
    """Put `weights` in the place of those that learn."""
    own = trained_weights(model)
    if own.keys() != weights.keys() or any(own[name].shape != weights[name].shape for name in own):
        raise DataError(f"weights of another model; {_REMEDY}", path=source)
    for name, weight in own.items():
        weight.copy_(shard_like(weights[name], weight))
