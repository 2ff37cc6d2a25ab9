"""A checkpoint to go on from, looked at first: its states are pickles, and may be a stranger's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from safetensors import safe_open

from aoe_train._model_folder.files import Foreign, decode, read_json
from pairkit.errors import DataError
from pairkit.printable import one_line

STATE_FILE = "trainer_state.json"
_PICKLES = r"(optimizer|scheduler|scaler)\.pt|rng_state(_\d+)?\.pth"
_WEIGHTS = r"model(-\d+-of-\d+)?\.safetensors"
_OTHERS = r"trainer_state\.json|config\.json|model\.safetensors\.index\.json"
_REMEDY = "begin anew with --fresh"

Count = Annotated[int, Field(ge=0, lt=2**63)]
Steps = Annotated[float, Field(ge=0)]
# A norm of gradients may be infinite where fp16 scales its losses.
Logged = Annotated[float, Field(allow_inf_nan=True)]
Words = Annotated[str, Field(max_length=4096)]


class _Wishes(Foreign):
    """What transformers' loop was about to do."""

    should_training_stop: bool = False
    should_epoch_stop: bool = False
    should_save: bool = False
    should_evaluate: bool = False
    should_log: bool = False


class _Nothing(Foreign):
    """No attributes."""


class _Control(Foreign):
    args: _Wishes = _Wishes()
    attributes: _Nothing = _Nothing()


class _Patience(Foreign):
    early_stopping_patience: Annotated[int, Field(ge=1, lt=2**63)]
    early_stopping_threshold: float | None = 0.0


class _Waited(Foreign):
    early_stopping_patience_counter: Count = 0


class _EarlyStopping(Foreign):
    args: _Patience
    attributes: _Waited = _Waited()


class _Callbacks(Foreign):
    """Those with a state that are used here; transformers sets whatever attributes are named."""

    control: _Control = Field(default=_Control(), alias="TrainerControl")
    early_stopping: _EarlyStopping | None = Field(default=None, alias="EarlyStoppingCallback")


class Progress(Foreign):
    """What transformers writes as trainer_state.json."""

    global_step: Count
    log_history: list[dict[Words, Logged]]
    epoch: Annotated[float, Field(ge=0)] = 0.0
    max_steps: Count = 0
    logging_steps: Steps = 500
    eval_steps: Steps = 500
    save_steps: Steps = 500
    train_batch_size: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    num_train_epochs: Count = 0
    num_input_tokens_seen: Count = 0
    total_flos: Annotated[float, Field(ge=0)] = 0.0
    best_metric: Logged | None = None
    best_global_step: Count | None = None
    best_model_checkpoint: Words | None = None
    is_local_process_zero: bool = True
    is_world_process_zero: bool = True
    is_hyper_param_search: bool = False
    trial_name: None = None
    trial_params: None = None
    stateful_callbacks: _Callbacks = _Callbacks()


def check_states(folder: Path) -> None:
    """Refuse states that hold more than tensors and numbers, or can't be read, and any file that isn't known.

    torch then runs nothing of them, now or when transformers reads them again.

    Args:
        folder: What transformers' Trainer wrote.

    Raises:
        DataError: Names the file.
    """
    for path in sorted(folder.iterdir()):
        _check_file(path)
    read_progress(folder / STATE_FILE)


def read_progress(path: Path) -> Progress:
    """How far a run is.

    Raises:
        DataError: No such record: other keys, values of another type or out of their range.
    """
    return decode(Progress, read_json(path, _REMEDY), path, _REMEDY)


def _check_file(path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        raise DataError(f"no plain file, as those of a run are; {_REMEDY}", path=path)
    if re.fullmatch(_PICKLES, path.name, re.ASCII):
        _check_pickle(path)
    elif re.fullmatch(_WEIGHTS, path.name, re.ASCII):
        _check_weights(path)
    elif not re.fullmatch(_OTHERS, path.name):
        raise DataError(f"no file of a run's states; remove it, or {_REMEDY}", path=path)


def _check_pickle(path: Path) -> None:
    from transformers.trainer_pt_utils import safe_globals

    try:
        with safe_globals():  # type: ignore[no-untyped-call]
            torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever a damaged or foreign pickle makes torch raise
        raise _damaged(path, error) from error


def _check_weights(path: Path) -> None:
    try:
        with safe_open(path, framework="pt") as weights:
            weights.keys()
    except Exception as error:  # safetensors has one class of its own, and the system's
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    text = one_line(str(error), 120)
    return DataError(
        f"no state from which a run can continue ({type(error).__name__}: {text}); {_REMEDY}", path=path
    )
