"""From rows to an index: what an earlier one at the same place has is not encoded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aoe_train.evaluation.embedders.cached import PROBE as TEXT
from aoe_train.evaluation.embedders.cached import same_model
from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.model.hybrid import WEIGHTS
from aoe_train.model.quantization import Quantize, quantized, value_ranges
from aoe_train.model.similarity import scaled_to_one
from aoe_train.searching.folder import (
    ABOUT,
    DIGEST,
    PROBE,
    RANGES,
    ROWS,
    VECTORS,
    WORDS,
    IndexManifest,
    is_index,
    read_manifest,
    read_probe,
    read_rows_of,
    read_vectors,
)
from aoe_train.searching.nearest import IndexKind, IndexVectors, Searcher, build, check_kind, nearest
from aoe_train.searching.text_rows import TextRows, text_digest
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.parquet import write_parquet
from pairkit.similarity.bm25 import Bm25
from pairkit.system.files import whole_folder, write_json

MANY = 200_000  # rows from which an index of faiss is the default
_ASKED, _RANK = 200, 10  # rows whose nearest tell the recall
_SEED = 7


@dataclass(frozen=True)
class Indexed:
    """What was indexed.

    Attributes:
        out: The folder.
        rows: How many texts can be found.
        encoded: How many of them were encoded now; the others' vectors were there.
        empty: Rows that were left out, as they have no text.
        dim: Numbers of a vector.
        kind: How vectors are searched: flat or hnsw.
        recall: The share of the ten nearest that the kind finds, over 200 of the rows; 1 if flat.
        bytes: Of the folder.
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
        """Texts, size and recall."""
        left = f", {self.empty:,} rows without a text left out" if self.empty else ""
        return [
            f"{self.rows:,} texts, {self.encoded:,} encoded now{left}; {self.bytes / self.rows:,.0f} bytes"
            f" a text; {self.kind} finds {self.recall:.1%} of the ten nearest"
        ]

    def tables(self) -> list[str]:
        """The folder."""
        return [str(self.out)]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to search it."""
        return [("search it", ["aoe", "search", str(self.out), "TEXT"])]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe index --json`."""
        return {**asdict(self), "out": str(self.out)}


def check_place(out: Path) -> None:
    """Refuse to replace what is no index, before anything is read."""
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or is_index(out))):
        raise ConfigError(f"{out}: is there and no index of ours; choose another folder")


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
    """Write an index, whole or not at all."""
    chosen: IndexKind = kind or ("hnsw" if len(rows.texts) >= MANY else "flat")
    check_kind(chosen)
    digests = [text_digest(text) for text in rows.texts]
    # The rows of an index may be indexed anew.
    if DIGEST in rows.frame.columns and rows.frame[DIGEST].to_list() != digests:
        raise DataError(f"the column {DIGEST} would be lost, as an index has its own; rename it")
    probe = embedder.encode([TEXT], embedder.prompts.document)
    matrix, encoded = _vectors(rows.texts, digests, embedder, probe, out)
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
        write_parquet(folder / ROWS, rows.frame.with_columns(pl.Series(DIGEST, digests)))
        np.save(folder / PROBE, probe, allow_pickle=False)
        vectors = _stored(matrix, quantize, folder)
        show(Progress("index words"))
        (folder / WORDS).mkdir()
        Bm25(rows.texts).save(folder / WORDS)
        show(Progress(f"index vectors ({chosen})"))
        index = build(vectors, chosen, folder)
        recall = 1.0 if index is None else measure(vectors, Searcher(vectors, index))
        about = about.model_copy(update={"recall": recall})
        write_json(folder / ABOUT, about.model_dump(mode="json"))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Indexed(out, about.rows, encoded, rows.empty, about.dim, chosen, recall, size)


def measure(vectors: IndexVectors, searcher: Searcher) -> float:
    """The share of the ten nearest of some of the vectors, itself aside, that a searcher finds."""
    asked = np.random.default_rng(_SEED).permutation(len(vectors))[:_ASKED]
    queries = vectors.rows(np.sort(asked))
    exact = nearest(vectors, queries, _RANK + 1).places[:, 1:]
    found = searcher.nearest(queries, _RANK + 1).places
    hits = sum(np.isin(one[one >= 0], other).sum() for one, other in zip(exact, found, strict=True))
    return float(hits / max((exact >= 0).sum(), 1))


def _vectors(
    texts: Sequence[str], digests: Sequence[str], embedder: Embedder, probe: np.ndarray, out: Path
) -> tuple[np.ndarray, int]:
    """Vectors of length 1, float32 (text, dim), and how many of them were made now."""
    place_of, known = _known(out, probe)
    missing = dict.fromkeys(
        text for text, digest in zip(texts, digests, strict=True) if digest not in place_of
    )
    new = _unit(embedder.encode(list(missing), embedder.prompts.document), embedder) if missing else known
    if len(missing) == len(texts):
        return new, len(missing)
    number = {text: row for row, text in enumerate(missing)}
    matrix = np.empty((len(texts), new.shape[1]), np.float32)
    for row, (text, digest) in enumerate(zip(texts, digests, strict=True)):
        matrix[row] = known[place_of[digest]] if digest in place_of else new[number[text]]
    return matrix, len(missing)


def _unit(vectors: np.ndarray, embedder: Embedder) -> np.ndarray:
    """Scaled to length 1, in place."""
    if not np.isfinite(vectors).all():
        raise DataError(f"{embedder.name}: some vectors are no numbers; check the model")
    return scaled_to_one(vectors)


def _known(out: Path, probe: np.ndarray) -> tuple[dict[str, int], np.ndarray]:
    """Places by the digests of texts, and the float32 vectors, of an index of this model that is there.

    A damaged one has none: to build the index again is what its messages ask for.
    """
    nothing: dict[str, int] = {}
    if not (out.exists() and is_index(out)):
        return nothing, np.empty((0, 0), np.float32)
    try:
        about = read_manifest(out)
        if about.vectors == "float32" and same_model(probe, read_probe(out)):
            digests = read_rows_of(out)[DIGEST].to_list()
            places = {digest: row for row, digest in enumerate(digests)}
            return places, read_vectors(out, about).rows(slice(None))
    except DataError:
        pass
    return nothing, np.empty((0, 0), np.float32)


def _stored(matrix: np.ndarray, quantize: Quantize, folder: Path) -> IndexVectors:
    ranges = value_ranges([matrix]) if quantize == "int8" else None
    stored = matrix if ranges is None else quantized(matrix, "int8", ranges)
    np.save(folder / VECTORS, stored, allow_pickle=False)
    if ranges is not None:
        np.save(folder / RANGES, ranges.astype(np.float32), allow_pickle=False)
    return IndexVectors(stored, ranges)
