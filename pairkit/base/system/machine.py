"""Cores and memory of this machine, and batches that bound memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar


def cores() -> int:
    """The cores that this process may use; on macOS all cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Out-of-memory messages in torch's RuntimeErrors, for devices, the host and libraries.
_REFUSED = (
    "out of memory",
    "defaultcpuallocator",
    "can't allocate memory",
    "std::bad_alloc",
    "could not create a memory",
    "cublas_status_alloc_failed",  # oneDNN, cuBLAS
)


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


T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Consecutive items in lists of at most `size`, like `itertools.batched` of Python 3.12."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
