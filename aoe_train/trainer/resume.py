"""A checkpoint to go on from, looked at first: its states are pickles, and may be a stranger's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from pairkit.errors import DataError

_STATES = ("optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state*.pth")
_STATE_FILE = "trainer_state.json"
_REMEDY = "begin anew with --fresh"


def check_states(folder: Path) -> None:
    """Refuse states that hold more than tensors and numbers, or can't be read.

    torch then runs nothing of them, now or when transformers reads them again.

    Args:
        folder: What transformers' Trainer wrote.

    Raises:
        DataError: Names the file.
    """
    for pattern in _STATES:
        for path in sorted(folder.glob(pattern)):
            _check_pickle(path)
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as weights:
                weights.keys()
        except Exception as error:  # safetensors has one class of its own, and the system's
            raise _damaged(path, error) from error
    _check_progress(folder / _STATE_FILE)


def _check_pickle(path: Path) -> None:
    from transformers.trainer_pt_utils import safe_globals

    try:
        with safe_globals():  # type: ignore[no-untyped-call]
            torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever a damaged or foreign pickle makes torch raise
        raise _damaged(path, error) from error


def _check_progress(path: Path) -> None:
    from transformers.trainer_callback import TrainerState

    try:
        state: Any = TrainerState.load_from_json(str(path))
    except Exception as error:  # whatever odd JSON makes transformers raise
        raise _damaged(path, error) from error
    if not (isinstance(state.global_step, int) and isinstance(state.log_history, list)):
        raise DataError(f"no number of steps, or no history; {_REMEDY}", path=path)


def _damaged(path: Path, error: Exception) -> DataError:
    text = " ".join(str(error).split())[:120]
    return DataError(
        f"no state of a run that can be gone on from ({type(error).__name__}: {text}); {_REMEDY}", path=path
    )
