"""Every text of an index searched for in the index itself, perhaps among older rows only: a replay."""

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
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.parquet import write_parquet
from pairkit.system.files import check_free

_BLOCK = 64  # texts that are read at once


@dataclass(frozen=True, eq=False)
class BatchSearch:
    """What all texts of an index find.

    Attributes:
        hits: A row a hit, in order of place1 and rank: `place1` was searched for and `place2` found; `rank`
            from 1, `score`, `cosine` and `words` as of a hit; and of both rows, with _1 and _2
            behind their names, the column that tells rows apart and that of time.
        texts: How many were searched for.
        undated: How many rows were left out, as they have no value in the column of time.
    """

    hits: pl.DataFrame
    texts: int
    undated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe search --every --json`."""
        return {"texts": self.texts, "hits": self.hits.height, "undated": self.undated}

    def write(self, out: str | Path) -> None:
        """Write the hits as Parquet; the same hits are the same bytes.

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
    way = checked(top, by, weight)
    size, found = rows.height, dict[int, RankedRows]()
    if before is not None:
        check_column(rows, "before", before)
    count = size if before is None else size - rows[before].null_count()
    turns = _turns(rows, before)  # one by one: what is older than each takes a place for each older row
    while some := list(islice(turns, _BLOCK)):
        places = np.array([place for place, _ in some])
        texts = texts_of(places)
        vectors = vectors_of(places, texts)
        for (place, older), text, vector in zip(some, texts, vectors, strict=True):
            allowed = older if before is not None else np.delete(np.arange(size), place)
            found[place] = ranker.ranked(text, vector, top, allowed, by=way, weight=weight)
        show(Progress("search for each text", len(found), count))
    show(Progress("search for each text", count, count, ended=True))
    return BatchSearch(_table(rows, found, before), count, size - count)


def _turns(rows: pl.DataFrame, before: str | None) -> Iterator[tuple[int, np.ndarray]]:
    """Places in order of time, each with the ascending places of what is older; undated ones are left out."""
    if before is None:
        yield from ((place, np.empty(0, np.int64)) for place in range(rows.height))
        return
    moments = rows[before].rank("dense").to_list()
    dated = [place for place, moment in enumerate(moments) if moment is not None]
    dated.sort(key=lambda place: moments[place])
    is_older, older, first = np.zeros(rows.height, bool), np.empty(0, np.int64), 0
    for turn, place in enumerate(dated):
        if moments[place] != moments[dated[first]]:
            is_older[dated[first:turn]] = True
            older, first = np.flatnonzero(is_older), turn
        yield place, older


def _table(rows: pl.DataFrame, found: dict[int, RankedRows], before: str | None) -> pl.DataFrame:
    places = sorted(found)
    rankings = [found[place] for place in places]
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
    """Numbers of all hits; null where a text's ranking has none."""
    numbers = [
        np.full(count, np.nan) if part is None else part.astype(np.float64)
        for part, count in zip(parts, counts, strict=True)
    ]
    return pl.Series(np.concatenate([np.empty(0), *numbers]), nan_to_null=True)
