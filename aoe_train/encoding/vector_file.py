"""Vectors in `.npy` files, read a block at a time, and written in the numbers that were asked for."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from aoe_train.model.quantization import Quantize, dtype_of, quantized, width_of
from pairkit.system.files import open_own, write_errors

ITEM = np.dtype("<f4")
_BLOCK = 4096  # vectors that are read at a time


class VectorReader(Protocol):
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


def blocks(vectors: VectorReader) -> Iterator[np.ndarray]:
    """All vectors, (some, dim) at a time."""
    for start in range(0, vectors.texts, _BLOCK):
        yield vectors.read(start, min(_BLOCK, vectors.texts - start))


@dataclass(frozen=True, slots=True)
class VectorFile:
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


class JoinedFiles:
    """Vectors of several files, one behind the other."""

    def __init__(self, files: Sequence[VectorFile]) -> None:
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


@dataclass(frozen=True, slots=True)
class Quantization:
    """How vectors are quantised."""

    quantize: Quantize = "float32"
    ranges: np.ndarray | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a number."""
        return dtype_of(self.quantize)

    def width(self, dim: int) -> int:
        """Numbers that a vector of `dim` becomes."""
        return width_of(dim, self.quantize)

    def of(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors float32 (text, dim), quantised."""
        return quantized(vectors, self.quantize, self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """As in an output's record: nothing for float32; `ranges` are the lowest and the highest values."""
        if self.quantize == "float32":
            return {}
        ranges = {} if self.ranges is None else {"ranges": self.ranges.tolist()}
        return {"quantize": self.quantize, **ranges}


def write_vectors(path: Path, vectors: VectorReader, codes: Quantization) -> None:
    """Write all vectors as a `.npy` of codes, block by block."""
    header = {
        "descr": codes.dtype.str,
        "fortran_order": False,
        "shape": (vectors.texts, codes.width(vectors.dim)),
    }
    with write_errors(path), open_own(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks(vectors):
            file.write(codes.of(block).data)
        file.flush()
        os.fsync(file.fileno())
