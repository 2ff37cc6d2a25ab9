"""Memory: how much runs at once, what the C library does with what is freed, and errors where it is short."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from pairkit.app.errors import ConfigError
from pairkit.system.machine import is_out_of_memory

if TYPE_CHECKING:
    from torch import nn

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # glibc's mallopt(3)
_LARGEST = 32 << 20  # the largest threshold that glibc takes
# Tokens that run at once. On a CPU their widest activation stays below the size from which the C library has
# the kernel zero fresh pages each time (`keep_freed_memory`).
_TOKENS_CPU, TOKENS_ACCELERATOR = 8_192, 65_536
_ACTIVATION_BYTES = 24 << 20


@contextmanager
def memory_errors(advice: Callable[[], str]) -> Iterator[None]:
    """Turn a refused allocation, on the host or a device, into a ConfigError that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ConfigError(f"out of memory: {advice()}") from error
        raise


def keep_freed_memory() -> bool:
    """Tell glibc not to hand freed memory back to the kernel, which returns it page by page, zeroed.

    Without it a CPU spends up to a fifth of a training step on page faults, and of encoding long texts a
    third. It holds for the whole process from then on: its resident memory stays at its peak, except for what
    was asked for in pieces of 32 MiB and more. Elsewhere than on glibc it does nothing, and says so by False.
    """
    return _told({_MMAP_THRESHOLD: _LARGEST, _TRIM_THRESHOLD: 2**31 - 1})


def share_memory_among_threads() -> bool:
    """Tell glibc to serve threads that begin from now on from the memory of the first one.

    A thread otherwise gets memory of its own, which glibc hands back in pieces of 64 MiB whatever
    `keep_freed_memory` says: a model in such a thread takes 20 times as many page faults, and a tenth more
    time. Elsewhere than on glibc it does nothing, and says so by False.
    """
    return _told({_ARENA_MAX: 1})


def _told(options: dict[int, int]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) for option, value in options.items())


def tokens_at_once(model: nn.Module) -> int:
    """As many as run fastest on a CPU; memory is hardly ever the limit."""
    from torch import nn  # a server of another's vectors needs no torch

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
