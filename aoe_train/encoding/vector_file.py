"""Files of vectors: the finished one, and `OUT.partial`, with which a killed run continues.

```
OUT.partial/manifest.json   what the vectors are made of, and how many of them are safe
           /vectors.npy     a whole header, then the vectors so far; what is behind the safe ones is cut off
           /stdin.txt       what came through a pipe
           /lock            held by the process at work
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

from aoe_train.model.quantization import Quantize, dtype_of, quantized, width_of
from aoe_train.model.run_folder import working_folder
from pairkit.app.errors import DataError
from pairkit.system.files import open_own, write_errors, write_json
from pairkit.system.folders import differing

_ITEM = np.dtype("<f4")
_BLOCK = 4096  # vectors that are read at a time
_MANIFEST = "manifest.json"


class PartialState(BaseModel, extra="forbid", frozen=True):
    """What manifest.json holds: what the vectors are made of, and how many of them are safe."""

    made_of: dict[str, Any] = {}
    texts: int = 0
    dim: int = 0
    done: int = 0


class PartialOutput:
    """Vectors of a run that is not over; made by `open_partial`, which holds the lock.

    Attributes:
        begun: Whether a run was begun here whose vectors have not become an output.
        state: Of that run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vectors = folder / "vectors.npy"
        self._manifest = folder / _MANIFEST
        found = _read(self._manifest)
        self.begun = found is not None and self.vectors.is_file()
        self.state = found or PartialState()

    def begin(self, made_of: Mapping[str, Any], texts: int, dim: int) -> None:
        """Start anew, with no vector yet."""
        with write_errors(self.vectors), open_own(self.vectors, "wb") as file:
            header = {"descr": _ITEM.str, "fortran_order": False, "shape": (texts, dim)}
            np.lib.format.write_array_header_1_0(file, header)
        self._save(PartialState(made_of=dict(made_of), texts=texts, dim=dim))
        self.begun = True

    def differences(self, made_of: Mapping[str, Any]) -> list[str]:
        """What was otherwise when the run was begun, as lines to show."""
        return differing(self.state.made_of, made_of)

    def append(self, vectors: np.ndarray) -> None:
        """Add vectors in order; once this returns, no kill loses them."""
        with write_errors(self.vectors), open_own(self.vectors) as file:
            file.truncate(self._offset(self.state.done))
            file.seek(0, os.SEEK_END)
            file.write(np.ascontiguousarray(vectors, _ITEM).data)
            file.flush()
            os.fsync(file.fileno())
        self._save(self.state.model_copy(update={"done": self.state.done + len(vectors)}))

    def read(self, start: int, count: int) -> np.ndarray:
        """(count, dim) from number `start` on."""
        flat = np.fromfile(self.vectors, _ITEM, count * self.state.dim, offset=self._offset(start))
        return flat.reshape(count, self.state.dim)

    def blocks(self) -> Iterator[np.ndarray]:
        """All vectors, (some, dim) at a time."""
        for start in range(0, self.state.texts, _BLOCK):
            yield self.read(start, min(_BLOCK, self.state.texts - start))

    def end(self) -> None:
        """Mark the folder as no longer needed."""
        self.begun = False

    def _offset(self, row: int) -> int:
        """Where a vector begins, in bytes."""
        with self.vectors.open("rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            return file.tell() + row * self.state.dim * _ITEM.itemsize

    def _save(self, state: PartialState) -> None:
        write_json(self._manifest, state.model_dump())
        self.state = state


@contextmanager
def open_partial(out: Path, *, fresh: bool = False) -> Iterator[PartialOutput]:
    """Lock an output's partial folder; one with nothing to resume is removed."""
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
            "not readable as a manifest of this version; give --fresh to start again", path=manifest
        ) from error


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


def write_vectors(path: Path, vectors: PartialOutput, codes: Quantization) -> None:
    """Write all vectors as a `.npy` of codes, block by block."""
    header = {
        "descr": codes.dtype.str,
        "fortran_order": False,
        "shape": (vectors.state.texts, codes.width(vectors.state.dim)),
    }
    with write_errors(path), open_own(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in vectors.blocks():
            file.write(codes.of(block).data)
        file.flush()
        os.fsync(file.fileno())
