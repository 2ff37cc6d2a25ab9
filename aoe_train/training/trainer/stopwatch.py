"""Time spent on training alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the time inside `running`, without what is inside `paused` within it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._stopped = seconds
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Up to now."""
        return self._stopped + (0.0 if self._since is None else time.perf_counter() - self._since)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside."""
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._stopped, self._since = self.seconds, None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what happens inside."""
        running = self._since is not None
        self._stopped, self._since = self.seconds, None
        try:
            yield
        finally:
            self._since = time.perf_counter() if running else None
