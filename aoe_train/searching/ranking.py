"""Ranks the rows of an index by words, by vectors, or by both, with optional filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy import ndarray
from pydantic import Field, PositiveInt

from aoe_train.model.hybrid import fused
from aoe_train.searching.index_rows import WORDS, IndexManifest
from aoe_train.searching.nearest import IndexVectors, Searcher, read
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.base.settings import argument
from pairkit.dataset.labels import MISSING
from pairkit.similarity.bm25 import Bm25, Scores, best

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Rows = Int[ndarray, " row"]

By = Literal["both", "model", "words"]
_KEY_FACTOR = 1.01  # of a row with the query as its key: its score, relative to the best one by words
_MIN_CANDIDATES = 200  # of each ranking
_DAY_FIRST = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2}"  # 31.05.2015
_BEGINNING = "0000-01-01"  # completes a year or month


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Ranked rows, best first."""

    places: Int[ndarray, " hit"]
    scores: Float[ndarray, " hit"]
    cosines: Float[ndarray, " hit"] | None = None
    words: Float[ndarray, " hit"] | None = None


_NOTHING = RankedRows(np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass
class Ranker:
    """Ranks the rows of an index; the files of words and vectors are read on first use."""

    folder: Path
    about: IndexManifest
    vectors: IndexVectors

    @cached_property
    def _word_index(self) -> Bm25:
        return Bm25.load(self.folder / WORDS, len(self.vectors))

    @cached_property
    def searcher(self) -> Searcher:
        """Finds the nearest of the index's vectors."""
        index = read(self.folder, self.about.kind, self.vectors.shape)
        return Searcher(self.vectors, index)

    def ranked(
        self,
        text: str,
        vector: Float[ndarray, " dim"] | None,
        top: int,
        allowed: Rows | None,
        *,
        by: By,
        weight: float | None = None,
        nearest: RankedRows | None = None,
        keyed: Sequence[int] = (),
    ) -> RankedRows:
        """The best rows; ties are in index order. `nearest` are the rows nearest to the vector, if known.

        The rows of `keyed` have the text as their key, and come first if words count.
        """
        if allowed is not None and not len(allowed):
            return _NOTHING
        if by == "words":
            scores = self._word_scores(text, allowed, keyed)
            places = best(scores, top)
            by_words = scores[places]
            return RankedRows(
                places, by_words, words=self._relative_scores(text, by_words)
            )
        if vector is None:
            raise ValueError("a ranking by vectors needs the query's vector")
        if nearest is None:
            (nearest,) = self.nearest(vector[None], candidates(by, top), allowed)
        if by == "model":
            return nearest
        scores = self._word_scores(text, allowed, keyed)
        if weight is None:
            weight = self.about.weight
        ranked = fuse(self.vectors, vector, nearest.places, scores, weight, top)
        return replace(ranked, words=self._relative_scores(text, scores[ranked.places]))

    def nearest(
        self,
        vectors: Float[ndarray, "query dim"],
        count: int,
        allowed: Rows | None,
    ) -> list[RankedRows]:
        """The `count` nearest rows of each vector."""
        neighbours = self.searcher.nearest(
            vectors, min(count, self.about.rows), allowed
        )
        ranked = []
        for scores, places in zip(*neighbours, strict=True):
            is_row = places >= 0
            cosines = scores[is_row]
            ranked.append(RankedRows(places[is_row], cosines, cosines))
        return ranked

    def _word_scores(
        self, text: str, allowed: ndarray | None, keyed: Sequence[int]
    ) -> ndarray:
        """The score of each row; that of rows which aren't allowed is 0."""
        scores = np.array(self._word_index.scores(text))
        if keyed:
            above_all = max(
                1.0, scores.max() * _KEY_FACTOR, self._word_index.most(text)
            )
            scores[list(keyed)] = above_all
        if allowed is not None:
            is_excluded = np.ones(len(scores), bool)
            is_excluded[allowed] = False
            scores[is_excluded] = 0
        return scores

    def _relative_scores(self, text: str, scores: ndarray) -> ndarray:
        """Scores relative to the highest possible one."""
        most = self._word_index.most(text)
        return scores / most if most else np.zeros(len(scores), np.float32)


def fuse(
    vectors: IndexVectors,
    vector: Float[ndarray, " dim"],
    nearest: Rows,
    by_words: Scores,
    weight: float,
    top: int,
) -> RankedRows:
    """The best of the nearest rows and those with the best words."""
    best_words = best(by_words, candidates("both", top))
    places = np.union1d(nearest, best_words)
    cosines = vectors.rows(places) @ vector
    scores = fused(cosines, by_words[places], weight)
    order = np.argsort(-scores, kind="stable")[:top]
    return RankedRows(places[order], scores[order], cosines[order])


def candidates(by: By, top: int) -> int:
    """The number of rows of each ranking that are fused: later rows can't be among the best."""
    return top if by == "model" else max(_MIN_CANDIDATES, 4 * top)


def checked_ranking(by: str, top: int, weight: float | None) -> By:
    """The checked `by` of a search; raises ConfigError for an invalid option."""
    argument("top", top, PositiveInt)
    argument("weight", weight, Annotated[float, Field(ge=0, le=1)] | None)
    ranking: By = argument("by", by, By)
    return ranking


def allowed(
    rows: pl.DataFrame,
    where: Mapping[str, Any],
    before: Mapping[str, Any],
) -> Rows | None:
    """Ascending numbers of the rows that pass the filters; None without filters."""
    if not where and not before:
        return None
    keep = pl.repeat(value=True, n=rows.height, eager=True)
    for name, value in where.items():
        column = _filter_column(rows, "where", name)
        keep &= _equal(column, value).fill_null(value=False)
    for name, value in before.items():
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


def _equal(column: pl.Series, value: Any) -> pl.Series:
    """Compare with `value`: lists by any item, numbers and times by value, other types as text."""
    if isinstance(column.dtype, pl.List):
        return column.cast(pl.List(pl.String)).list.contains(_as_text(value))
    column, wanted = _comparable(column, _as_text(value))
    equal: pl.Series = column == wanted
    return equal


def _comparable(column: pl.Series, text: str) -> tuple[pl.Series, Any]:
    """A column and a value, both as numbers, times or texts; raises ConfigError if the value isn't one."""
    expected = "a number"
    try:
        if column.dtype.is_numeric():
            number = float(text)
            is_integer = text.lstrip("-").isdecimal() and abs(number) < 2**63
            return column, int(text) if is_integer else number
        if column.dtype == pl.Boolean:
            return column.cast(pl.String), text.lower()
        if column.dtype not in (pl.Date, pl.Datetime):
            return column.cast(pl.String), text
        expected = "a time such as 2015, 2015-05-31 or 2015-05-31T09:30"
        time = datetime.fromisoformat(text + _BEGINNING[len(text) :])
        if time.tzinfo is not None:
            time = time.astimezone(UTC).replace(tzinfo=None)
        return column.cast(pl.Datetime("us")), time
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{column.name}={one_line(text, 100)}: expected {expected}"
        ) from error


def _as_text(value: Any) -> str:
    """A value as texts and JSON write it."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
