"""An index as it lies on disk.

| file | what it holds |
|---|---|
| `index.json` | what the others are of: rows, dim, model, kind |
| `rows.parquet` | the rows as they came, and `sha256` of each text |
| `vectors.npy` | their vectors, of length 1: float32, or int8 |
| `probe.npy` | the vector of one fixed text, by which the model is known again |
| `ranges.npy` | of int8: the lowest and the highest value of each dimension |
| `words/` | BM25 |
| `index.faiss` | of the kind `hnsw` |
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
DIGEST = "sha256"
_REMEDY = "build the index again"
_Count = Annotated[int, Field(ge=1, le=1 << 40)]


class IndexManifest(Foreign):
    """What `index.json` says."""

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
    """What an index is of."""
    path = folder / ABOUT
    if not path.is_file():
        raise ConfigError(f"{folder}: no index.json; expected the folder that `aoe index` made")
    return decode(IndexManifest, read_object(path), path, _REMEDY)


def read_rows_of(folder: Path) -> pl.DataFrame:
    """The rows."""
    path = folder / ROWS
    if not path.is_file():
        raise DataError(f"is gone; {_REMEDY}", path=path)
    return read_parquet(path)


def read_vectors(folder: Path, about: IndexManifest) -> IndexVectors:
    """The vectors, mapped from the disk."""
    stored = mapped_array(folder / VECTORS, _REMEDY)
    ranges = None if about.vectors == "float32" else np.array(mapped_array(folder / RANGES, _REMEDY))
    return IndexVectors(stored, ranges)


def read_probe(folder: Path) -> np.ndarray:
    """The vector of the fixed text, (1, dim)."""
    return np.array(mapped_array(folder / PROBE, _REMEDY))


def is_index(folder: Path) -> bool:
    """Whether a folder may be replaced by an index: it holds one, and nothing else."""
    ours = {ABOUT, ROWS, VECTORS, RANGES, PROBE, WORDS, INDEX_FILE}
    return (folder / ABOUT).is_file() and {path.name for path in folder.iterdir()} <= ours
