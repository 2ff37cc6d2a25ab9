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

from aoe_train.model.hybrid import fused
from aoe_train.model.quantization import Vectors
from aoe_train.searching.index_rows import WORDS, IndexManifest
from aoe_train.searching.nearest import Searcher, read_faiss
from pairkit.base.settings import argument
from pairkit.similarity.bm25 import Bm25, Scores, best

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Rows = Int[ndarray, " row"]

By = Literal["both", "model", "words"]
_KEY_FACTOR = 1.01  # of a row with the query as its key: its score, relative to the best one by words
_MIN_CANDIDATES = 200  # of each ranking


class SearchQuery(NamedTuple):
    """The checked arguments of `SearchIndex.search`, and what follows from them and the index.

    Rows of `keyed` have the text as their key: they come first if words count, and vectors, which blur keys,
    have no weight.
    """

    text: str
    vector: Float[ndarray, " dim"] | None  # None by words
    top: int
    by: By
    weight: float | None = None  # of vectors; None for the index's own
    where: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    allowed: Rows | None = None  # ascending, of the filters; None for all
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
        """The best rows of each query; ties are in index order."""
        nearest = self._nearest(queries)
        return [
            self._best(query, nearest.get(number))
            for number, query in enumerate(queries)
        ]

    def _nearest(self, queries: Sequence[SearchQuery]) -> dict[int, RankedRows]:
        """The nearest rows of each query by vectors; queries without filters share a pass over the vectors."""
        groups = defaultdict[tuple[int, int | None], dict[int, ndarray]](dict)
        for number, query in enumerate(queries):
            if query.vector is not None:
                count = num_candidates(query.by, query.top)
                alone = None if query.allowed is None else number
                groups[count, alone][number] = query.vector
        nearest = {}
        for (count, alone), vectors in groups.items():
            neighbours = self.searcher.nearest(
                np.stack([*vectors.values()]),
                min(count, self.about.rows),
                None if alone is None else queries[alone].allowed,
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
            if query.keyed:
                weight = 0.0
            ranked = fuse(
                self.vectors, query.vector, nearest.places, scores, weight, query.top
            )
        relative = np.zeros(len(ranked.places), np.float32)
        most = self._word_index.most(query.text)
        if most:
            # The score of a row with the query as its key can be higher.
            relative = np.minimum(scores[ranked.places] / most, 1)
        return replace(ranked, words=relative)

    def _word_scores(self, query: SearchQuery) -> Scores:
        """The score of each row; that of rows which aren't allowed is 0."""
        scores = np.array(self._word_index.scores(query.text))
        if query.keyed:
            most = self._word_index.most(query.text)
            above_all = max(1.0, scores.max() * _KEY_FACTOR, most)
            scores[list(query.keyed)] = above_all
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
    """The best of the nearest rows and those with the best words."""
    best_words = best(by_words, num_candidates("both", top))
    places = np.union1d(nearest, best_words)
    cosines = vectors[places] @ vector
    scores = fused(cosines, by_words[places], weight)
    order = np.argsort(-scores, kind="stable")[:top]
    return RankedRows(places[order], scores[order], cosines[order])


def num_candidates(by: By, top: int) -> int:
    """The number of rows of each ranking that are fused: later rows can't be among the best."""
    return top if by == "model" else max(_MIN_CANDIDATES, 4 * top)


def checked_ranking(by: str, top: int, weight: float | None) -> By:
    """The checked `by` of a search; raises ConfigError for an invalid option."""
    argument("top", top, PositiveInt)
    argument("weight", weight, Annotated[float, Field(ge=0, le=1)] | None)
    ranking: By = argument("by", by, By)
    return ranking
