"""torch's FlashAttention over packed sequences."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    Heads = Float[Tensor, "token head dim"]
    KeyHeads = Float[Tensor, "token kv dim"]

_DTYPES = (torch.float16, torch.bfloat16)
_MAX_HEAD_DIM = 256
_MULTIPLE = 8  # of head sizes
_MIN_CAPABILITY = (8, 0)  # Ampere


def is_for_flash(query: Heads) -> bool:
    """Whether the kernels support this type and head size."""
    dim = query.shape[-1]
    return query.dtype in _DTYPES and dim <= _MAX_HEAD_DIM and dim % _MULTIPLE == 0


@cache
def has_flash(device: torch.device) -> bool:
    """Whether the kernels work on a device: tries a tiny product, as torch's operator is not public."""
    if (
        device.type != "cuda"
        or torch.cuda.get_device_capability(device) < _MIN_CAPABILITY
    ):
        return False
    query = torch.zeros(1, 1, _MULTIPLE, dtype=torch.float16, device=device)
    bounds = torch.tensor([0, 1], dtype=torch.int32, device=device)
    try:
        flash(query, query, query, bounds, 1, 1.0, 0.0, False, None)  # noqa: FBT003 - not causal
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True


def flash(
    query: Heads,
    key: KeyHeads,
    value: KeyHeads,
    bounds: Int[Tensor, " bound"],
    longest: int,
    scaling: float,
    dropout: float,
    causal: bool,
    window: int | None,
) -> Heads:
    """Attention within each sequence, from one bound to the next; `kv` divides `head`."""
    sides = {} if window is None else {"window_size_left": window - 1}
    if window is not None and not causal:
        sides["window_size_right"] = window - 1
    outputs = torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        bounds,
        bounds,
        longest,
        longest,
        dropout,
        causal,
        False,  # noqa: FBT003 - positional in C++: return no debug mask
        scale=scaling,
        **sides,
    )
    return outputs[0]  # type: ignore[no-any-return]
