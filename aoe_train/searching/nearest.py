"""The nearest of many vectors: looking at all of them, or at some by an index of faiss.

What an index proposes is compared again by the vectors themselves, so that its codes cost recall and not
the order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from aoe_train.model.quantization import restored
from pairkit.app.errors import DataError
from pairkit.app.extras import needed_for

if TYPE_CHECKING:
    from jaxtyping import Float, Int

IndexKind = Literal["flat", "hnsw"]
KINDS: tuple[IndexKind, ...] = get_args(IndexKind)
INDEX_FILE = "index.faiss"
_BLOCK = 1 << 15  # vectors that are compared at once
_PROPOSED = 5  # times as many as are asked for, and at least
_LEAST_PROPOSED = 100
_FEW = 20_000  # rows that a filter leaves: all of them are compared
_LINKS, _BREADTH_BUILT, _BREADTH = 32, 200, 128  # of HNSW's graph
_LEARNT = 100_000  # vectors that codes are learnt from
_SEED = 1234


class Neighbours(NamedTuple):
    """The nearest, best first; ties in order of place. Where there are fewer, the place is -1."""

    scores: Float[np.ndarray, "query rank"]
    places: Int[np.ndarray, "query rank"]


class IndexVectors:
    """Vectors of length 1 as they lie on disk: float32, or int8 with the ranges of each dimension."""

    def __init__(self, stored: np.ndarray, ranges: np.ndarray | None = None) -> None:
        """Take them."""
        self._stored, self._ranges = stored, ranges
        self.shape: tuple[int, int] = (stored.shape[0], stored.shape[1])

    def __len__(self) -> int:
        """How many."""
        return len(self._stored)

    def rows(self, places: slice | Int[np.ndarray, " row"]) -> Float[np.ndarray, "row dim"]:
        """Some of them, float32."""
        found = np.asarray(self._stored[places])
        return found if self._ranges is None else restored(found, "int8", found.shape[1], self._ranges)


def nearest(
    vectors: IndexVectors,
    queries: Float[np.ndarray, "query dim"],
    count: int,
    places: np.ndarray | None = None,
) -> Neighbours:
    """Exactly, by comparing with all of the vectors, or with those at some ascending places."""
    whole = len(vectors) if places is None else len(places)
    # Rows that follow one another are read where they lie, which spares a copy of all of them.
    first = 0 if places is None else int(places[0]) if _adjoin(places) else None
    scores = np.empty((len(queries), 0), np.float32)
    found = np.empty((len(queries), 0), np.int64)
    for start in range(0, whole, _BLOCK):
        stop = min(start + _BLOCK, whole)
        some = np.arange(start, stop) if places is None else places[start:stop]
        products = queries @ vectors.rows(some if first is None else slice(first + start, first + stop)).T
        scores = np.concatenate([scores, products], axis=1)
        found = np.concatenate([found, np.broadcast_to(some, products.shape)], axis=1)
        scores, found = _highest(scores, found, count)
    return _padded(scores, found, count)


def _adjoin(places: np.ndarray) -> bool:
    return bool(len(places) and places[-1] - places[0] + 1 == len(places))


def _highest(scores: np.ndarray, places: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` highest of each row; ties by the lower place, so that blocks decide nothing."""
    if scores.shape[1] > 4 * count:
        least = -np.partition(-scores, count - 1, axis=1)[:, count - 1]
        width = int((scores >= least[:, None]).sum(axis=1).max())
        kept = np.argpartition(-scores, min(width, scores.shape[1] - 1), axis=1)[:, :width]
        scores, places = np.take_along_axis(scores, kept, 1), np.take_along_axis(places, kept, 1)
    order = np.lexsort((places, -scores), axis=1)[:, :count]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)


def _padded(scores: np.ndarray, places: np.ndarray, count: int) -> Neighbours:
    missing = count - scores.shape[1]
    if missing <= 0:
        return Neighbours(scores, places)
    rows = len(scores)
    return Neighbours(
        np.concatenate([scores, np.full((rows, missing), -np.inf, np.float32)], axis=1),
        np.concatenate([places, np.full((rows, missing), -1, np.int64)], axis=1),
    )


class Searcher:
    """Finds the nearest of vectors, by an index of faiss where there is one."""

    def __init__(self, vectors: IndexVectors, index: Any = None) -> None:
        self._vectors, self._index = vectors, index

    @property
    def is_exact(self) -> bool:
        """Whether all vectors are compared."""
        return self._index is None

    def nearest(
        self, queries: Float[np.ndarray, "query dim"], count: int, places: np.ndarray | None = None
    ) -> Neighbours:
        """The `count` nearest vectors to each query, of all or of those at some ascending places."""
        few = places is not None and len(places) <= _FEW
        if self._index is None or few:
            return nearest(self._vectors, queries, count, places)
        asked = max(_PROPOSED * count, _LEAST_PROPOSED)
        _, proposed = self._index.search(queries, asked, params=_parameters(asked, places))
        every = [self._rescored(query, row, count) for query, row in zip(queries, proposed, strict=True)]
        return Neighbours(
            np.concatenate([one.scores for one in every]), np.concatenate([one.places for one in every])
        )

    def _rescored(self, query: np.ndarray, proposed: np.ndarray, count: int) -> Neighbours:
        places = np.unique(proposed[proposed >= 0])
        return nearest(self._vectors, query[None], count, places)


def _parameters(asked: int, places: np.ndarray | None) -> Any:
    faiss = _faiss("a search")
    chosen = {} if places is None else {"sel": faiss.IDSelectorBatch(places)}
    return faiss.SearchParametersHNSW(efSearch=max(_BREADTH, asked), **chosen)


def build(vectors: IndexVectors, kind: IndexKind, folder: Path) -> Any:
    """Make an index of faiss and write it; None for `flat`, which has none.

    By one thread, since HNSW's graph depends on which of several comes first.
    """
    if kind == "flat":
        return None
    faiss = _faiss(f"--kind {kind}")
    dim, threads = vectors.shape[1], faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _BREADTH_BUILT
        index.train(vectors.rows(_sample(len(vectors))))
        for start in range(0, len(vectors), _BLOCK):
            index.add(vectors.rows(slice(start, start + _BLOCK)))
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(index, str(folder / INDEX_FILE))
    return index


def check_kind(kind: IndexKind) -> None:
    """Refuse, before texts are encoded, a kind that can't be built."""
    if kind != "flat":
        _faiss(f"--kind {kind}")


def _sample(count: int) -> slice | np.ndarray:
    """What an index learns its codes from."""
    if count <= _LEARNT:
        return slice(0, count)
    return np.sort(np.random.default_rng(_SEED).choice(count, _LEARNT, replace=False))


def read(folder: Path, kind: IndexKind) -> Any:
    """The index of faiss in a folder; None for `flat`."""
    if kind == "flat":
        return None
    faiss = _faiss(f"an index of the kind {kind}")
    try:
        return faiss.read_index(str(folder / INDEX_FILE))
    except RuntimeError as error:  # which faiss raises for any file that it can't read
        raise DataError("not readable; build the index again", path=folder / INDEX_FILE) from error


def _faiss(what: str) -> Any:
    """The library; its own annotations lack what it makes while it is imported."""
    with needed_for(what, "search"):
        import faiss

    return faiss
