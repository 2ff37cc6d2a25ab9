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
from typing import Annotated, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from aoe_train.model.folder_checks import Foreign, decode, mapped_array, read_json
from aoe_train.searching.nearest import INDEX_FILE, IndexKind, IndexVectors
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.parquet import read_parquet

ABOUT, ROWS, WORDS = "index.json", "rows.parquet", "words"
VECTORS, RANGES, PROBE = "vectors.npy", "ranges.npy", "probe.npy"
HASH = "sha256"
_REMEDY = "build the index again with --fresh"
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
    return decode(IndexManifest, read_json(path, _REMEDY), path, _REMEDY)


class IndexContent(NamedTuple):
    """The files of an index except for words and faiss, which are read on first use."""

    about: IndexManifest
    rows: pl.DataFrame
    vectors: IndexVectors  # mapped into memory
    probe: np.ndarray  # (1, dim)


def read_index(folder: Path) -> IndexContent:
    """Read an index, whose files must fit each other."""
    about = read_manifest(folder)
    return IndexContent(
        about,
        _rows(folder / ROWS, about),
        IndexVectors(
            _array(folder / VECTORS, (about.rows, about.dim), about.vectors),
            None if about.vectors == "float32" else np.array(_array(folder / RANGES, (2, about.dim))),
        ),
        np.array(_array(folder / PROBE, (1, about.dim))),
    )


def _rows(path: Path, about: IndexManifest) -> pl.DataFrame:
    try:
        rows = read_parquet(path)
    except DataError as error:
        raise DataError(f"is missing or not readable as parquet; {_REMEDY}", path=path) from error
    no_texts = any(rows.schema.get(name, pl.List).is_nested() for name in about.text)
    if rows.height != about.rows or no_texts or rows.schema.get(HASH) != pl.String:
        raise DataError(
            f"has {rows.height:,} rows; expected {about.rows:,} with {', '.join((*about.text, HASH))};"
            f" {_REMEDY}",
            path=path,
        )
    return rows


def _array(path: Path, shape: tuple[int, int], dtype: str = "floating") -> np.ndarray:
    array = mapped_array(path, _REMEDY)
    if array.shape != shape or not np.issubdtype(array.dtype, getattr(np, dtype)):
        raise DataError(
            f"has {array.dtype} of shape {array.shape}; expected {dtype} of shape {shape}; {_REMEDY}",
            path=path,
        )
    return array


def is_index(folder: Path) -> bool:
    """Whether a folder contains an index and nothing else, so that it may be replaced."""
    ours = {ABOUT, ROWS, VECTORS, RANGES, PROBE, WORDS, INDEX_FILE}
    return (folder / ABOUT).is_file() and {path.name for path in folder.iterdir()} <= ours
