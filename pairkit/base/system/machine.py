"""Cores and memory of this machine, and batches that bound memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TypeVar

# Options of glibc's mallopt(3).
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8
_MAX_THRESHOLD = 32 << 20  # the largest that glibc accepts

# Out-of-memory messages in torch's RuntimeErrors, for devices, the host and libraries.
_REFUSED = (
    "out of memory",
    "defaultcpuallocator",
    "can't allocate memory",
    "std::bad_alloc",
    "could not create a memory",
    "cublas_status_alloc_failed",  # oneDNN, cuBLAS
)

T = TypeVar("T")


def cores() -> int:
    """The cores that this process may use; on macOS all cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error is due to too little memory, so that a smaller batch may work."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        message in text for message in _REFUSED
    )


def peak_rss_mb() -> float:
    """Peak memory of this process, in MiB."""
    import resource  # missing on Windows, where only the encoder works

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux KiB.
    units_per_mb = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return round(peak / units_per_mb, 1)


@cache
def keep_freed_memory() -> None:
    """Make glibc keep freed memory for reuse instead of returning it to the kernel.

    Otherwise page faults take up to a fifth of a training step on a CPU, and a third of encoding long texts.
    The setting lasts until the process ends: resident memory stays at its peak, except for allocations of
    32 MiB and more. It has no effect with other C libraries.
    """
    _set_malloc_options({_MMAP_THRESHOLD: _MAX_THRESHOLD, _TRIM_THRESHOLD: 2**31 - 1})


def share_memory_among_threads() -> None:
    """Make glibc serve new threads from the main thread's memory.

    Otherwise each thread has its own memory, which glibc returns in pieces of 64 MiB despite
    `keep_freed_memory`: a model then has 20 times as many page faults and takes 10 % longer. It has no effect
    with other C libraries.
    """
    _set_malloc_options({_ARENA_MAX: 1})


def _set_malloc_options(options: dict[int, int]) -> None:
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in options.items():
            mallopt(option, value)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Consecutive items in lists of at most `size`, like `itertools.batched` of Python 3.12."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
