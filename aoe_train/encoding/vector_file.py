"""Files of vectors: finished ones, and `OUT.partial`, from which an interrupted run resumes.

```
OUT.partial/manifest.json   inputs and settings, and the number of vectors that are safely stored
           /vectors.npy     a complete header, then the vectors so far; bytes after the safe ones are cut off
           /stdin.txt       a copy of standard input
           /lock            held by the running process
```
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from aoe_train.model.model_folder import working_folder
from aoe_train.model.quantization import Quantize, dtype_of, quantized, width_of
from pairkit.base.errors import DataError
from pairkit.base.system.files import open_own, write_errors, write_json
from pairkit.base.system.folders import differing

_ITEM = np.dtype("<f4")
_BLOCK_VECTORS = 4096
_MANIFEST = "manifest.json"


class PartialState(BaseModel, extra="forbid", frozen=True):
    """The content of manifest.json; `done` vectors are safely stored."""

    made_of: dict[str, Any] = {}
    texts: int = 0
    dim: int = 0
    done: int = 0


class PartialOutput:
    """The vectors of an unfinished run; `open_partial` makes it and holds the lock.

    Attributes:
        begun: Whether there is an unfinished run.
        state: That run's state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vectors = folder / "vectors.npy"
        self._manifest = folder / _MANIFEST
        state = _read(self._manifest)
        self.begun = state is not None and self.vectors.is_file()
        self.state = state or PartialState()

    def begin(self, made_of: Mapping[str, Any], texts: int, dim: int) -> None:
        """Start a run without any vectors."""
        with write_errors(self.vectors), open_own(self.vectors, "wb") as file:
            header = {"descr": _ITEM.str, "fortran_order": False, "shape": (texts, dim)}
            np.lib.format.write_array_header_1_0(file, header)
        self._save(PartialState(made_of=dict(made_of), texts=texts, dim=dim))
        self.begun = True

    def differences(self, made_of: Mapping[str, Any]) -> list[str]:
        """Differences to the inputs and settings with which the run began."""
        return differing(self.state.made_of, made_of)

    def append(self, vectors: np.ndarray) -> None:
        """Add vectors in order; once this returns, they are safe even if the process is killed."""
        with write_errors(self.vectors), open_own(self.vectors) as file:
            file.truncate(self._offset(self.state.done))
            file.seek(0, os.SEEK_END)
            file.write(np.ascontiguousarray(vectors, _ITEM).data)
            file.flush()
            os.fsync(file.fileno())
        self._save(self.state.model_copy(update={"done": self.state.done + len(vectors)}))

    def read(self, start: int, count: int) -> np.ndarray:
        """The vectors (count, dim) from index `start`."""
        flat = np.fromfile(self.vectors, _ITEM, count * self.state.dim, offset=self._offset(start))
        return flat.reshape(count, self.state.dim)

    def blocks(self) -> Iterator[np.ndarray]:
        """All vectors, in blocks (text, dim)."""
        for start in range(0, self.state.texts, _BLOCK_VECTORS):
            yield self.read(start, min(_BLOCK_VECTORS, self.state.texts - start))

    def end(self) -> None:
        """Mark the folder as no longer needed."""
        self.begun = False

    def _offset(self, row: int) -> int:
        """The byte offset of a vector."""
        with self.vectors.open("rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            return file.tell() + row * self.state.dim * _ITEM.itemsize

    def _save(self, state: PartialState) -> None:
        write_json(self._manifest, state.model_dump())
        self.state = state


@contextmanager
def open_partial(out: Path, *, fresh: bool = False) -> Iterator[PartialOutput]:
    """Lock an output's partial folder; at the end it is removed unless a run can be resumed."""
    folder = out.with_name(out.name + ".partial")
    with working_folder(folder):
        if fresh:
            (folder / _MANIFEST).unlink(missing_ok=True)
        partial = PartialOutput(folder)
        try:
            yield partial
        finally:
            if not partial.begun:
                shutil.rmtree(folder)


def _read(manifest: Path) -> PartialState | None:
    try:
        return PartialState.model_validate_json(manifest.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(
            "not readable as a manifest of this version; give --fresh to start over", path=manifest
        ) from error


@dataclass(frozen=True, slots=True)
class Quantization:
    """A number type, and the ranges of int8."""

    quantize: Quantize = "float32"
    ranges: np.ndarray | None = None

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        """Quantize float32 (text, dim)."""
        return quantized(vectors, self.quantize, self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """The entries of an output's record; `ranges` are each dimension's minimum and maximum."""
        if self.quantize == "float32":
            return {}
        ranges = {} if self.ranges is None else {"ranges": self.ranges.tolist()}
        return {"quantize": self.quantize, **ranges}


def write_vectors(path: Path, vectors: PartialOutput, quantization: Quantization) -> None:
    """Write all vectors as a quantized `.npy`, block by block."""
    quantize, state = quantization.quantize, vectors.state
    header = {
        "descr": dtype_of(quantize).str,
        "fortran_order": False,
        "shape": (state.texts, width_of(state.dim, quantize)),
    }
    with write_errors(path), open_own(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in vectors.blocks():
            file.write(quantization.apply(block).data)
        file.flush()
        os.fsync(file.fileno())
