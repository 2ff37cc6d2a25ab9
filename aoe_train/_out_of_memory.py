"""What to say where the host or a device refuses memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pairkit.errors import ConfigError
from pairkit.memory import is_out_of_memory


@contextmanager
def memory_errors(advice: str) -> Iterator[None]:
    """Turn a refused allocation, on the host or a device, into a ConfigError that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ConfigError(f"out of memory: {advice}") from error
        raise
