"""Memory that the host or a device refused: how to tell, and what to say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pairkit.errors import ConfigError

# What torch says in a RuntimeError, for the host and for libraries.
_REFUSED = (
    *("DefaultCPUAllocator", "can't allocate memory", "std::bad_alloc"),
    *("could not create a memory", "CUBLAS_STATUS_ALLOC_FAILED"),  # oneDNN, cuBLAS
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether less work at a time might do."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _REFUSED)


@contextmanager
def memory_errors(advice: str) -> Iterator[None]:
    """Turn a refused allocation, on the host or a device, into a ConfigError that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ConfigError(f"out of memory: {advice}") from error
        raise
