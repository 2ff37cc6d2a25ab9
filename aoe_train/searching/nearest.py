"""Nearest neighbours: of queries, and all similar pairs of texts; exact, or with a faiss index.

The results of an index are ranked again by the exact vectors, so its codes can only reduce recall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.model.quantization import Vectors
from aoe_train.objectives.training_rows import evenly_spread
from pairkit.base.cli.progress import Listener, Progress
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
# Sizes of the matrices that are multiplied.
_BLOCK_QUERIES = 1024
_BLOCK_TEXTS = 4096
# New pairs after which only the nearest of each text are kept.
_BUFFERED_PAIRS = 1 << 20
# The default of --min-cosine is the mean cosine of the nearest neighbours of a sample, plus some
# standard deviations. benchmarks/duplicate_thresholds.py has the measurements.
_SAMPLE_TEXTS = 1000
_DEVIATIONS = 0.75
# Without these bounds, texts without near-duplicates would get pairs, and equal texts none.
_LOWEST_DEFAULT = 0.6
_HIGHEST_DEFAULT = 0.99
_FEW_TEXTS = 20  # fewer texts have no distribution of cosines
_DEFAULT_OF_FEW = 0.8
_SAME = 1 - 1e-6  # the cosine of equal texts, which rounding can make lower than 1

_NO_TEXTS = np.empty(0, np.int64)


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


def build_faiss(vectors: Vectors, folder: Path) -> object:
    """Make and write an HNSW index, with one thread, because it depends on the order."""
    faiss = _faiss("--kind=hnsw")
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


def read_faiss(folder: Path, shape: tuple[int, ...]) -> object:
    """Read the HNSW index of vectors of this shape."""
    faiss = _faiss("an index of the kind hnsw")
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


class _Pairs(NamedTuple):
    """Similar texts; within one index `first` is less than `second`."""

    first: ndarray
    second: ndarray
    cosine: ndarray

    def at(self, indices: ndarray) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(*(column[indices] for column in self))


_Block = tuple[int, ndarray, _Pairs]
"""The number of finished texts, each text as often as it has neighbours, and the similar pairs."""
_NO_PAIRS = _Pairs(_NO_TEXTS, _NO_TEXTS, np.empty(0, np.float32))


@dataclass(frozen=True)
class TextComparison:
    """Compares the texts of `queries` with those of the searcher, or `within` one index with each other."""

    searcher: Searcher
    queries: Vectors
    within: bool

    def usual_minimum(self) -> float:
        """The default of the minimum cosine, by the nearest neighbours of a sample of texts."""
        if min(len(self.searcher.vectors), len(self.queries)) < _FEW_TEXTS:
            return _DEFAULT_OF_FEW
        nearest = self._highest_cosines(evenly_spread(len(self.queries), _SAMPLE_TEXTS))
        minimum = nearest.mean() + _DEVIATIONS * nearest.std()
        minimum = float(minimum.clip(_LOWEST_DEFAULT, _HIGHEST_DEFAULT))
        return round(minimum, 2)

    def highest_cosine(self) -> float | None:
        """The highest cosine of two texts; None if there is only one text."""
        if self.within and len(self.queries) == 1:
            return None
        cosines = self._highest_cosines(np.arange(len(self.queries)))
        return float(cosines.max())

    def _highest_cosines(self, places: ndarray) -> ndarray:
        """The cosine of the nearest other text of each of these texts."""
        highest = []
        for start in range(0, len(places), _BLOCK_QUERIES):
            block = places[start : start + _BLOCK_QUERIES]
            nearest = self.searcher.nearest(self.queries[block], 1 + self.within)
            is_other = nearest.places >= 0
            if self.within:
                is_other &= nearest.places != block[:, None]
            cosines = np.where(is_other, nearest.scores, -1)
            highest.append(cosines.max(axis=1))
        return np.concatenate(highest)

    def similar_pairs(
        self,
        min_cosine: float,
        *,
        neighbours: int,
        show: Listener,
    ) -> tuple[pl.DataFrame, int]:
        """Indices and cosines of similar pairs, and the number of texts with more than `neighbours`."""
        min_cosine = min(min_cosine, _SAME)
        if self.searcher.index is None:
            blocks = self._compare_all(min_cosine)
        else:
            blocks = self._search_neighbours(min_cosine, neighbours)
        total = len(self.queries)
        counts = np.zeros(total, np.int64)
        buffer = [_NO_PAIRS]  # the kept pairs, then new ones
        num_new = 0
        for finished, texts, pairs in blocks:
            show(Progress("compare texts", finished, total))
            if not len(texts):
                continue
            np.add.at(counts, texts, 1)
            buffer.append(pairs)
            num_new += len(pairs.cosine)
            if num_new > len(buffer[0].cosine) + _BUFFERED_PAIRS:
                buffer = [_nearest_of_each(buffer, neighbours, within=self.within)]
                num_new = 0
        show(Progress("compare texts", total, total, ended=True))

        kept = _nearest_of_each(buffer, neighbours, within=self.within)
        frame = pl.DataFrame(
            {
                "place1": kept.first,
                "place2": kept.second,
                "cosine": np.minimum(kept.cosine, 1),
            }
        )
        # Cosines above 1 are rounding errors, but they order pairs.
        order = np.lexsort((kept.second, kept.first, -kept.cosine))
        return frame[order], int((counts > neighbours).sum())

    def _compare_all(self, min_cosine: float) -> Iterator[_Block]:
        """All similar pairs, each once, by comparing all texts."""
        for start, block in self._query_blocks():
            lowest = start if self.within else 0
            for first in range(lowest, len(self.searcher.vectors), _BLOCK_TEXTS):
                others = self.searcher.vectors[first : first + _BLOCK_TEXTS]
                products = block @ others.T
                if self.within and first == start:
                    products[np.tril_indices(len(block), m=products.shape[1])] = -np.inf
                hits = np.flatnonzero(products >= min_cosine)
                rows, columns = np.divmod(hits, products.shape[1])
                cosines = products.ravel()[hits]
                pairs = _Pairs(rows + start, columns + first, cosines)
                texts = pairs.first
                if self.within:
                    texts = np.concatenate([pairs.first, pairs.second])
                yield start + len(block), texts, pairs

    def _search_neighbours(
        self, min_cosine: float, neighbours: int
    ) -> Iterator[_Block]:
        """The similar pairs that a faiss index finds; some of them twice."""
        # One neighbour more shows whether there are more. Within one index, the text itself is also found.
        count = min(neighbours + 1 + self.within, len(self.searcher.vectors))
        for start, block in self._query_blocks():
            nearest = self.searcher.nearest(block, count)
            numbers = np.arange(start, start + len(block))
            rows = np.broadcast_to(numbers[:, None], nearest.places.shape)
            is_similar = (nearest.scores >= min_cosine) & (nearest.places >= 0)
            if self.within:
                is_similar &= nearest.places != rows
            texts = rows[is_similar]
            first = texts
            second = nearest.places[is_similar]
            if self.within:
                first, second = np.sort([first, second], axis=0)
            pairs = _Pairs(first, second, nearest.scores[is_similar])
            yield start + len(block), texts, pairs

    def _query_blocks(self) -> Iterator[tuple[int, ndarray]]:
        """The vectors of `queries` in blocks, with the index of the first one."""
        for start in range(0, len(self.queries), _BLOCK_QUERIES):
            yield start, self.queries[start : start + _BLOCK_QUERIES]


def _nearest_of_each(parts: Sequence[_Pairs], count: int, *, within: bool) -> _Pairs:
    """The distinct pairs in which one text is among the `count` nearest of the other; ties by place."""
    joined = _Pairs(*map(np.concatenate, zip(*parts, strict=True)))
    keys = joined.first * (joined.second.max(initial=0) + 1) + joined.second
    _, distinct = np.unique(keys, return_index=True)
    pairs = joined.at(distinct)
    texts, neighbours, cosines = pairs
    if within:
        # Each pair is listed twice, once for each of its texts.
        texts = np.concatenate([pairs.first, pairs.second])
        neighbours = np.concatenate([pairs.second, pairs.first])
        cosines = np.concatenate([cosines, cosines])

    order = np.lexsort((neighbours, -cosines, texts))
    ranked = texts[order]
    ranks = np.arange(len(ranked)) - np.searchsorted(ranked, ranked)
    near = order[ranks < count]
    if within:
        near %= max(len(pairs.first), 1)
    return pairs.at(np.unique(near))
