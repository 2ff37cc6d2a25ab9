"""Which texts of an index say nearly the same: near pairs, and the groups that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train.searching.nearest import IndexVectors, Searcher
from aoe_train.searching.text_rows import as_json, naming_column, with_rows
from pairkit.app.printable import one_line
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.parquet import stream_parquet
from pairkit.similarity.groups import Groups
from pairkit.system.files import check_free

if TYPE_CHECKING:
    from aoe_train.searching.index import SearchIndex
    from pairkit.app.result_table import ResultTable

_QUERIES = 512  # texts whose nearest are looked for at once
_WRITTEN = 4096  # pairs at once
_SHOWN = 100  # characters of a text
NEIGHBOURS, LEAST = 50, 0.9


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Pairs of texts that are near.

    Attributes:
        pairs: `place1`, `place2` and `cosine`, the nearest first. Within one index place1 is the lower.
        asked: The index that has the first text of each pair.
        index: The one that has the second; the same where it was compared with itself.
        full: Texts all of whose neighbours were near: they may have more than are looked for.
    """

    pairs: pl.DataFrame
    asked: SearchIndex
    index: SearchIndex
    full: int

    @property
    def texts(self) -> int:
        """How many were compared with others."""
        return len(self.asked)

    @property
    def within(self) -> bool:
        """Whether both are of one index, so that they make groups."""
        return self.asked is self.index

    def rows(self, start: int = 0, count: int | None = None) -> pl.DataFrame:
        """Some pairs with all columns of both rows, which have _1 and _2 behind their names.

        All of them at once may take far more memory than the index does.
        """
        pairs = self.pairs.slice(start, count)
        ones, others = pairs["place1"].to_list(), pairs["place2"].to_list()
        return with_rows(pairs, self.asked.rows[ones], self.index.rows[others])

    @cached_property
    def groups(self) -> list[list[int]]:
        """Places that pairs tie together, the largest groups first; none between two indexes."""
        if not self.within:
            return []
        tied: Groups[int] = Groups()
        for one, other in self.pairs.select("place1", "place2").iter_rows():
            tied.join(one, other)
        return sorted(tied.all().values(), key=lambda group: (-len(group), group))

    def notes(self) -> list[str]:
        """Counts of pairs and groups."""
        groups = f" in {len(self.groups):,} groups" if self.within else ""
        more = f"; {self.full:,} texts may have more: raise --neighbours" if self.full else ""
        return [f"{len(self.pairs):,} pairs of {self.texts:,} texts{groups}{more}"]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe duplicates --json`."""
        return {
            "texts": self.texts,
            "full": self.full,
            "groups": self.groups,
            "pairs": [as_json(pair) for part in self._parts() for pair in part.iter_rows(named=True)],
        }

    def write(self, out: str | Path) -> None:
        """Write the pairs with both rows as Parquet, some thousand at a time.

        Raises:
            ConfigError: `out` exists, or can't be written.
        """
        path = Path(out)
        check_free(path)
        stream_parquet(path, self._parts(), dict(self.rows(0, 0).schema))

    def _parts(self) -> Iterator[pl.DataFrame]:
        for start in range(0, len(self.pairs), _WRITTEN):
            yield self.rows(start, _WRITTEN)

    def table(self, rows: int = 20) -> ResultTable:
        """The first pairs, the beginnings of their two texts below each other."""
        from pairkit.app.result_table import ResultTable

        shown = self.pairs.head(rows)
        table = ResultTable("cosine", "row", "text")
        sides = _shown(self.asked, shown["place1"]), _shown(self.index, shown["place2"])
        for pair, one, other in zip(shown.iter_rows(named=True), *sides, strict=True):
            table.add_row(f"{pair['cosine']:.3f}", *one)
            table.add_row("", *other)
        return table


def _shown(index: SearchIndex, places: pl.Series) -> list[tuple[str, str]]:
    """What tells each row from others, and the beginning of its text."""
    own = places.to_list()
    rows = index.rows[own]
    name = naming_column(rows.columns)
    known = own if name is None else rows[name].to_list()
    return [
        (one_line(str(key), _SHOWN), one_line(text, _SHOWN))
        for key, text in zip(known, index.texts(own), strict=True)
    ]


def alike(
    vectors: IndexVectors,
    searcher: Searcher,
    queries: IndexVectors | None,
    least: float,
    *,
    neighbours: int = NEIGHBOURS,
    show: Listener,
) -> tuple[Mapping[str, np.ndarray], int]:
    """Places and cosines of near texts, and how many texts may have more."""
    asked = vectors if queries is None else queries
    ones, others, cosines, full = [], [], [], 0
    count = min(neighbours + (queries is None), len(vectors))
    for start, block in _blocks(asked):
        found = searcher.nearest(block, count)
        rows = np.arange(start, start + len(block))[:, None]
        near = (found.scores >= least) & (found.places >= 0)
        if queries is None:
            itself = found.places == rows
            full += int((near | itself).all(axis=1).sum()) if count < len(vectors) else 0
            near &= ~itself
        else:
            full += int(near.all(axis=1).sum()) if count < len(vectors) else 0
        ones.append(np.broadcast_to(rows, found.places.shape)[near])
        others.append(found.places[near])
        cosines.append(found.scores[near])
        show(Progress("compare texts", start + len(block), len(asked)))
    show(Progress("compare texts", len(asked), len(asked), ended=True))
    pairs = np.concatenate(ones), np.concatenate(others), np.concatenate(cosines)
    return _sorted(*pairs, queries is None), full


def _blocks(vectors: IndexVectors) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(vectors), _QUERIES):
        yield start, vectors.rows(slice(start, start + _QUERIES))


def _sorted(one: np.ndarray, other: np.ndarray, cosine: np.ndarray, within: bool) -> dict[str, np.ndarray]:
    """Each pair once, the nearest first; ties in order of places."""
    if within:
        one, other = np.minimum(one, other), np.maximum(one, other)
        _, first = np.unique(one * (other.max(initial=0) + 1) + other, return_index=True)
        one, other, cosine = one[first], other[first], cosine[first]
    order = np.lexsort((other, one, -cosine))
    return {"place1": one[order], "place2": other[order], "cosine": cosine[order]}
