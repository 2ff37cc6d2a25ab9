"""Searches an index for each of its own texts, optionally only among older rows, as if at that time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aoe_train.searching.ranking import RankedRows, Ranker, check_column, checked
from aoe_train.searching.text_rows import naming_column, with_rows
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.system.files import check_free
from pairkit.dataset.parquet import write_parquet

_BLOCK_TEXTS = 64


@dataclass(frozen=True, eq=False)
class BatchSearch:
    """The hits of all texts of an index.

    Attributes:
        hits: A row for each hit, in order of place1 and rank: query `place1`, result `place2`, `rank` from 1,
            `score`, `cosine` and `words` (see `IndexHit`), and, with the suffixes _1 and _2, the identifying
            column and the time column of both rows.
        texts: Number of queries.
        undated: Number of rows that were left out because they have no time.
    """

    hits: pl.DataFrame
    texts: int
    undated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The object of `aoe search --every --json`."""
        return {"texts": self.texts, "hits": self.hits.height, "undated": self.undated}

    def write(self, out: str | Path) -> None:
        """Write the hits as Parquet; the same hits give the same bytes.

        Raises:
            ConfigError: `out` exists, or can't be written.
        """
        path = Path(out)
        check_free(path)
        write_parquet(path, self.hits)


def batch_search(
    rows: pl.DataFrame,
    texts_of: Callable[[np.ndarray], Sequence[str]],
    vectors_of: Callable[[np.ndarray, Sequence[str]], np.ndarray],
    ranker: Ranker,
    *,
    before: str | None,
    top: int,
    by: str,
    weight: float | None,
    show: Listener,
) -> BatchSearch:
    """Search for every text of an index; see `SearchIndex.search_every`."""
    kind = checked(top, by, weight)
    size, rankings = rows.height, dict[int, RankedRows]()
    if before is not None:
        check_column(rows, "before", before)
    count = size if before is None else size - rows[before].null_count()
    queries = _queries(rows, before)
    while block := list(islice(queries, _BLOCK_TEXTS)):
        places = np.array([place for place, _ in block])
        texts = texts_of(places)
        vectors = vectors_of(places, texts)
        for (place, older), text, vector in zip(block, texts, vectors, strict=True):
            allowed = np.delete(np.arange(size), place) if older is None else older
            rankings[place] = ranker.ranked(text, vector, top, allowed, by=kind, weight=weight)
        show(Progress("search for each text", len(rankings), count))
    show(Progress("search for each text", count, count, ended=True))
    return BatchSearch(_table(rows, rankings, before), count, size - count)


def _queries(rows: pl.DataFrame, before: str | None) -> Iterator[tuple[int, np.ndarray | None]]:
    """Each row with all older rows, in order of time; without times None instead of older rows."""
    if before is None:
        yield from ((row, None) for row in range(rows.height))
        return
    times = rows[before].rank("dense").to_list()
    dated = [row for row, time in enumerate(times) if time is not None]
    dated.sort(key=lambda row: times[row])
    is_older, older, first = np.zeros(rows.height, bool), np.empty(0, np.int64), 0
    for number, row in enumerate(dated):
        if times[row] != times[dated[first]]:
            is_older[dated[first:number]] = True
            older, first = np.flatnonzero(is_older), number
        yield row, older


def _table(rows: pl.DataFrame, by_place: dict[int, RankedRows], before: str | None) -> pl.DataFrame:
    places = sorted(by_place)
    rankings = [by_place[place] for place in places]
    counts = [len(ranking.places) for ranking in rankings]
    one = np.repeat(np.array(places, np.int64), counts)
    other = np.concatenate([np.empty(0, np.int64), *(ranking.places for ranking in rankings)])
    table = pl.DataFrame(
        {
            "place1": one,
            "place2": other.astype(np.int64),
            "rank": np.concatenate([np.empty(0, np.int64), *(np.arange(1, count + 1) for count in counts)]),
            "score": _column([ranking.scores for ranking in rankings], counts),
            "cosine": _column([ranking.cosines for ranking in rankings], counts),
            "words": _column([ranking.words for ranking in rankings], counts),
        }
    )
    names = [name for name in (naming_column(rows.columns), before) if name]
    known = rows.select(list(dict.fromkeys(names)))
    return with_rows(table, known[one], known[other]) if names else table


def _column(parts: list[np.ndarray | None], counts: list[int]) -> pl.Series:
    """One column of all hits; null for rankings without it."""
    numbers = [
        np.full(count, np.nan) if part is None else part.astype(np.float64)
        for part, count in zip(parts, counts, strict=True)
    ]
    return pl.Series(np.concatenate([np.empty(0), *numbers]), nan_to_null=True)
