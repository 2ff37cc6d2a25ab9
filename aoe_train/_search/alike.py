"""Which texts of an index say nearly the same: pairs above a cosine, and the groups that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train._search.nearest import Searcher, Vectors
from aoe_train._search.texts import told
from pairkit.errors import ConfigError
from pairkit.groups import Groups
from pairkit.parquet import write_parquet
from pairkit.progress import Listener, Progress

if TYPE_CHECKING:
    from pairkit.result_table import ResultTable

_QUERIES = 512  # texts whose nearest are looked for at once
NEIGHBOURS = 50


@dataclass(frozen=True, eq=False)
class Alike:
    """Pairs of texts that are near.

    Attributes:
        pairs: `place1`, `place2` and `cosine`, the nearest first; and the columns of both rows, with _1 and
            _2 behind their names. Within one index place1 is the lower.
        texts: How many were compared with others.
        full: Texts all of whose neighbours were near: they may have more than are looked for.
        within: Whether both are of one index, so that they make groups.
    """

    pairs: pl.DataFrame
    texts: int
    full: int
    within: bool

    @cached_property
    def groups(self) -> list[list[int]]:
        """Places that pairs tie together, the largest groups first; none between two indexes."""
        if not self.within:
            return []
        tied: Groups[int] = Groups()
        for one, other in self.pairs.select("place1", "place2").iter_rows():
            tied.join(one, other)
        return sorted(tied.all().values(), key=lambda group: (-len(group), group))

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe duplicates --json`."""
        return {
            "texts": self.texts,
            "full": self.full,
            "groups": self.groups,
            "pairs": [told(pair) for pair in self.pairs.iter_rows(named=True)],
        }

    def write(self, out: str | Path) -> None:
        """Write the pairs as Parquet.

        Raises:
            ConfigError: `out` exists, or can't be written.
        """
        path = Path(out)
        if path.exists():
            raise ConfigError(f"{path}: already exists; choose another file, or move it away")
        write_parquet(path, self.pairs)

    def table(self, rows: int = 20) -> ResultTable:
        """The nearest pairs."""
        from pairkit.result_table import ResultTable

        table = ResultTable("cosine", "one", "other")
        for pair in self.pairs.head(rows).iter_rows(named=True):
            table.add_row(f"{pair['cosine']:.3f}", pair["place1"], pair["place2"])
        return table


def alike(
    vectors: Vectors,
    searcher: Searcher,
    queries: Vectors | None,
    least: float,
    *,
    neighbours: int = NEIGHBOURS,
    show: Listener,
) -> tuple[Mapping[str, np.ndarray], int]:
    """Places and cosines of near texts, and how many texts may have more.

    Args:
        vectors: Of the index.
        searcher: Finds them.
        queries: Of another index, each of which is looked for; None: those of the index itself.
        least: The lowest cosine.
        neighbours: How many of a text are looked at.
        show: Told of progress.
    """
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
    found_pairs = _sorted(
        np.concatenate(ones), np.concatenate(others), np.concatenate(cosines), queries is None
    )
    return found_pairs, full


def _blocks(vectors: Vectors) -> Iterator[tuple[int, np.ndarray]]:
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
