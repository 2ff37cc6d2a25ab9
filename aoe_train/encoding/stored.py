"""Vectors in `.npy` files, read a block at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import numpy as np

ITEM = np.dtype("<f4")
_BLOCK = 4096  # vectors that are read at a time


class Vectors(Protocol):
    """Vectors float32 (text, dim) that need not be in memory."""

    @property
    def texts(self) -> int:
        """How many."""
        ...

    @property
    def dim(self) -> int:
        """Numbers of each."""
        ...

    def read(self, start: int, count: int) -> np.ndarray:
        """(count, dim) from number `start` on."""
        ...


def blocks(vectors: Vectors) -> Iterator[np.ndarray]:
    """All vectors, (some, dim) at a time."""
    for start in range(0, vectors.texts, _BLOCK):
        yield vectors.read(start, min(_BLOCK, vectors.texts - start))


@dataclass(frozen=True, slots=True)
class Stored:
    """Vectors of one file."""

    path: Path
    texts: int
    dim: int

    def offset(self, row: int) -> int:
        """Where a vector begins, in bytes."""
        with self.path.open("rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            return file.tell() + row * self.dim * ITEM.itemsize

    def read(self, start: int, count: int) -> np.ndarray:
        """(count, dim) from number `start` on."""
        flat = np.fromfile(self.path, ITEM, count * self.dim, offset=self.offset(start))
        return flat.reshape(count, self.dim)


class Joined:
    """Vectors of several files, one behind the other."""

    def __init__(self, files: Sequence[Stored]) -> None:
        self._files = files
        self._ends = list(accumulate(file.texts for file in files))
        self.texts, self.dim = self._ends[-1], files[0].dim

    def read(self, start: int, count: int) -> np.ndarray:
        """(count, dim) from number `start` on, of as many files as it takes."""
        found = [np.empty((0, self.dim), ITEM)]
        while count > 0:
            place = bisect_right(self._ends, start)
            some = min(count, self._ends[place] - start)
            file = self._files[place]
            found.append(file.read(start - self._ends[place] + file.texts, some))
            start, count = start + some, count - some
        return np.concatenate(found)
