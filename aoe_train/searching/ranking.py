"""Search queries, and what ranks the rows of an index for them: filters, words, vectors, or words and vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray
from pydantic import Field, PositiveInt

from aoe_train.model.collection import fused
from aoe_train.model.quantization import Vectors
from aoe_train.searching.index_rows import WORDS, IndexManifest
from aoe_train.searching.nearest import Searcher, read_faiss
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import is_blank, one_line
from pairkit.base.settings import argument
from pairkit.dataset.labels import MISSING
from pairkit.similarity.bm25 import Bm25, Scores, best

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Rows = Int[ndarray, " row"]

By = Literal["both", "model", "words"]
Conditions = Mapping[str, Any] | Sequence[str] | None
# The score of a row with the query as its key, relative to the best score by words.
_KEY_FACTOR = 1.01
_MIN_CANDIDATES = 200  # of each ranking
_DAY_FIRST = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2}"  # 31.05.2015
_BEGINNING = "0000-01-01"  # completes a year or month
_BOOLEANS = ("false", "true")


class SearchQuery(NamedTuple):
    """The checked arguments of `SearchIndex.search`, and the rows that they select in an index."""

    text: str
    # The model's vector; None by words, or if the text is to be encoded.
    vector: Float[ndarray, " dim"] | None
    top: int
    by: By
    weight: float | None = None  # of vectors; None for the index's own
    where: Mapping[str, Any] = {}
    before: Mapping[str, Any] = {}
    # The rows that pass `where` and `before`, ascending; None for all.
    allowed: Rows | None = None
    # The rows with the text as their key. If words count, they come first, and vectors have no weight, because
    # they blur keys.
    keyed: Sequence[int] = ()


def search_options(by: str, top: int, weight: float | None) -> SearchQuery:
    """A query without its text; raises ConfigError for an invalid or ineffective option."""
    query = SearchQuery(
        "",
        None,
        argument("top", top, PositiveInt),
        argument("by", by, By),
        argument("weight", weight, Annotated[float, Field(ge=0, le=1)] | None),
    )
    if query.weight is not None and query.by != "both":
        raise ConfigError(
            f"weight: has no effect with by = {by}; leave it out, or set by = both"
        )
    return query


def checked_query(
    text: str,
    by: str,
    top: int,
    weight: float | None,
    where: Conditions,
    before: Conditions,
) -> SearchQuery:
    """A query without its vector; raises ConfigError for invalid options, and DataError for a blank text."""
    query = search_options(by, top, weight)
    text = argument("text", text, str)
    if is_blank(text):
        raise DataError("the text is empty; expected a search query")
    return query._replace(
        text=text,
        where=conditions("where", where),
        before=conditions("before", before),
    )


def conditions(option: str, given: Conditions) -> Mapping[str, object]:
    """Values by column, from a mapping or from texts such as state=open."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            if isinstance(value, Collection | None) and not isinstance(value, str):
                shown = one_line(f"{option} {name}: found {value}", 100)
                raise ConfigError(f"{shown}; expected one value")
        return given
    if given is None:
        return {}
    values: dict[str, str] = {}
    for condition in argument(option, given, list[str]):
        name, mark, value = condition.partition("=")
        shown = f"--{option} {one_line(condition)}"
        if not mark or not name:
            raise ConfigError(f"{shown}: expected COLUMN=VALUE, such as state=open")
        if name in values:
            raise ConfigError(f"{shown}: a second value of {one_line(name)}; give one")
        values[name] = value
    return values


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Ranked rows, best first; None for the scores that a ranking lacks."""

    places: Int[ndarray, " hit"]
    scores: Float[ndarray, " hit"]
    cosines: Float[ndarray, " hit"] | None = None
    words: Float[ndarray, " hit"] | None = None


_NO_ROWS = RankedRows(np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass
class Ranker:
    """Ranks the rows of an index; the files of words and vectors are read on first use."""

    folder: Path
    about: IndexManifest
    vectors: Vectors

    @cached_property
    def searcher(self) -> Searcher:
        """Finds the nearest of the index's vectors."""
        index = None
        if self.about.kind != "flat":
            index = read_faiss(self.folder, self.vectors.shape)
        return Searcher(self.vectors, index)

    @cached_property
    def _words(self) -> Bm25:
        return Bm25.load(self.folder / WORDS, len(self.vectors))

    def ranked(self, queries: Sequence[SearchQuery]) -> list[RankedRows]:
        """The best rows of each query; equal scores are ordered by cosine, then as in the index."""
        nearest = self._nearest(queries)
        rankings = []
        for number, query in enumerate(queries):
            if query.allowed is not None and not len(query.allowed):
                rankings.append(_NO_ROWS)
            elif query.by == "model":
                rankings.append(nearest[number])
            else:
                rankings.append(self._by_words(query, nearest.get(number)))
        return rankings

    def _nearest(self, queries: Sequence[SearchQuery]) -> dict[int, RankedRows]:
        """The nearest rows to each vector, by the number of its query."""
        # Queries without filters share a pass over the vectors; each of the others has its own.
        passes = defaultdict[tuple[int, int | None], dict[int, ndarray]](dict)
        for number, query in enumerate(queries):
            if query.vector is not None:
                count = num_candidates(query.by, query.top)
                filtered = None if query.allowed is None else number
                passes[count, filtered][number] = query.vector
        nearest = {}
        for (count, filtered), vectors in passes.items():
            neighbours = self.searcher.nearest(
                np.stack([*vectors.values()]),
                min(count, self.about.rows),
                None if filtered is None else queries[filtered].allowed,
            )
            for number, scores, places in zip(vectors, *neighbours, strict=True):
                is_row = places >= 0
                cosines = scores[is_row]
                nearest[number] = RankedRows(places[is_row], cosines, cosines)
        return nearest

    def _by_words(self, query: SearchQuery, nearest: RankedRows | None) -> RankedRows:
        """The best rows by words, and by vectors if there are rows nearest to the query's."""
        scores = np.array(self._words.scores(query.text))
        highest = self._words.most(query.text)
        if query.keyed:
            scores[[*query.keyed]] = max(1.0, scores.max() * _KEY_FACTOR, highest)
        if query.allowed is not None:
            is_excluded = np.ones(len(scores), bool)
            is_excluded[query.allowed] = False
            scores[is_excluded] = 0
        if nearest is None or query.vector is None:
            places = best(scores, query.top)
            ranked = RankedRows(places, scores[places])
        else:
            weight = self.about.weight if query.weight is None else query.weight
            ranked = fuse(
                self.vectors,
                query.vector,
                nearest.places,
                scores,
                0.0 if query.keyed else weight,
                query.top,
            )
        # The score of a row with the query as its key can be above the highest one of words.
        relative = np.minimum(scores[ranked.places], highest) / (highest or 1)
        return replace(ranked, words=relative)


def fuse(
    vectors: Vectors,
    vector: Float[ndarray, " dim"],
    nearest: Rows,
    by_words: Scores,
    weight: float,
    top: int,
) -> RankedRows:
    """The best of the nearest rows and the best rows by words, by their weighted scores."""
    places = np.union1d(nearest, best(by_words, num_candidates("both", top)))
    cosines = vectors[places] @ vector
    scores = fused(cosines, by_words[places], weight)
    # With a weight of 0, most scores are equal.
    order = np.lexsort((-cosines, -scores))[:top]
    return RankedRows(places[order], scores[order], cosines[order])


def num_candidates(by: By, top: int) -> int:
    """The number of rows of each ranking that are fused; later rows are rarely among the best."""
    return top if by == "model" else max(_MIN_CANDIDATES, 4 * top)


def allowed_rows(rows: pl.DataFrame, query: SearchQuery) -> Rows | None:
    """Ascending numbers of the rows that pass the filters; None without filters."""
    if not query.where and not query.before:
        return None
    keep = pl.repeat(value=True, n=rows.height, eager=True)
    for name, value in query.where.items():
        column = _filter_column(rows, "where", name)
        text = _as_text(value)
        if isinstance(column.dtype, pl.List):
            is_equal = column.cast(pl.List(pl.String)).list.contains(text)
        else:
            column, wanted = _comparable(column, text)
            is_equal = column == wanted
        keep &= is_equal.fill_null(value=False)
    for name, value in query.before.items():
        column, limit = _comparable(sortable(rows, name), _as_text(value))
        is_before = column < limit
        keep &= is_before.fill_null(value=False)
    return keep.arg_true().to_numpy().astype(np.int64)


def _filter_column(rows: pl.DataFrame, option: str, name: str) -> pl.Series:
    """A column to filter by, with times in UTC without a zone; raises ConfigError if it is missing."""
    if name not in rows.columns:
        names = one_line(", ".join(rows.columns))
        raise ConfigError(f"{option} {name}: no such column; choose from {names}")
    column = rows[name]
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone:
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column


def sortable(rows: pl.DataFrame, name: str) -> pl.Series:
    """A column by which rows are ordered, as numbers if all texts that aren't missing are, as in CSV.

    Raises ConfigError for lists, and for dates that don't sort as text.
    """
    column = _filter_column(rows, "before", name)
    if column.dtype.is_nested():
        raise ConfigError(
            f"before {name}: contains lists; choose a column of numbers, times or texts"
        )
    if column.dtype != pl.String:
        return column
    is_missing = column.str.contains(MISSING).fill_null(value=False)
    column = column.set(is_missing, None)
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() == column.null_count():
        return numbers
    dates = column.filter(column.str.contains(_DAY_FIRST))
    if dates.len():
        raise ConfigError(
            f"before {name}: dates such as {one_line(dates[0], 30)} don't sort as text; write them as"
            " 2015-05-31"
        )
    return column


def _comparable(column: pl.Series, text: str) -> tuple[pl.Series, object]:
    """A column and a value, both as numbers, times or texts; raises ConfigError if the value isn't one."""
    expected = "a number"
    try:
        if column.dtype.is_numeric():
            number = float(text)
            is_integer = text.lstrip("-").isdecimal() and abs(number) < 2**63
            # Unlike a number, a series may exceed the type of the column.
            return column, pl.Series([int(text) if is_integer else number])
        if column.dtype == pl.Boolean:
            expected = "true or false"
            return column.cast(pl.Int8), _BOOLEANS.index(text.lower())
        if column.dtype == pl.Time:
            expected = "a time of day such as 09:30"
            return column, time.fromisoformat(text)
        if column.dtype not in (pl.Date, pl.Datetime):
            return column.cast(pl.String), text
        expected = "a time such as 2015, 2015-05-31 or 2015-05-31T09:30"
        instant = datetime.fromisoformat(text + _BEGINNING[len(text) :])
        if instant.tzinfo is not None:
            instant = instant.astimezone(UTC).replace(tzinfo=None)
        return column.cast(pl.Datetime("us")), instant
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{column.name}={one_line(text, 100)}: expected {expected}"
        ) from error


def _as_text(value: object) -> str:
    """A value as texts and JSON write it."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
