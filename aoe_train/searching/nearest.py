"""Nearest-neighbour search: exact, or with a faiss index.

The results of an index are ranked again by the exact vectors, so its codes can only reduce recall.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.model.quantization import Vectors
from pairkit.base.errors import DataError
from pairkit.base.extras import needed_for

if TYPE_CHECKING:
    from jaxtyping import Float, Int

IndexKind = Literal["flat", "hnsw"]
INDEX_FILE = "index.faiss"
_BLOCK_VECTORS = 1 << 15
_OVERSAMPLING = 5  # candidates of a faiss index per result
_MIN_CANDIDATES = 100
_MAX_EXACT = 20_000  # filtered rows up to which all are compared
# Parameters of HNSW's graph.
_LINKS = 32
_EF_CONSTRUCTION = 200
_EF_SEARCH = 128
_MAX_TRAINING = 100_000  # vectors that train the codes
_SEED = 1234  # of their choice


class Neighbours(NamedTuple):
    """The nearest, best first; ties are in index order. Missing ones have the place -1."""

    scores: Float[ndarray, "query rank"]
    places: Int[ndarray, "query rank"]


def nearest(
    vectors: Vectors,
    queries: Float[ndarray, "query dim"],
    count: int,
    places: ndarray | None = None,
) -> Neighbours:
    """Exact search among all vectors, or those at ascending places."""
    total = len(vectors) if places is None else len(places)
    scores = np.empty((len(queries), 0), np.float32)
    best = np.empty((len(queries), 0), np.int64)
    for start in range(0, total, _BLOCK_VECTORS):
        stop = min(start + _BLOCK_VECTORS, total)
        block = np.arange(start, stop) if places is None else places[start:stop]
        rows: slice | ndarray = block
        # Contiguous rows are read without a copy.
        if block[-1] - block[0] + 1 == len(block):
            rows = slice(block[0], block[-1] + 1)
        products = queries @ vectors[rows].T
        scores = np.concatenate([scores, products], axis=1)
        best = np.concatenate([best, np.broadcast_to(block, products.shape)], axis=1)
        scores, best = _highest(scores, best, count)
    missing = count - scores.shape[1]
    if missing <= 0:
        return Neighbours(scores, best)
    padding = ((0, 0), (0, missing))
    return Neighbours(
        scores=np.pad(scores, padding, constant_values=-np.inf),
        places=np.pad(best, padding, constant_values=-1),
    )


def _highest(scores: ndarray, places: ndarray, count: int) -> tuple[ndarray, ndarray]:
    """The `count` highest scores of each row; ties by place, so that the result doesn't depend on blocks."""
    if scores.shape[1] > 4 * count:
        lowest = -np.partition(-scores, count - 1, axis=1)[:, count - 1]
        is_high = scores >= lowest[:, None]
        width = int(is_high.sum(axis=1).max())
        last = min(width, scores.shape[1] - 1)
        kept = np.argpartition(-scores, last, axis=1)[:, :width]
        scores = np.take_along_axis(scores, kept, 1)
        places = np.take_along_axis(places, kept, 1)
    order = np.lexsort((places, -scores), axis=1)[:, :count]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)


@dataclass(frozen=True)
class Searcher:
    """Finds the nearest vectors, with a faiss index if there is one; else all vectors are compared."""

    vectors: Vectors
    index: Any = None

    def nearest(
        self,
        queries: Float[ndarray, "query dim"],
        count: int,
        places: ndarray | None = None,
    ) -> Neighbours:
        """The `count` nearest vectors to each query, among all or those at ascending places."""
        is_small = places is not None and len(places) <= _MAX_EXACT
        if self.index is None or is_small:
            return nearest(self.vectors, queries, count, places)
        candidates = max(_OVERSAMPLING * count, _MIN_CANDIDATES)
        faiss = _faiss("a search")
        selector = {} if places is None else {"sel": faiss.IDSelectorBatch(places)}
        parameters = faiss.SearchParametersHNSW(
            efSearch=max(_EF_SEARCH, candidates), **selector
        )
        _, hits = self.index.search(queries, candidates, params=parameters)
        scores = []
        best = []
        for query, row in zip(queries, hits, strict=True):
            candidate_places = np.unique(row[row >= 0])
            exact = nearest(self.vectors, query[None], count, candidate_places)
            scores.append(exact.scores)
            best.append(exact.places)
        return Neighbours(np.concatenate(scores), np.concatenate(best))


def build_faiss(vectors: Vectors, kind: IndexKind, folder: Path) -> Any:
    """Make and write a faiss index, with one thread, as HNSW depends on the order; None for `flat`."""
    if kind == "flat":
        return None
    faiss = _faiss(f"--kind={kind}")
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        codes = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexHNSWSQ(
            vectors.shape[1], codes, _LINKS, faiss.METRIC_INNER_PRODUCT
        )
        index.hnsw.efConstruction = _EF_CONSTRUCTION
        sample: slice | ndarray = slice(None)
        if len(vectors) > _MAX_TRAINING:
            generator = np.random.default_rng(_SEED)
            sample = np.sort(
                generator.choice(len(vectors), _MAX_TRAINING, replace=False)
            )
        index.train(vectors[sample])
        for start in range(0, len(vectors), _BLOCK_VECTORS):
            index.add(vectors[start : start + _BLOCK_VECTORS])
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(index, str(folder / INDEX_FILE))
    return index


def check_kind(kind: IndexKind) -> None:
    """Refuse a kind that needs a missing package, before texts are encoded."""
    if kind != "flat":
        _faiss(f"--kind={kind}")


def read_faiss(folder: Path, kind: IndexKind, shape: tuple[int, ...]) -> Any:
    """Read the faiss index of a folder; None for `flat`."""
    if kind == "flat":
        return None
    faiss = _faiss(f"an index of the kind {kind}")
    path = folder / INDEX_FILE
    try:
        index = faiss.read_index(str(path))
    except RuntimeError as error:  # faiss raises it for all unreadable files
        raise DataError("not readable; build the index again", path=path) from error
    if (index.ntotal, index.d) != shape or not hasattr(index, "hnsw"):
        rows, dim = shape
        raise DataError(
            f"isn't hnsw of {rows:,} x {dim:,}; build the index again", path=path
        )
    return index


def _faiss(feature: str) -> Any:
    """The library, untyped, because its annotations lack classes that it creates during import."""
    with needed_for(feature, "search"):
        import faiss

    return faiss
