"""Memory that the host or a device refused: how to tell."""

from __future__ import annotations

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
