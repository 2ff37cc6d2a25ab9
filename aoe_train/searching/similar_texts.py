"""Near-duplicates by vectors: pairs of similar texts, and their groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.model.quantization import Vectors
from aoe_train.objectives.training_rows import evenly_spread
from aoe_train.searching.index_rows import as_json, with_rows
from aoe_train.searching.nearest import Searcher
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.cli.result_table import ResultTable
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import spoken_notes
from pairkit.base.printable import one_line
from pairkit.dataset.table_files import write_table
from pairkit.similarity.groups import Groups

if TYPE_CHECKING:
    from aoe_train.searching.index import SearchIndex

# Sizes of the matrices that are multiplied.
_BLOCK_QUERIES = 1024
_BLOCK_TEXTS = 4096
# New pairs after which only the nearest of each text are kept.
_BUFFERED_PAIRS = 1 << 20
_BLOCK_PAIRS = 4096  # pairs that are written at a time
_SHOWN = 100  # characters of a text in a table
_MEMBERS = 5  # texts of a group in a table
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


@dataclass(frozen=True, eq=False)
class NearDuplicates(CommandResult):
    """Pairs of similar texts, within an index or between two.

    Attributes:
        pairs: `place1`, `place2` and `cosine`, the most similar first. Within one index place1 < place2.
        queries: The index of the first text of each pair.
        index: The index of the second text; the same if it was compared with itself.
        full: Number of texts with more neighbours than were kept.
        min_cosine: The minimum cosine of a pair.
        chosen: Whether the minimum was chosen by the cosines of the texts.
        highest: The highest cosine of two texts, if there is no pair.
    """

    pairs: pl.DataFrame
    queries: SearchIndex
    index: SearchIndex
    full: int
    min_cosine: float
    chosen: bool
    highest: float | None

    @property
    def texts(self) -> int:
        """Number of texts that were compared with others."""
        return len(self.queries)

    @property
    def within(self) -> bool:
        """Whether both texts of a pair are in one index, so that there are groups."""
        return self.queries is self.index

    def rows(self, start: int = 0, count: int | None = None) -> pl.DataFrame:
        """Pairs with all columns of both rows, with the suffixes _1 and _2.

        Within one index also `group`, the number of their group from 1. All pairs at once may need far more
        memory than the index.
        """
        pairs = self.pairs.slice(start, count)
        first = pairs["place1"].to_list()
        second = pairs["place2"].to_list()
        if self.within:
            numbers = [self._group_numbers[place] for place in first]
            pairs = pairs.with_columns(group=pl.Series(numbers, dtype=pl.Int64))
        return with_rows(
            pairs, self.queries.keyed_rows(first), self.index.keyed_rows(second)
        )

    @cached_property
    def groups(self) -> list[list[int]]:
        """Groups of connected places, the largest first; empty between two indexes."""
        if not self.within:
            return []
        groups: Groups[int] = Groups()
        for first, second in self.pairs.select("place1", "place2").iter_rows():
            groups.join(first, second)
        return sorted(groups.all().values(), key=lambda group: (-len(group), group))

    @cached_property
    def _group_numbers(self) -> dict[int, int]:
        """The number of each text's group."""
        numbers: dict[int, int] = {}
        for number, group in enumerate(self.groups, 1):
            numbers |= dict.fromkeys(group, number)
        return numbers

    @spoken_notes
    def notes(self) -> list[str]:
        """Counts of pairs and groups, and the threshold."""
        counts = f"texts: {self.texts:,}, similar pairs: {len(self.pairs):,}"
        if self.within:
            counts += f", groups: {len(self.groups):,}"
        counts += f", minimum cosine: {self.min_cosine:g}"
        if self.full:
            counts += f"; texts with more neighbours: {self.full:,}; raise --neighbours"
        notes = [counts]
        if self.highest is not None:
            lower = math.floor(50 * self.highest) / 50
            notes.append(
                f"the highest cosine is {self.highest:.3f}; try --min-cosine {lower:g}"
            )
        elif self.chosen:
            notes.append(
                "the minimum was chosen by the cosines of these texts; --min-cosine sets another"
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        """The object of `aoe duplicates --json`."""
        pairs = [as_json(row) for row in self.rows().iter_rows(named=True)]
        counts = {
            "texts": self.texts,
            "full": self.full,
            "min_cosine": self.min_cosine,
            "groups": [self.queries.keys(group) for group in self.groups],
        }
        return {**as_json(counts), "pairs": pairs}

    def write(self, out: str | Path) -> None:
        """Write the pairs with both rows as .csv, .tsv, .jsonl or .parquet, a few thousand at a time.

        Raises:
            ConfigError: `out` exists, or can't be written.
        """
        write_table(Path(out), self._row_blocks(), self.rows(0, 0).schema)

    def _row_blocks(self) -> Iterator[pl.DataFrame]:
        for start in range(0, len(self.pairs), _BLOCK_PAIRS):
            yield self.rows(start, _BLOCK_PAIRS)

    def tables(self) -> list[ResultTable]:
        """The table of the largest groups, or of the first pairs."""
        return [self.table()]

    def table(self, rows: int = 20) -> ResultTable:
        """The largest groups with their lowest cosine, or the first pairs between two indexes."""
        return self._group_table(rows) if self.within else self._pair_table(rows)

    def _group_table(self, rows: int) -> ResultTable:
        headings = ("group", "texts", "cosine", self.queries.key_column, "text")
        table = ResultTable(*headings, left=("text",))
        for number, group in enumerate(self.groups[:rows], 1):
            group_pairs = self.pairs.filter(pl.col("place1").is_in(group))
            lowest = group_pairs["cosine"].to_numpy().min()
            first, *others = _shown(self.queries, group[:_MEMBERS])
            table.add_row(number, len(group), f"{lowest:.3f}", *first)
            for text in others:
                table.add_row("", "", "", *text)
            hidden = len(group) - _MEMBERS
            if hidden > 0:
                table.add_row("", "", "", "…", f"{hidden:,} more")
        return table

    def _pair_table(self, rows: int) -> ResultTable:
        table = ResultTable("cosine", self.index.key_column, "text", left=("text",))
        pairs = self.pairs.head(rows)
        texts1 = _shown(self.queries, pairs["place1"].to_list())
        texts2 = _shown(self.index, pairs["place2"].to_list())
        for cosine, first, second in zip(pairs["cosine"], texts1, texts2, strict=True):
            table.add_row(f"{cosine:.3f}", *first)
            table.add_row("", *second)
        return table


def _shown(index: SearchIndex, places: list[int]) -> list[tuple[str, str]]:
    """The key of each row, and the start of its text."""
    keys = [one_line(str(key), _SHOWN) for key in index.keys(places)]
    texts = [one_line(text, _SHOWN) for text in index.texts(places)]
    return list(zip(keys, texts, strict=True))


class _Pairs(NamedTuple):
    """Similar texts; within one index `first` is less than `second`."""

    first: ndarray
    second: ndarray
    cosine: ndarray

    def at(self, indices: ndarray) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(*(column[indices] for column in self))


_NO_TEXTS = np.empty(0, np.int64)
_NO_PAIRS = _Pairs(_NO_TEXTS, _NO_TEXTS, np.empty(0, np.float32))


class _Block(NamedTuple):
    """Similar pairs of some texts."""

    finished: int  # number of texts
    texts: ndarray  # each text, as often as it has neighbours
    pairs: _Pairs


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
        for block in blocks:
            show(Progress("compare texts", block.finished, total))
            if not len(block.texts):
                continue
            np.add.at(counts, block.texts, 1)
            buffer.append(block.pairs)
            num_new += len(block.pairs.cosine)
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
                yield _Block(start + len(block), texts, pairs)

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
            yield _Block(start + len(block), texts, pairs)

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
