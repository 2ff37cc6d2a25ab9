"""The result of `duplicates`: pairs of similar texts, and their groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train.searching.index_rows import as_json, with_rows
from pairkit.base.cli.result_table import ResultTable
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import spoken_notes
from pairkit.base.printable import one_line
from pairkit.dataset.table_files import write_table
from pairkit.similarity.groups import connected, shared, singletons

if TYPE_CHECKING:
    from aoe_train.searching.index import SearchIndex

_BLOCK_PAIRS = 4096  # pairs that are written at a time
_SHOWN = 100  # characters of a text in a table
_MEMBERS = 5  # texts of a group in a table


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
        first, second = pairs.select("place1", "place2").to_numpy().T
        if self.within:
            pairs = pairs.with_columns(group=pl.Series(self._group_numbers[first]))
        return with_rows(
            pairs, self.queries.keyed_rows(first), self.index.keyed_rows(second)
        )

    @cached_property
    def groups(self) -> list[list[int]]:
        """Groups of connected places, the largest first; empty between two indexes."""
        if not self.within:
            return []
        first, second = self.pairs.select("place1", "place2").to_numpy().T
        names = connected(singletons(self.texts), first, second)
        groups = [members.tolist() for members in shared(names)]
        # Of the same size, that of the first text is first.
        return sorted(groups, key=len, reverse=True)

    @cached_property
    def _group_numbers(self) -> np.ndarray:
        """The number of each text's group, from 1; 0 without one."""
        numbers = np.zeros(self.texts, np.int64)
        for number, group in enumerate(self.groups, 1):
            numbers[group] = number
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
        starts = range(0, len(self.pairs), _BLOCK_PAIRS)
        blocks = (self.rows(start, _BLOCK_PAIRS) for start in starts)
        write_table(Path(out), blocks, self.rows(0, 0).schema)

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
    rows = zip(index.keys(places), index.texts(places), strict=True)
    return [(one_line(str(key), _SHOWN), one_line(text, _SHOWN)) for key, text in rows]
