"""FlashAttention over packed sequences, by torch's own kernels."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


_DTYPES = (torch.float16, torch.bfloat16)
_WIDEST, _MULTIPLE = 256, 8  # numbers of a head that the kernels take
_OLDEST = (8, 0)  # compute capability: Ampere


def is_for_flash(query: Float[Tensor, "token head dim"]) -> bool:
    """Whether the kernels take such numbers."""
    dim = query.shape[-1]
    return query.dtype in _DTYPES and dim <= _WIDEST and dim % _MULTIPLE == 0


@cache
def has_flash(device: torch.device) -> bool:
    """Whether there are such kernels; torch's operator is no promise, so one tiny product is tried."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < _OLDEST:
        return False
    one = torch.zeros(1, 1, _MULTIPLE, dtype=torch.float16, device=device)
    bounds = torch.tensor([0, 1], dtype=torch.int32, device=device)
    try:
        _kernel(one, one, one, bounds, 1, 1.0, 0.0, causal=False, window=None)
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True


def flash(
    query: Float[Tensor, "token head dim"],
    key: Float[Tensor, "token kv dim"],
    value: Float[Tensor, "token kv dim"],
    bounds: Int[Tensor, " bound"],
    longest: int,
    scaling: float,
    dropout: float,
    causal: bool,
    window: int | None,
) -> Float[Tensor, "token head dim"]:
    """Let each sequence, from a bound to the next, attend to itself only; `kv` divides `head`."""
    return _kernel(query, key, value, bounds, longest, scaling, dropout, causal=causal, window=window)


def _kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: Tensor,
    longest: int,
    scaling: float,
    dropout: float,
    *,
    causal: bool,
    window: int | None,
) -> Tensor:
    sides = {} if window is None else {"window_size_left": window - 1}
    if window is not None and not causal:
        sides["window_size_right"] = window - 1
    found = torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        bounds,
        bounds,
        longest,
        longest,
        dropout,
        causal,
        False,  # noqa: FBT003 - an operator of C++: keep no mask for debugging
        scale=scaling,
        **sides,
    )
    return found[0]  # type: ignore[no-any-return]
