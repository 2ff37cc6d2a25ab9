"""A dict that forgets its oldest entry when it is full."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Keeps the results of a computation for the last `size` keys; safe to use from several threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[K, V] = {}
        self._lock = threading.Lock()

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """The value of `key`, computed on first use. One computation runs at a time."""
        with self._lock:
            if key not in self._values:
                value = compute()
                while len(self._values) >= self._size:
                    del self._values[next(iter(self._values))]
                self._values[key] = value
            return self._values[key]
