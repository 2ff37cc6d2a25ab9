"""Which numbers to compute with."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Literal

import torch

from aoe_train._packing.threads import one_thread
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train._settings import Precision

Computed = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_SLOWER, _FASTER = 1.3, 0.5  # of fp32's time; in between nothing is worth telling
_ROWS, _DIM, _TIMES = 256, 512, 4  # of the product that is measured


def named_precision(given: str | None) -> Precision:
    """A name of a precision, None for `auto`.

    Raises:
        ConfigError: Another word.
    """
    known: dict[str | None, Precision] = {"auto": "auto", "fp32": "fp32", "bf16": "bf16", "fp16": "fp16"}
    if given is not None and given not in known:
        raise ConfigError(f"--precision {given}: expected auto, fp32, bf16 or fp16")
    return known[given or "auto"]


def has_bf16(device: torch.device) -> bool:
    """Whether this is a CUDA device that computes in bf16; older ones would emulate it, slowly."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def slow_precision(wanted: Precision, device: torch.device) -> str | None:
    """What to tell who asked for a precision that is slower than fp32 here; None where it isn't."""
    if device.type != "cpu" or wanted not in ("bf16", "fp16"):
        return None
    times = product_time(DTYPES[wanted])
    if times < _SLOWER:
        return None
    return (
        f"matrix products take {times:.1f} times as long in {wanted} as in fp32 on this processor; fp32 is"
        " faster (--precision fp32, run.precision in settings)"
    )


def training_note(wanted: Precision, device: torch.device) -> str | None:
    """What to tell of the precision that is trained in."""
    return slow_precision(wanted, device) or _unused_bf16(wanted, device)


def _unused_bf16(wanted: Precision, device: torch.device) -> str | None:
    """What to tell who lets a processor choose that trains faster in bf16; None where it doesn't."""
    if device.type != "cpu" or wanted != "auto":
        return None
    times = product_time(torch.bfloat16)
    if times > _FASTER:
        return None
    return (
        f"computes in fp32, as on every processor; products take {times:.2f} of the time in bf16 on this one:"
        " --precision bf16 trains faster"
    )


@cache
def product_time(dtype: torch.dtype) -> float:
    """How long a matrix product takes on this processor, 1 being its time in float32.

    It is measured, as instruction sets don't tell: an Intel Xeon with AMX needs 0.14 of the time in bfloat16,
    the same one with its AVX512-BF16 alone 1.6 times, with plain AVX-512 4.8 times as long, and ARM and Apple
    have instructions of their own. CPU time of one thread: whatever else runs there changes little.
    """
    with one_thread():
        return _seconds(dtype) / _seconds(torch.float32)


def _seconds(dtype: torch.dtype) -> float:
    """CPU seconds of a product of a small model's size, the least of a few after one that warms up."""
    rows, weight = torch.ones(_ROWS, _DIM, dtype=dtype), torch.ones(_DIM, _DIM, dtype=dtype)
    took = []
    for _ in range(_TIMES + 1):
        begun = time.thread_time()
        torch.nn.functional.linear(rows, weight)
        took.append(time.thread_time() - begun)
    return min(took[1:])


def choose_precision(wanted: Precision, device: torch.device) -> Computed:
    """What to compute with on `device`; weights and optimiser stay in float32 whatever it is.

    `auto` is bf16 on a CUDA device that has it, as it needs no loss scaling, else fp32. On a CPU it is always
    fp32, also where bf16 is faster: so the same command trains the same model on every processor, one goes on
    with what another began, and vectors are those of the figures. `training_note` tells who might want it.

    Raises:
        ConfigError: fp16 on a CPU, where it is slower than fp32 and overflows.
    """
    if wanted == "auto":
        return _auto(device)
    if wanted == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16: not on a CPU; use bf16 or fp32")
    return wanted


def weights_dtype(wanted: Precision, device: torch.device) -> torch.dtype:
    """What an encoder's weights are in on `device`, which is also what it computes with.

    Raises:
        ConfigError: Another word.
    """
    if wanted not in ("auto", *DTYPES):
        raise ConfigError(f"precision {wanted!r}: expected auto, {', '.join(DTYPES)}")
    return DTYPES[_auto(device) if wanted == "auto" else wanted]


def _auto(device: torch.device) -> Computed:
    return "bf16" if has_bf16(device) else "fp32"
