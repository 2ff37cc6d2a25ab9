"""Which numbers to compute with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train._settings import Precision

Computed = Literal["fp32", "bf16", "fp16"]


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


def choose_precision(wanted: Precision, device: torch.device) -> Computed:
    """What to compute with on `device`; weights and optimiser stay in float32 whatever it is.

    `auto` is bf16 on a CUDA device that has it, as it needs no loss scaling, else fp32.

    Raises:
        ConfigError: fp16 on a CPU, where it is slower than fp32 and overflows.
    """
    if wanted == "auto":
        return "bf16" if has_bf16(device) else "fp32"
    if wanted == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16: not on a CPU; use bf16 or fp32")
    return wanted
