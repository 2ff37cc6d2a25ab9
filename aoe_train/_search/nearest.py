"""The nearest of many vectors: looking at all of them, or at some by an index of faiss.

What an index proposes is compared again by the vectors themselves, so that its codes cost recall and not
the order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from aoe_train._small import restored
from pairkit.errors import ConfigError, DataError
from pairkit.extras import needed_for

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Kind = Literal["flat", "hnsw", "ivf-pq"]
KINDS: tuple[Kind, ...] = get_args(Kind)
INDEX_FILE = "index.faiss"
_BLOCK = 1 << 15  # vectors that are compared at once
_PROPOSED = 5  # times as many as are asked for, and at least
_LEAST_PROPOSED = 100
_FEW = 20_000  # rows that a filter leaves: all of them are compared
_LINKS, _BREADTH_BUILT, _BREADTH = 32, 200, 128  # of HNSW's graph
_CODE_BITS = 8  # of a part of a vector, in ivf-pq
_SEED = 1234


class Found(NamedTuple):
    """The nearest, best first; ties in order of place. Where there are fewer, the place is -1."""

    scores: Float[np.ndarray, "query rank"]
    places: Int[np.ndarray, "query rank"]


class Vectors:
    """Vectors of length 1 as they lie on disk: float32, or int8 with the ranges of each dimension."""

    def __init__(self, stored: np.ndarray, ranges: np.ndarray | None = None) -> None:
        """Take them.

        Args:
            stored: (row, dim), mapped from the disk perhaps.
            ranges: Of int8, the lowest and the highest value of each dimension, float32 (2, dim).
        """
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
    vectors: Vectors, queries: Float[np.ndarray, "query dim"], count: int, places: np.ndarray | None = None
) -> Found:
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


def _padded(scores: np.ndarray, places: np.ndarray, count: int) -> Found:
    missing = count - scores.shape[1]
    if missing <= 0:
        return Found(scores, places)
    rows = len(scores)
    return Found(
        np.concatenate([scores, np.full((rows, missing), -np.inf, np.float32)], axis=1),
        np.concatenate([places, np.full((rows, missing), -1, np.int64)], axis=1),
    )


class Searcher:
    """Finds the nearest of vectors, by an index of faiss where there is one."""

    def __init__(self, vectors: Vectors, index: Any = None) -> None:
        self._vectors, self._index = vectors, index

    def nearest(
        self, queries: Float[np.ndarray, "query dim"], count: int, places: np.ndarray | None = None
    ) -> Found:
        """The `count` nearest vectors to each query, of all or of those at some ascending places.

        Args:
            queries: Float32, of length 1.
            count: At least 1.
            places: Which rows may be found; None for all.
        """
        few = places is not None and len(places) <= _FEW
        if self._index is None or few:
            return nearest(self._vectors, queries, count, places)
        asked = max(_PROPOSED * count, _LEAST_PROPOSED)
        _, proposed = self._index.search(queries, asked, params=_parameters(self._index, asked, places))
        every = [self._rescored(query, row, count) for query, row in zip(queries, proposed, strict=True)]
        return Found(
            np.concatenate([one.scores for one in every]), np.concatenate([one.places for one in every])
        )

    def _rescored(self, query: np.ndarray, proposed: np.ndarray, count: int) -> Found:
        places = np.unique(proposed[proposed >= 0])
        return nearest(self._vectors, query[None], count, places)


def _parameters(index: Any, asked: int, places: np.ndarray | None) -> Any:
    faiss = _faiss("a search")
    chosen = {} if places is None else {"sel": faiss.IDSelectorBatch(places)}
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(efSearch=max(_BREADTH, asked), **chosen)
    return faiss.SearchParametersIVF(nprobe=max(1, index.nlist // 16), **chosen)


def build(vectors: Vectors, kind: Kind, folder: Path) -> Any:
    """Make an index of faiss and write it; None for `flat`, which has none.

    By one thread, since HNSW's graph depends on which of several comes first.

    Raises:
        ConfigError: faiss is not installed.
    """
    if kind == "flat":
        return None
    faiss = _faiss(f"--kind {kind}")
    dim, threads = vectors.shape[1], faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index = _empty(kind, dim, len(vectors))
        index.train(vectors.rows(_sample(len(vectors), getattr(index, "nlist", 0))))
        for start in range(0, len(vectors), _BLOCK):
            index.add(vectors.rows(slice(start, start + _BLOCK)))
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(index, str(folder / INDEX_FILE))
    return index


def check_kind(kind: Kind, count: int) -> None:
    """Refuse, before texts are encoded, a kind that can't be built.

    Raises:
        ConfigError: faiss is not installed, or there are too few texts.
    """
    if kind == "flat":
        return
    _faiss(f"--kind {kind}")
    if kind == "ivf-pq" and count < 1 << _CODE_BITS:
        raise ConfigError(
            f"--kind ivf-pq: {count:,} texts; it needs at least {1 << _CODE_BITS} to learn codes from; choose"
            " flat"
        )


def _empty(kind: Kind, dim: int, count: int) -> Any:
    faiss = _faiss(f"--kind {kind}")
    if kind == "hnsw":
        graph = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BREADTH_BUILT
        return graph
    lists = max(1, min(int(4 * count**0.5), count // 40))
    codes = next(parts for parts in (dim // 8, dim // 4, dim // 2, dim, 1) if parts and dim % parts == 0)
    return faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, lists, codes, _CODE_BITS, faiss.METRIC_INNER_PRODUCT)


def _sample(count: int, lists: int) -> slice | np.ndarray:
    """What an index learns its codes and lists from; faiss wants 39 vectors for each list."""
    most = max(100_000, 40 * lists)
    if count <= most:
        return slice(0, count)
    return np.sort(np.random.default_rng(_SEED).choice(count, most, replace=False))


def read(folder: Path, kind: Kind, shape: tuple[int, int]) -> Any:
    """The index of faiss in a folder, of vectors (row, dim); None for `flat`.

    Raises:
        ConfigError: faiss is not installed.
        DataError: Damaged, or of other vectors.
    """
    if kind == "flat":
        return None
    faiss = _faiss(f"an index of the kind {kind}")
    try:
        found = faiss.read_index(str(folder / INDEX_FILE))
    except RuntimeError as error:  # which faiss raises for any file that it can't read
        raise DataError("not readable; build the index again", path=folder / INDEX_FILE) from error
    if not isinstance(found, faiss.IndexHNSW if kind == "hnsw" else faiss.IndexIVF):
        raise DataError(f"is not of the kind {kind}; build the index again", path=folder / INDEX_FILE)
    if (found.ntotal, found.d) != shape:
        raise DataError(
            f"is of {found.ntotal:,} vectors of {found.d} numbers, not of {shape[0]:,} of {shape[1]}; build"
            " the index again",
            path=folder / INDEX_FILE,
        )
    return found


def _faiss(what: str) -> Any:
    """The library; its own annotations lack what it makes while it is imported."""
    with needed_for(what, "search"):
        import faiss

    return faiss
