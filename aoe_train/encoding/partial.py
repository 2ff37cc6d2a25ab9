"""The folder `OUT.partial`: vectors gather there until the output is whole, and a killed run goes on there.

```
manifest.json   what the vectors are made of, and how many of them are safe
vectors.npy     a whole header, then the vectors so far; what a kill left behind the safe ones is cut off
stdin.txt       what came through a pipe
lock            held by the process at work
```
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from aoe_train.encoding.vector_file import ITEM, VectorFile
from aoe_train.model.run_folder import working_folder
from pairkit.app.errors import DataError
from pairkit.system.files import open_own, write_errors, write_json
from pairkit.system.folders import differing

_MANIFEST = "manifest.json"


class _Manifest(BaseModel, extra="forbid", frozen=True):
    """What manifest.json holds."""

    made_of: dict[str, Any]
    first: int = Field(ge=0)
    texts: int = Field(ge=0)
    of: int = Field(ge=1)
    dim: int = Field(ge=1)
    done: int = Field(ge=0)


class PartialOutput:
    """Vectors of a run that is not over; made by `open_partial`, which holds the lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vectors = folder / "vectors.npy"
        self._manifest = folder / _MANIFEST
        self._state = _read(self._manifest)
        if not self.vectors.is_file():  # they have become an output
            self._state = None

    @property
    def begun(self) -> bool:
        """Whether a run was begun here."""
        return self._state is not None

    @property
    def done(self) -> int:
        """Texts whose vectors are safe."""
        return self._begun.done

    @property
    def first(self) -> int:
        """The number of the first text, from 0; else than 0 in a shard."""
        return self._begun.first

    @property
    def texts(self) -> int:
        """Texts to be encoded: all of the input, or of its shard."""
        return self._begun.texts

    @property
    def of(self) -> int:
        """Texts of the whole input."""
        return self._begun.of

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return self._begun.dim

    @property
    def _begun(self) -> _Manifest:
        if self._state is None:
            raise RuntimeError("no run was begun here")
        return self._state

    def begin(self, made_of: Mapping[str, Any], texts: tuple[int, int], dim: int, *, of: int) -> None:
        """Start anew, with no vector yet."""
        first, count = texts[0], texts[1] - texts[0]
        with write_errors(self.vectors), open_own(self.vectors, "wb") as file:
            header = {"descr": ITEM.str, "fortran_order": False, "shape": (count, dim)}
            np.lib.format.write_array_header_1_0(file, header)
        self._save(_Manifest(made_of=dict(made_of), first=first, texts=count, of=of, dim=dim, done=0))

    def differences(self, made_of: Mapping[str, Any]) -> list[str]:
        """What was otherwise when the run was begun, as lines to show."""
        return differing(self._begun.made_of, made_of)

    def append(self, vectors: np.ndarray) -> None:
        """Add vectors in order; once this returns, no kill loses them."""
        with write_errors(self.vectors), open_own(self.vectors) as file:
            file.truncate(self._stored.offset(self.done))
            file.seek(0, os.SEEK_END)
            file.write(np.ascontiguousarray(vectors, ITEM).data)
            file.flush()
            os.fsync(file.fileno())
        self._save(self._begun.model_copy(update={"done": self.done + len(vectors)}))

    def read(self, start: int, count: int) -> np.ndarray:
        """(count, dim) from number `start` on."""
        return self._stored.read(start, count)

    def end(self) -> None:
        """Say that nothing here is needed any more."""
        self._state = None

    @property
    def _stored(self) -> VectorFile:
        return VectorFile(self.vectors, self.done, self.dim)

    def _save(self, state: _Manifest) -> None:
        write_json(self._manifest, state.model_dump())
        self._state = state


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


def _read(manifest: Path) -> _Manifest | None:
    try:
        return _Manifest.model_validate_json(manifest.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(
            "not readable as a manifest of ours; give --fresh to start again", path=manifest
        ) from error
