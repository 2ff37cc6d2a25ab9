"""Builds an index; reuses the vectors of an earlier index in the same folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train.evaluation.embedders.cached import PROBE as TEXT
from aoe_train.evaluation.embedders.cached import same_model
from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.model.hybrid import WEIGHTS
from aoe_train.model.quantization import Quantize, quantized, value_ranges
from aoe_train.model.run_folder import OutputResult
from aoe_train.model.similarity import scaled_to_one
from aoe_train.searching.folder import (
    ABOUT,
    HASH,
    PROBE,
    RANGES,
    ROWS,
    VECTORS,
    WORDS,
    IndexManifest,
    is_index,
    read_index,
)
from aoe_train.searching.nearest import IndexKind, IndexVectors, Searcher, build, check_kind, nearest
from aoe_train.searching.text_rows import TextRows, text_hash, with_keys
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.parquet import write_parquet
from pairkit.similarity.bm25 import Bm25
from pairkit.system.files import whole_folder, write_json

MANY = 200_000  # rows from which a faiss index is the default
_RECALL_QUERIES, _RECALL_RANK = 200, 10
_SEED = 7


@dataclass(frozen=True)
class Indexed(OutputResult):
    """The result of indexing.

    Attributes:
        out: The folder.
        rows: Number of indexed texts.
        encoded: Number of texts that were encoded now; the other vectors were reused.
        empty: Number of rows without text, which were left out.
        dim: Dimensions of a vector.
        kind: The index of vectors: flat or hnsw.
        recall: The share of the ten nearest that the index finds for 200 of the rows; 1 if flat.
        bytes: Size of the folder.
    """

    out: Path
    rows: int
    encoded: int
    empty: int
    dim: int
    kind: IndexKind
    recall: float
    bytes: int

    def notes(self) -> list[str]:
        """Number of texts, size and recall."""
        left_out = f", {self.empty:,} rows without text left out" if self.empty else ""
        return [
            f"{self.rows:,} texts, {self.encoded:,} encoded now{left_out};"
            f" {self.bytes / self.rows:,.0f} bytes per text; {self.kind} finds {self.recall:.1%} of the ten"
            " nearest"
        ]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to search it."""
        return [("search it in a browser", ["aoe", "serve", "--index", str(self.out)])]


def check_place(out: Path) -> None:
    """Refuse to replace anything but an index, before reading the input."""
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or is_index(out))):
        raise ConfigError(f"{out}: exists, but isn't an index of `aoe index`; choose another folder")


def make(
    rows: TextRows,
    embedder: Embedder,
    out: Path,
    *,
    model: str,
    kind: IndexKind | None,
    quantize: Quantize,
    show: Listener,
) -> Indexed:
    """Write an index; the folder is complete or absent."""
    chosen: IndexKind = kind or ("hnsw" if len(rows.texts) >= MANY else "flat")
    check_kind(chosen)
    hashes = [text_hash(text) for text in rows.texts]
    # Equal hashes: these are the rows of an index.
    if HASH in rows.frame.columns and rows.frame[HASH].to_list() != hashes:
        raise DataError(f"the column {HASH} is reserved for hashes of texts; rename it")
    probe = embedder.encode([TEXT], embedder.prompts.document)
    matrix, encoded = _vectors(rows.texts, hashes, embedder, probe, out)
    about = IndexManifest(
        model=model,
        text=list(rows.columns),
        rows=len(matrix),
        dim=matrix.shape[1],
        vectors="int8" if quantize == "int8" else "float32",
        kind=chosen,
        weight=WEIGHTS["bm25"],
    )
    with whole_folder(out) as folder:
        write_parquet(folder / ROWS, rows.frame.with_columns(pl.Series(HASH, hashes)))
        np.save(folder / PROBE, probe, allow_pickle=False)
        ranges = value_ranges([matrix]) if quantize == "int8" else None
        stored = matrix if ranges is None else quantized(matrix, "int8", ranges)
        np.save(folder / VECTORS, stored, allow_pickle=False)
        if ranges is not None:
            np.save(folder / RANGES, ranges.astype(np.float32), allow_pickle=False)
        vectors = IndexVectors(stored, ranges)
        show(Progress("index words"))
        (folder / WORDS).mkdir()
        Bm25(with_keys(rows.frame, rows.texts)).save(folder / WORDS)
        show(Progress(f"index vectors ({chosen})"))
        index = build(vectors, chosen, folder)
        recall = 1.0 if index is None else measure(vectors, Searcher(vectors, index))
        about = about.model_copy(update={"recall": recall})
        write_json(folder / ABOUT, about.model_dump(mode="json"))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Indexed(out, about.rows, encoded, rows.empty, about.dim, chosen, recall, size)


def measure(vectors: IndexVectors, searcher: Searcher) -> float:
    """A searcher's recall of the ten nearest, for a sample of the vectors."""
    sample = np.random.default_rng(_SEED).permutation(len(vectors))[:_RECALL_QUERIES]
    queries = vectors.rows(np.sort(sample))
    exact = nearest(vectors, queries, _RECALL_RANK + 1).places[:, 1:]  # without the query itself
    found = searcher.nearest(queries, _RECALL_RANK + 1).places
    hits = sum(np.isin(one[one >= 0], other).sum() for one, other in zip(exact, found, strict=True))
    return float(hits / max((exact >= 0).sum(), 1))


def _vectors(
    texts: Sequence[str], hashes: Sequence[str], embedder: Embedder, probe: np.ndarray, out: Path
) -> tuple[np.ndarray, int]:
    """Vectors of length 1, float32 (text, dim), and the number of newly encoded ones."""
    row_of, reused = _earlier_vectors(out, probe)
    missing = dict.fromkeys(text for text, digest in zip(texts, hashes, strict=True) if digest not in row_of)
    new = reused
    if missing:
        new = embedder.encode(list(missing), embedder.prompts.document)
        if not np.isfinite(new).all():
            raise DataError(f"{embedder.name}: some vectors contain NaN or infinity; check the model")
        new = scaled_to_one(new)
    if len(missing) == len(texts):
        return new, len(missing)
    number = {text: row for row, text in enumerate(missing)}
    matrix = np.empty((len(texts), new.shape[1]), np.float32)
    for row, (text, digest) in enumerate(zip(texts, hashes, strict=True)):
        matrix[row] = reused[row_of[digest]] if digest in row_of else new[number[text]]
    return matrix, len(missing)


def _earlier_vectors(out: Path, probe: np.ndarray) -> tuple[dict[str, int], np.ndarray]:
    """Rows by hash of the text, and float32 vectors, of an earlier index of the same model.

    A damaged index is ignored, since its error messages ask to build it again.
    """
    if out.exists() and is_index(out):
        try:
            about, rows, vectors, earlier = read_index(out)
            if about.vectors == "float32" and same_model(probe, earlier):
                return {digest: row for row, digest in enumerate(rows[HASH])}, vectors.rows(slice(None))
        except DataError:
            pass
    return {}, np.empty((0, 0), np.float32)
