"""`OUT.run.json`: the inputs and settings of an output, and the ranges of its int8 vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aoe_train.encoding.vector_file import Quantization
from aoe_train.model.quantization import value_ranges
from pairkit import __version__
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import write_json
from pairkit.base.system.folders import REPLACE, is_same, read_own

_MADE_BY = "aoe encode"


def record_path(out: Path) -> Path:
    """The record's path, next to the output."""
    return out.with_name(out.name + ".run.json")


def write_record(
    out: Path, made_of: Mapping[str, Any], *, texts: int, dim: int, size: int, codes: Quantization
) -> None:
    """Write the record of an output of `size` bytes, just before the output appears."""
    counts = {"texts": texts, "dim": dim, "bytes": size, **codes.to_dict()}
    record = {"made_by": _MADE_BY, "version": __version__, "made_of": made_of, **counts}
    write_json(record_path(out), record)


def read_finished(out: Path, made_of: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an existing output, which the same command must have made."""
    record = read_record(out)
    if record is None:
        raise ConfigError(f"{out}: already exists; {REPLACE}")
    is_same(out, record["made_of"], made_of, fresh=False)
    return record


def read_record(out: Path) -> dict[str, Any] | None:
    """The record; None if it isn't from `aoe encode`, or the output was replaced by another file."""
    record = read_own(record_path(out))
    if record is None or record.get("made_by") != _MADE_BY:
        return None
    return record if record["bytes"] == out.stat().st_size else None


_BLOCK_VECTORS = 4096


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
            f"--calibration {path}: its vectors have {ranges.shape[-1]} dimensions, expected {dim}; encode it"
            " with the same --dim"
        )
    return ranges


def _blocks(path: Path) -> Iterator[np.ndarray]:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            "expected vectors in .npy, or an int8 output of `aoe encode` with its .run.json", path=path
        ) from error
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError("expected vectors (text, dim) of floats, or int8 output with its record", path=path)
    for start in range(0, len(vectors), _BLOCK_VECTORS):
        block = np.asarray(vectors[start : start + _BLOCK_VECTORS], np.float32)
        if not np.isfinite(block).all():
            raise DataError("contains vectors with NaN or infinity", path=path)
        yield block
