"""`OUT.run.json`: what an output was made of, and the ranges of int8 that it may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aoe_train.encoding.vector_file import Quantization
from aoe_train.model.quantization import value_ranges
from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.system.files import write_json
from pairkit.system.folders import differing, read_own

_MADE_BY = "aoe encode"


def record_path(out: Path) -> Path:
    """Beside an output."""
    return out.with_name(out.name + ".run.json")


def write_record(
    out: Path,
    made_of: Mapping[str, Any],
    *,
    texts: int,
    dim: int,
    size: int,
    codes: Quantization,
) -> None:
    """Write what an output of `size` bytes, which is about to appear, is made of, and how to read it."""
    counts = {"texts": texts, "dim": dim, "bytes": size, **codes.to_dict()}
    record = {"made_by": _MADE_BY, "version": __version__, "made_of": made_of, **counts}
    write_json(record_path(out), record)


def read_finished(out: Path, made_of: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an output that is there, if the same command made it."""
    record = read_record(out)
    if record is None:
        raise ConfigError(f"{out}: already exists; give --fresh to replace it, or choose another --out")
    if differences := differing(record["made_of"], made_of):
        raise ConfigError(
            f"{out}: already exists, made by a run which differs in {'; '.join(differences)}; give --fresh"
            " to replace it, or choose another --out"
        )
    return record


def read_record(out: Path) -> dict[str, Any] | None:
    """The record; None if it is not ours, or another file has taken the output's place."""
    record = read_own(record_path(out))
    if record is None or record.get("made_by") != _MADE_BY:
        return None
    return record if record["bytes"] == out.stat().st_size else None


_BLOCK = 4096  # vectors that are looked at at a time


def read_ranges(path: Path, dim: int) -> np.ndarray:
    """float32 (2, dim): the ranges of a calibration set."""
    if not path.is_file():
        raise ConfigError(f"--calibration {path}: no such file")
    record = read_record(path)
    if record is not None and "ranges" in record:
        ranges = np.array(record["ranges"], np.float32)
    else:
        ranges = value_ranges(_blocks(path))
    if ranges.shape != (2, dim):
        raise ConfigError(
            f"--calibration {path}: its vectors have {ranges.shape[-1]} numbers, and these {dim}; encode it"
            " with the same --dim"
        )
    return ranges


def _blocks(path: Path) -> Iterator[np.ndarray]:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            "neither vectors as .npy nor an int8 output of `aoe encode` with its .run.json", path=path
        ) from error
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(
            "expected vectors (text, dim) of floats, or an int8 output with its record", path=path
        )
    for start in range(0, len(vectors), _BLOCK):
        block = np.asarray(vectors[start : start + _BLOCK], np.float32)
        if not np.isfinite(block).all():
            raise DataError("holds vectors with NaN or infinity", path=path)
        yield block
