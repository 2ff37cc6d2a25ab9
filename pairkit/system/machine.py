"""What the machine has for this process: cores and memory."""

from __future__ import annotations

import os
import sys


def cores() -> int:
    """Those that this process may run on; on macOS, which tells no more, all of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# What torch says in a RuntimeError: on devices, on the host, and for the libraries that it calls.
_REFUSED = (
    *("out of memory", "defaultcpuallocator", "can't allocate memory", "std::bad_alloc"),
    *("could not create a memory", "cublas_status_alloc_failed"),  # oneDNN, cuBLAS
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether less work at a time might do."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _REFUSED)


def peak_rss_mb() -> float:
    """The most memory that this process ever held on the host, in MiB."""
    import resource  # which Windows lacks: an encoder works there, commands don't

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)  # bytes there, KiB on Linux
