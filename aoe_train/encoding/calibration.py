"""Where the ranges of int8 come from, if not from the vectors themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aoe_train.encoding.record import read_record
from aoe_train.model.small import value_ranges
from pairkit.app.errors import ConfigError, DataError

_BLOCK = 4096  # vectors that are looked at at a time


def read_ranges(path: Path, dim: int) -> np.ndarray:
    """float32 (2, dim): the ranges of a calibration set."""
    if not path.is_file():
        raise ConfigError(f"--calibration {path}: no such file")
    record = read_record(path)
    if record is not None and "ranges" in record:
        ranges = _numbers(record["ranges"], path)
    else:
        ranges = value_ranges(_blocks(path))
    if ranges.shape != (2, dim):
        raise ConfigError(
            f"--calibration {path}: its vectors have {ranges.shape[-1]} numbers, and these {dim}; encode it"
            " with the same --dim"
        )
    return ranges


def _numbers(found: object, path: Path) -> np.ndarray:
    try:
        ranges = np.array(found, np.float32)
    except (TypeError, ValueError) as error:
        raise DataError("its record has no readable ranges; encode it again", path=path) from error
    if ranges.ndim != 2 or not np.isfinite(ranges).all():
        raise DataError("its record has no readable ranges; encode it again", path=path)
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
