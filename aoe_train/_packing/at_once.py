"""How many texts run at once where nothing learns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import nn

# Tokens that run at once. On a CPU their widest activation stays below the size from which the C library has
# the kernel zero fresh pages each time (`keep_freed_memory`).
_TOKENS_CPU, TOKENS_ACCELERATOR = 8_192, 65_536
_ACTIVATION_BYTES = 24 << 20


def tokens_at_once(model: nn.Module) -> int:
    """As many as run fastest on a CPU; memory is hardly ever the limit."""
    widest = max(
        (
            max(weight.shape[-2:])
            for layer in model.modules()
            if not isinstance(layer, nn.Embedding)
            for weight in layer.parameters(recurse=False)
            if weight.ndim > 1
        ),
        default=1,
    )
    size = next(model.parameters()).element_size()
    return min(_TOKENS_CPU, max(1, _ACTIVATION_BYTES // (widest * size)))


def batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Numbers of texts, longest first, so many at a time as stay within the budget of tokens."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        within = int(np.searchsorted(np.cumsum(lengths[order[start : start + budget]]), budget, side="right"))
        stop = start + max(1, within)
        yield order[start:stop][::-1]  # ascending, as packed sequences are
        start = stop
