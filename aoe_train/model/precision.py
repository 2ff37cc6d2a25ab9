"""Which numbers to compute with."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

import torch

from aoe_train.model.packing.int8 import Int8Linear, has_int8_products
from aoe_train.model.packing.layers import FastLinear
from aoe_train.model.packing.threads import one_thread
from aoe_train.settings.training import PRECISIONS
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from aoe_train.settings.training import EncodingPrecision, Precision

Computed = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_SLOWER, _FASTER = 1.3, 0.5  # of fp32's time; in between nothing is worth telling
_USELESS = 0.9  # as int8 costs some accuracy
_ROWS, _DIM, _TIMES = 256, 512, 4  # of the product that is measured


def has_bf16(device: torch.device) -> bool:
    """Whether this is a CUDA device that computes in bf16; older ones would emulate it, slowly."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def slow_precision(wanted: EncodingPrecision, device: torch.device) -> str | None:
    """What to tell who asked for a precision that is slower here than another; None where it isn't."""
    if device.type != "cpu" or wanted in ("auto", "fp32"):
        return None
    times = product_time(torch.int8 if wanted == "int8" else DTYPES[wanted])
    if wanted == "int8" and (better := product_time(torch.bfloat16)) < times:
        return (
            f"matrix products take {times:.2f} of fp32's time in int8 and {better:.2f} in bf16 on this"
            " processor: --precision bf16 is faster, and nearer to fp32"
        )
    if times < (_USELESS if wanted == "int8" else _SLOWER):
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
    have instructions of their own. CPU time of one thread: whatever else runs there changes little. int8's
    time has the way of the activations to int8 and back in it.
    """
    with one_thread(), torch.inference_mode():
        return _seconds(_product(dtype)) / _seconds(_product(torch.float32))


def _product(dtype: torch.dtype) -> Callable[[], Tensor]:
    """A product of a small model's size."""
    layer = FastLinear(_DIM, _DIM)  # as in models: what torch takes for a product may be twice as slow
    if dtype == torch.int8:
        return partial(Int8Linear(layer), torch.ones(_ROWS, _DIM))
    return partial(layer.to(dtype), torch.ones(_ROWS, _DIM, dtype=dtype))


def _seconds(work: Callable[[], Tensor]) -> float:
    """CPU seconds that it takes, the least of a few after one that warms up."""
    took = []
    for _ in range(_TIMES + 1):
        begun = time.thread_time()
        work()
        took.append(time.thread_time() - begun)
    return min(took[1:])


def choose_precision(wanted: Precision, device: torch.device) -> Computed:
    """What to compute with on `device`; weights and optimiser stay in float32 whatever it is.

    `auto` is bf16 on a CUDA device that has it, as it needs no loss scaling, else fp32. On a CPU it is always
    fp32, also where bf16 is faster: so the same command trains the same model on every processor, one goes on
    with what another began, and vectors are those of the figures. `training_note` tells who might want it.
    """
    if wanted == "auto":
        return _auto(device)
    if wanted == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16: not on a CPU; use bf16 or fp32")
    return wanted


def weights_dtype(wanted: EncodingPrecision, device: torch.device) -> torch.dtype:
    """What an encoder's weights are in on `device`, which is also what it computes with.

    Of int8 what is between its products: float32.
    """
    if wanted not in PRECISIONS:
        raise ConfigError(f"precision {wanted!r}: expected {', '.join(PRECISIONS)}")
    if wanted == "int8":
        _check_int8(device)
        return torch.float32
    return DTYPES[_auto(device) if wanted == "auto" else wanted]


def _check_int8(device: torch.device) -> None:
    if device.type != "cpu":
        raise ConfigError(f"precision int8: for a CPU, and this is {device.type}; use bf16 or fp32")
    if not has_int8_products():
        raise ConfigError("precision int8: this build of torch multiplies no int8 (no oneDNN); use fp32")


def _auto(device: torch.device) -> Computed:
    return "bf16" if has_bf16(device) else "fp32"
