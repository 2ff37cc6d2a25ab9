"""Memory: how much this process took at most, and how to tell that the host or a device refused more."""

from __future__ import annotations

import sys

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
