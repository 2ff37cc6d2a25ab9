"""Which numbers to compute with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train._settings import Precision

Computed = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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


def cpu_has_bf16() -> bool:
    """Whether this processor computes in bf16 (AVX512-BF16 or AMX); others emulate it."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def slow_precision(wanted: Precision, device: torch.device, *, has_bf16: bool) -> str | None:
    """What to tell who asked for a precision that is emulated here; else None.

    Args:
        wanted: As in the settings.
        device: What computes.
        has_bf16: Of the processor, see `cpu_has_bf16`.
    """
    if wanted != "bf16" or device.type != "cpu" or has_bf16:
        return None
    return "this processor emulates bf16, which takes about ten times as long; --precision fp32 is faster"


def choose_precision(wanted: Precision, device: torch.device) -> Computed:
    """What to compute with on `device`; weights and optimiser stay in float32 whatever it is.

    `auto` is bf16 on a CUDA device that has it, as it needs no loss scaling, else fp32.

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
