"""Files of vectors with their records, and `OUT.partial`, from which an interrupted run resumes.

`OUT.run.json` records the inputs and settings of an output, and the ranges of its int8 vectors.

```
OUT.partial/manifest.json   inputs and settings, and the number of vectors that are safely stored
           /vectors.npy     a complete header, then the vectors so far; bytes after the safe ones are cut off
           /stdin.txt       a copy of standard input
           /lock            held by the running process
```
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy import ndarray

from aoe_train.model.folder_checks import mapped_array
from aoe_train.model.quantization import (
    DTYPES,
    Quantize,
    checked_ranges,
    quantized,
    value_ranges,
    width_of,
)
from aoe_train.model.run_folder import working_folder
from pairkit import __version__
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import (
    open_in_place,
    whole_file,
    write_errors,
    write_json,
)
from pairkit.base.system.folders import (
    REPLACE,
    check_same_run,
    read_json_object,
    try_read_json_object,
)

_MADE_BY = "aoe encode"
_MANIFEST = "manifest.json"
_ITEM = np.dtype("<f4")  # of stored vectors
_BLOCK_VECTORS = 4096


@dataclass(frozen=True)
class PartialState:
    """The content of manifest.json; `done` vectors are safely stored."""

    made_of: Mapping[str, Any] = field(default_factory=dict)
    texts: int = 0
    dim: int = 0
    done: int = 0


class PartialOutput:
    """The vectors of an unfinished run; unless it `is_resumable`, its folder is removed in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vectors = folder / "vectors.npy"
        self._manifest = folder / _MANIFEST
        self.state = PartialState()
        self.is_resumable = self._manifest.is_file() and self.vectors.is_file()
        if self.is_resumable:
            self.state = PartialState(**read_json_object(self._manifest))

    def begin(self, made_of: Mapping[str, object], texts: int, dim: int) -> None:
        """Start a run without any vectors."""
        with (
            write_errors(self.vectors),
            open_in_place(self.vectors, empty=True) as file,
        ):
            _write_header(file, _ITEM, texts, dim)
        self._save(PartialState(made_of, texts, dim))
        self.is_resumable = True

    def append(self, vectors: ndarray) -> None:
        """Add vectors in order; once this returns, they are safe even if the process is killed."""
        stored = self.state.done
        with write_errors(self.vectors), open_in_place(self.vectors) as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            file.truncate(file.tell() + stored * self.state.dim * _ITEM.itemsize)
            file.seek(0, os.SEEK_END)
            file.write(np.ascontiguousarray(vectors, _ITEM).data)
            file.flush()
            os.fsync(file.fileno())
        self._save(replace(self.state, done=stored + len(vectors)))

    def all_vectors(self) -> ndarray:
        """All vectors (text, dim) of a complete file, mapped into memory."""
        return np.asarray(np.load(self.vectors, mmap_mode="r"))

    def _save(self, state: PartialState) -> None:
        write_json(self._manifest, asdict(state))
        self.state = state


def blocks(vectors: ndarray) -> Iterator[ndarray]:
    """Vectors a few thousand at a time."""
    for start in range(0, len(vectors), _BLOCK_VECTORS):
        yield vectors[start : start + _BLOCK_VECTORS]


@contextmanager
def open_partial(out: Path, *, fresh: bool) -> Iterator[PartialOutput]:
    """Lock an output's partial folder; at the end it is removed unless a run can be resumed."""
    folder = out.with_name(out.name + ".partial")
    with working_folder(folder):
        if fresh:
            (folder / _MANIFEST).unlink(missing_ok=True)
        unfinished = PartialOutput(folder)
        try:
            yield unfinished
        finally:
            if not unfinished.is_resumable:
                shutil.rmtree(folder)


@dataclass(frozen=True)
class Quantization:
    """A number type, and the ranges of int8."""

    quantize: Quantize = "float32"
    ranges: ndarray | None = None

    @property
    def needs_ranges(self) -> bool:
        """Whether the vectors themselves set the ranges."""
        return self.quantize == "int8" and self.ranges is None

    def apply(self, vectors: ndarray) -> ndarray:
        """Quantize float32 (text, dim)."""
        return quantized(vectors, self.quantize, self.ranges)

    def settings(self) -> dict[str, Any]:
        """The entries of a run's settings; given `ranges` are a hash."""
        if self.quantize == "float32":
            return {}
        settings: dict[str, Any] = {"quantize": self.quantize}
        if self.quantize == "int8":
            calibration = None
            if self.ranges is not None:
                ranges = self.ranges.astype("<f4").tobytes()
                calibration = hashlib.sha256(ranges).hexdigest()
            settings["calibration"] = calibration
        return settings

    def to_dict(self) -> dict[str, Any]:
        """The entries of an output's record; `ranges` are each dimension's minimum and maximum."""
        if self.quantize == "float32":
            return {}
        entries = {"quantize": self.quantize}
        if self.ranges is not None:
            entries["ranges"] = self.ranges.tolist()
        return entries


def write_vectors(
    path: Path, vectors: PartialOutput, quantization: Quantization
) -> None:
    """Write all vectors as a quantized `.npy`, block by block."""
    quantize = quantization.quantize
    state = vectors.state
    with whole_file(path) as file:
        _write_header(
            file, DTYPES[quantize], state.texts, width_of(state.dim, quantize)
        )
        for block in blocks(vectors.all_vectors()):
            file.write(quantization.apply(block).data)


def _write_header(
    file: IO[bytes],
    dtype: np.dtype[Any],
    rows: int,
    columns: int,
) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": (rows, columns)}
    np.lib.format.write_array_header_1_0(file, header)


def record_path(out: Path) -> Path:
    """The record's path, next to the output."""
    return out.with_name(out.name + ".run.json")


def write_record(
    out: Path, state: PartialState, size: int, quantization: Quantization
) -> None:
    """Write the record of an output of `size` bytes, just before the output appears."""
    record = {
        "made_by": _MADE_BY,
        "version": __version__,
        "made_of": state.made_of,
        "texts": state.texts,
        "dim": state.dim,
        "bytes": size,
        **quantization.to_dict(),
    }
    write_json(record_path(out), record)


def read_finished(out: Path, made_of: Mapping[str, object]) -> dict[str, Any]:
    """The record of an existing output, which the same command must have made."""
    record = read_record(out)
    if record is None:
        raise ConfigError(f"{out}: already exists; {REPLACE}")
    check_same_run(out, record["made_of"], made_of)
    return record


def read_record(out: Path) -> dict[str, Any] | None:
    """The record; None if it isn't from `aoe encode`, or the output was replaced by another file."""
    record = try_read_json_object(record_path(out))
    if record is None or record.get("made_by") != _MADE_BY:
        return None
    return record if record["bytes"] == out.stat().st_size else None


def read_ranges(path: Path, dim: int) -> ndarray:
    """float32 (2, dim): the ranges of a calibration set."""
    if not path.is_file():
        raise ConfigError(f"--calibration {path}: no such file")
    record = read_record(path)
    if record is not None and "ranges" in record:
        return checked_ranges(np.array(record["ranges"], np.float32), dim)
    remedy = (
        "give vectors in .npy, or an int8 output of `aoe encode` with its .run.json"
    )
    vectors = mapped_array(path, remedy)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(
            "expected vectors (text, dim) of floats, or int8 output with its record",
            path=path,
        )
    return checked_ranges(value_ranges(blocks(vectors)), dim)
