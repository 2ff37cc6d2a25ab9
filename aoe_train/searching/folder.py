"""The files of an index.

| file | content |
|---|---|
| `index.json` | the model, the number of rows, and the other fields of `IndexManifest` |
| `rows.parquet` | the input's rows, and `sha256` of each text |
| `vectors.npy` | vectors of length 1: float32 or int8 |
| `probe.npy` | the vector of a fixed text, which identifies the model |
| `ranges.npy` | for int8: minimum and maximum of each dimension |
| `words/` | BM25 |
| `index.faiss` | for `hnsw` |
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field

from aoe_train.model.folder_checks import Foreign, decode, mapped_array, read_object
from aoe_train.searching.nearest import INDEX_FILE, IndexKind, IndexVectors
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.parquet import read_parquet

ABOUT, ROWS, WORDS = "index.json", "rows.parquet", "words"
VECTORS, RANGES, PROBE = "vectors.npy", "ranges.npy", "probe.npy"
HASH = "sha256"
_REMEDY = "build the index again"
_Count = Annotated[int, Field(ge=1, le=1 << 40)]


class IndexManifest(Foreign):
    """The content of `index.json`."""

    format: Literal[1] = 1
    model: str
    text: Annotated[list[str], Field(min_length=1)]
    rows: _Count
    dim: _Count
    vectors: Literal["float32", "int8"] = "float32"
    kind: IndexKind = "flat"
    recall: float | None = None
    weight: Annotated[float, Field(ge=0, le=1)]


def read_manifest(folder: Path) -> IndexManifest:
    """Read `index.json`."""
    path = folder / ABOUT
    if not path.is_file():
        raise ConfigError(f"{folder}: no index.json; expected a folder of `aoe index`")
    return decode(IndexManifest, read_object(path), path, _REMEDY)


def read_rows_of(folder: Path) -> pl.DataFrame:
    """Read the rows."""
    path = folder / ROWS
    if not path.is_file():
        raise DataError(f"is missing; {_REMEDY}", path=path)
    return read_parquet(path)


def read_vectors(folder: Path, about: IndexManifest) -> IndexVectors:
    """The vectors, mapped into memory."""
    stored = mapped_array(folder / VECTORS, _REMEDY)
    ranges = None if about.vectors == "float32" else np.array(mapped_array(folder / RANGES, _REMEDY))
    return IndexVectors(stored, ranges)


def read_probe(folder: Path) -> np.ndarray:
    """The vector of the probe, (1, dim)."""
    return np.array(mapped_array(folder / PROBE, _REMEDY))


def is_index(folder: Path) -> bool:
    """Whether a folder contains an index and nothing else, so that it may be replaced."""
    ours = {ABOUT, ROWS, VECTORS, RANGES, PROBE, WORDS, INDEX_FILE}
    return (folder / ABOUT).is_file() and {path.name for path in folder.iterdir()} <= ours
