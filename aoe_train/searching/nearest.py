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
_HNSW_LINKS = 32
_HNSW_EF_CONSTRUCTION = 200
_HNSW_EF_SEARCH = 128
_MAX_TRAINING = 100_000  # vectors that train the quantizer
_TRAINING_SEED = 1234


class Neighbours(NamedTuple):
    """The nearest, best first; ties are in index order. Missing ones have the place -1."""

    scores: Float[ndarray, "query rank"]
    places: Int[ndarray, "query rank"]


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
        total = len(self.vectors) if places is None else len(places)
        is_small = places is not None and total <= _MAX_EXACT
        if self.index is None or is_small:
            return nearest(self.vectors, queries, count, places)
        candidates = max(_OVERSAMPLING * count, _MIN_CANDIDATES)
        faiss = _faiss("a search")
        parameters = faiss.SearchParametersHNSW(
            sel=None if places is None else faiss.IDSelectorBatch(places),
            efSearch=max(_HNSW_EF_SEARCH, candidates),
        )
        _, hits = self.index.search(queries, candidates, params=parameters)
        scores = []
        best = []
        for query, row in zip(queries, hits, strict=True):
            found = np.unique(row[row >= 0])
            # The graph is searched near the query, where few vectors may pass the filter.
            among = places if len(found) < min(candidates, total) else found
            exact = nearest(self.vectors, query[None], count, among)
            scores.append(exact.scores)
            best.append(exact.places)
        return Neighbours(np.concatenate(scores), np.concatenate(best))


def nearest(
    vectors: Vectors,
    queries: Float[ndarray, "query dim"],
    count: int,
    places: ndarray | None = None,
) -> Neighbours:
    """Exact search among all vectors, or those at ascending places."""
    total = len(vectors) if places is None else len(places)
    found = Neighbours(
        scores=np.empty((len(queries), 0), np.float32),
        places=np.empty((len(queries), 0), np.int64),
    )
    for start in range(0, total, _BLOCK_VECTORS):
        stop = min(start + _BLOCK_VECTORS, total)
        block = np.arange(start, stop) if places is None else places[start:stop]
        is_contiguous = block[-1] - block[0] + 1 == len(block)
        # A slice is read without a copy.
        rows = slice(block[0], block[-1] + 1) if is_contiguous else block
        scores = queries @ vectors[rows].T
        block_places = np.broadcast_to(block, scores.shape)
        candidates = Neighbours(
            np.concatenate([found.scores, scores], axis=1),
            np.concatenate([found.places, block_places], axis=1),
        )
        found = _best(candidates, count)
    padding = ((0, 0), (0, count - found.scores.shape[1]))
    return Neighbours(
        scores=np.pad(found.scores, padding, constant_values=-np.inf),
        places=np.pad(found.places, padding, constant_values=-1),
    )


def _best(candidates: Neighbours, count: int) -> Neighbours:
    """The `count` best of each query; ties by place, so that the result doesn't depend on blocks."""
    scores, places = candidates
    if scores.shape[1] > 4 * count:
        # Sort only scores that aren't below the last one wanted, which may have many ties.
        lowest = np.partition(scores, -count, axis=1)[:, -count]
        width = np.count_nonzero(scores >= lowest[:, None], axis=1).max()
        kept = np.argpartition(scores, -width, axis=1)[:, -width:]
        scores = np.take_along_axis(scores, kept, 1)
        places = np.take_along_axis(places, kept, 1)
    order = np.lexsort((places, -scores), axis=1)[:, :count]
    return Neighbours(
        np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)
    )


def build_faiss(vectors: Vectors, kind: IndexKind, folder: Path) -> Any:
    """Make and write a faiss index, with one thread, as HNSW depends on the order; None for `flat`."""
    if kind == "flat":
        return None
    faiss = _faiss(f"--kind={kind}")
    index = faiss.IndexHNSWSQ(
        vectors.shape[1],
        faiss.ScalarQuantizer.QT_8bit,
        _HNSW_LINKS,
        faiss.METRIC_INNER_PRODUCT,
    )
    index.hnsw.efConstruction = _HNSW_EF_CONSTRUCTION
    sample: slice | ndarray = slice(None)
    if len(vectors) > _MAX_TRAINING:
        random = np.random.default_rng(_TRAINING_SEED)
        sample = np.sort(random.choice(len(vectors), _MAX_TRAINING, replace=False))
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
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
