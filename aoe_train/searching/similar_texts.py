"""Near-duplicates by vectors: pairs of similar texts, and their groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aoe_train.searching.nearest import IndexVectors, Searcher
from aoe_train.searching.text_rows import as_json, naming_column, with_rows
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.printable import one_line
from pairkit.base.system.files import check_free
from pairkit.dataset.parquet import stream_parquet
from pairkit.similarity.groups import Groups

if TYPE_CHECKING:
    from aoe_train.searching.index import SearchIndex
    from pairkit.base.cli.result_table import ResultTable

_QUERIES, _OTHERS = 1024, 4096  # texts per product of matrices
_BUFFERED_PAIRS = 1 << 20  # until all but the nearest of each text are dropped
_BLOCK_PAIRS = 4096  # that are written at a time
_SHOWN, _MEMBERS = 100, 5  # characters per text, texts per group


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Pairs of similar texts, within an index or between two.

    Attributes:
        pairs: `place1`, `place2` and `cosine`, the most similar first. Within one index place1 < place2.
        asked: The index of the first text of each pair.
        index: The index of the second text; the same if it was compared with itself.
        full: Number of texts with more neighbours than were kept.
    """

    pairs: pl.DataFrame
    asked: SearchIndex
    index: SearchIndex
    full: int

    @property
    def texts(self) -> int:
        """Number of texts that were compared with others."""
        return len(self.asked)

    @property
    def within(self) -> bool:
        """Whether both texts of a pair are in one index, so that there are groups."""
        return self.asked is self.index

    def rows(self, start: int = 0, count: int | None = None) -> pl.DataFrame:
        """Pairs with all columns of both rows, with the suffixes _1 and _2.

        All pairs at once may need far more memory than the index.
        """
        pairs = self.pairs.slice(start, count)
        ones, others = pairs["place1"].to_list(), pairs["place2"].to_list()
        return with_rows(pairs, self.asked.rows[ones], self.index.rows[others])

    @cached_property
    def groups(self) -> list[list[int]]:
        """Groups of connected places, the largest first; empty between two indexes."""
        if not self.within:
            return []
        groups: Groups[int] = Groups()
        for one, other in self.pairs.select("place1", "place2").iter_rows():
            groups.join(one, other)
        return sorted(groups.all().values(), key=lambda group: (-len(group), group))

    def notes(self) -> list[str]:
        """Counts of pairs and groups."""
        groups = f" in {len(self.groups):,} groups" if self.within else ""
        more = f"; {self.full:,} texts have more: raise --neighbours" if self.full else ""
        return [f"{len(self.pairs):,} pairs of {self.texts:,} texts{groups}{more}"]

    def to_dict(self) -> dict[str, Any]:
        """The object of `aoe duplicates --json`."""
        return {
            "texts": self.texts,
            "full": self.full,
            "groups": self.groups,
            "pairs": [as_json(pair) for part in self._parts() for pair in part.iter_rows(named=True)],
        }

    def write(self, out: str | Path) -> None:
        """Write the pairs with both rows as Parquet, a few thousand at a time.

        Raises:
            ConfigError: `out` exists, or can't be written.
        """
        path = Path(out)
        check_free(path)
        stream_parquet(path, self._parts(), dict(self.rows(0, 0).schema))

    def _parts(self) -> Iterator[pl.DataFrame]:
        for start in range(0, len(self.pairs), _BLOCK_PAIRS):
            yield self.rows(start, _BLOCK_PAIRS)

    def table(self, rows: int = 20) -> ResultTable:
        """The largest groups with their lowest cosine, or the first pairs between two indexes."""
        from pairkit.base.cli.result_table import ResultTable

        if self.within:
            table = ResultTable("texts", "cosine", "row", "text")
            for group in self.groups[:rows]:
                lowest = float(self.pairs.filter(pl.col("place1").is_in(group))["cosine"].to_numpy().min())
                heads = [(f"{len(group):,}", f"{lowest:.3f}"), *[("", "")] * len(group)]
                for head, text in zip(heads, _shown(self.asked, group[:_MEMBERS]), strict=False):
                    table.add_row(*head, *text)
                if more := len(group[_MEMBERS:]):
                    table.add_row("", "", "…", f"{more:,} more")
            return table
        shown = self.pairs.head(rows)
        table = ResultTable("cosine", "row", "text")
        sides = (_shown(self.asked, shown["place1"].to_list()), _shown(self.index, shown["place2"].to_list()))
        for pair, one, other in zip(shown.iter_rows(named=True), *sides, strict=True):
            table.add_row(f"{pair['cosine']:.3f}", *one)
            table.add_row("", *other)
        return table


def _shown(index: SearchIndex, places: list[int]) -> list[tuple[str, str]]:
    """The identifier of each row, and the start of its text."""
    rows = index.rows[places]
    name = naming_column(rows.columns)
    ids = places if name is None else rows[name].to_list()
    return [
        (one_line(str(id_), _SHOWN), one_line(text, _SHOWN))
        for id_, text in zip(ids, index.texts(places), strict=True)
    ]


def alike(
    vectors: IndexVectors,
    searcher: Searcher,
    queries: IndexVectors | None,
    least: float,
    *,
    neighbours: int = 50,
    show: Listener,
) -> tuple[Mapping[str, np.ndarray], int]:
    """Indices and cosines of similar pairs, and the number of texts with more than `neighbours` of them."""
    first, within = (vectors, True) if queries is None else (queries, False)
    blocks = _compared(vectors, first, least, within=within)
    if not searcher.is_exact:
        blocks = _searched(vectors, first, least, searcher, neighbours, within=within)
    counts = np.zeros(len(first), np.int64)
    kept, new = _NO_PAIRS, list[_Pairs]()
    for done, texts, pairs in blocks:
        show(Progress("compare texts", done, len(first)))
        if not len(texts):
            continue
        counts += np.bincount(texts, minlength=len(first))
        new.append(pairs)
        if sum(len(block.cosine) for block in new) > len(kept.cosine) + _BUFFERED_PAIRS:
            kept, new = _nearest_of_each([kept, *new], neighbours, within=within), []
    show(Progress("compare texts", len(first), len(first), ended=True))
    one, other, cosine = _nearest_of_each([kept, *new], neighbours, within=within)
    order = np.lexsort((other, one, -cosine))
    ordered = {"place1": one[order], "place2": other[order], "cosine": cosine[order]}
    return ordered, int((counts > neighbours).sum())


class _Pairs(NamedTuple):
    """Similar texts; within one index `one` is less than `other`."""

    one: np.ndarray
    other: np.ndarray
    cosine: np.ndarray


_NO_PAIRS = _Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
_Blocks = Iterator[tuple[int, np.ndarray, _Pairs]]  # finished texts, a text for each of its neighbours, pairs


def _compared(vectors: IndexVectors, queries: IndexVectors, least: float, *, within: bool) -> _Blocks:
    """All similar pairs, each once, by comparing all texts."""
    for start in range(0, len(queries), _QUERIES):
        block = queries.rows(slice(start, start + _QUERIES))
        for first in range(start if within else 0, len(vectors), _OTHERS):
            products = block @ vectors.rows(slice(first, first + _OTHERS)).T
            if within and first == start:
                products[np.tril_indices(len(block), m=products.shape[1])] = -np.inf
            hits = np.flatnonzero(products >= least)
            rows, columns = np.divmod(hits, products.shape[1])
            pairs = _Pairs(rows + start, columns + first, products.ravel()[hits])
            texts = np.concatenate([pairs.one, pairs.other]) if within else pairs.one
            yield start + len(block), texts, pairs


def _searched(
    vectors: IndexVectors,
    queries: IndexVectors,
    least: float,
    searcher: Searcher,
    neighbours: int,
    *,
    within: bool,
) -> _Blocks:
    """The similar pairs that a faiss index finds; some of them twice."""
    count = min(neighbours + 1 + within, len(vectors))  # + 1 shows whether there are more
    for start in range(0, len(queries), _QUERIES):
        block = queries.rows(slice(start, start + _QUERIES))
        found = searcher.nearest(block, count)
        rows = np.broadcast_to(np.arange(start, start + len(block))[:, None], found.places.shape)
        is_similar = (found.scores >= least) & (found.places >= 0)
        if within:
            is_similar &= found.places != rows
        one, other, cosines = rows[is_similar], found.places[is_similar], found.scores[is_similar]
        pairs = _Pairs(one, other, cosines)
        if within:
            pairs = _Pairs(np.minimum(one, other), np.maximum(one, other), cosines)
        yield start + len(block), one, pairs


def _nearest_of_each(parts: Sequence[_Pairs], count: int, *, within: bool) -> _Pairs:
    """The distinct pairs in which one text is among the `count` nearest of the other; ties by place."""
    one, other, cosine = (np.concatenate(column) for column in zip(*parts, strict=True))
    _, first = np.unique(one * (other.max(initial=0) + 1) + other, return_index=True)
    pairs = _Pairs(one[first], other[first], cosine[first])
    texts, neighbours, cosines = pairs
    if within:
        texts, neighbours = np.concatenate([texts, neighbours]), np.concatenate([neighbours, texts])
        cosines = np.concatenate([cosines, cosines])
    order = np.lexsort((neighbours, -cosines, texts))
    ranked = texts[order]
    ranks = np.arange(len(ranked)) - np.searchsorted(ranked, ranked)
    kept = np.zeros(len(pairs.one), bool)
    kept[order[ranks < count] % max(len(kept), 1)] = True
    return _Pairs(pairs.one[kept], pairs.other[kept], pairs.cosine[kept])
