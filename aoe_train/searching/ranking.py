"""Ranks the rows of an index by words, by vectors, or by both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray
from pydantic import Field, PositiveInt

from aoe_train.model.collection import fused
from aoe_train.model.quantization import Vectors
from aoe_train.searching.index_rows import WORDS, IndexManifest
from aoe_train.searching.nearest import Searcher, read_faiss
from pairkit.base.errors import ConfigError
from pairkit.base.settings import argument
from pairkit.similarity.bm25 import Bm25, Scores, best

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Rows = Int[ndarray, " row"]

By = Literal["both", "model", "words"]
# The score of a row with the query as its key, relative to the best score by words.
_KEY_FACTOR = 1.01
_MIN_CANDIDATES = 200  # of each ranking


class SearchQuery(NamedTuple):
    """The checked arguments of `SearchIndex.search`, and the rows that they select in an index."""

    text: str
    vector: Float[ndarray, " dim"] | None  # None by words
    top: int
    by: By
    weight: float | None = None  # of vectors; None for the index's own
    where: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    # The rows that pass `where` and `before`, ascending; None for all.
    allowed: Rows | None = None
    # The rows with the text as their key. If words count, they come first, and vectors have no weight, because
    # they blur keys.
    keyed: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Ranked rows, best first; None for the scores that a ranking lacks."""

    places: Int[ndarray, " hit"]
    scores: Float[ndarray, " hit"]
    cosines: Float[ndarray, " hit"] | None = None
    words: Float[ndarray, " hit"] | None = None


@dataclass
class Ranker:
    """Ranks the rows of an index; the files of words and vectors are read on first use."""

    folder: Path
    about: IndexManifest
    vectors: Vectors

    @cached_property
    def searcher(self) -> Searcher:
        """Finds the nearest of the index's vectors."""
        index = read_faiss(self.folder, self.about.kind, self.vectors.shape)
        return Searcher(self.vectors, index)

    @cached_property
    def _word_index(self) -> Bm25:
        return Bm25.load(self.folder / WORDS, len(self.vectors))

    def ranked(self, queries: Sequence[SearchQuery]) -> list[RankedRows]:
        """The best rows of each query; equal scores are ordered by cosine, then as in the index."""
        nearest = self._nearest(queries)
        return [
            self._best(query, nearest.get(number))
            for number, query in enumerate(queries)
        ]

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

    def _best(self, query: SearchQuery, nearest: RankedRows | None) -> RankedRows:
        """The best rows of a query; `nearest` are those nearest to its vector, if it has one."""
        if nearest is not None and query.by == "model":
            return nearest
        scores = self._word_scores(query)
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
        highest = self._word_index.most(query.text)
        relative = np.zeros(len(ranked.places), np.float32)
        if highest:
            # The score of a row with the query as its key can be higher.
            relative = np.minimum(scores[ranked.places] / highest, 1)
        return replace(ranked, words=relative)

    def _word_scores(self, query: SearchQuery) -> Scores:
        """The score of each row; 0 for rows that the filters exclude."""
        scores = np.array(self._word_index.scores(query.text))
        if query.keyed:
            highest = self._word_index.most(query.text)
            scores[[*query.keyed]] = max(1.0, scores.max() * _KEY_FACTOR, highest)
        if query.allowed is not None:
            is_excluded = np.ones(len(scores), bool)
            is_excluded[query.allowed] = False
            scores[is_excluded] = 0
        return scores


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


def checked_ranking(by: str, top: int, weight: float | None) -> By:
    """The checked `by` of a search; raises ConfigError for an invalid or ineffective option."""
    argument("top", top, PositiveInt)
    argument("weight", weight, Annotated[float, Field(ge=0, le=1)] | None)
    ranking: By = argument("by", by, By)
    if weight is not None and ranking != "both":
        raise ConfigError(
            f"weight: has no effect with by = {ranking}; leave it out, or set by = both"
        )
    return ranking
