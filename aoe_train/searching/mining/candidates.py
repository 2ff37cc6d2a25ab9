"""Candidates: models and ways of searching with them, between which people choose by the results of queries.

Each model is a candidate as it is and for each purpose (see `model/collection.py`), by vectors only and
together with words (BM25). It encodes texts and queries once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.model.collection import RECIPES, WEIGHTS, Collection
from aoe_train.searching.nearest import nearest
from aoe_train.searching.ranking import fuse, num_candidates
from pairkit.dataset.records import QUERY_COLUMNS, RANK
from pairkit.similarity.bm25 import Bm25
from pairkit.similarity.near_duplicates import near_identical_to

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import Purpose
    from pairkit.base.cli.progress import Listener

_BATCH = 256  # queries at a time

Results = Mapping[str, list[list[int]]]
"""The places that each candidate finds first, by query."""


class CandidateVectors(NamedTuple):
    """The vectors of a model as it is or for a purpose, of length 1, and their weight against words."""

    name: str
    documents: ndarray
    queries: ndarray
    weight: float


class CandidateSearch:
    """A search of all candidates for the same queries; near-duplicates of a query are not results.

    Attributes:
        queries: The queries.
        documents: The searched texts, without near-duplicates.
        top: The number of first results of each query that are compared.
    """

    def __init__(self, texts: Sequence[str], queries: list[str], top: int) -> None:
        groups = near_identical_to([*texts, *queries])
        self._query_groups = groups[len(texts) :]
        self._document_groups = np.unique(groups[: len(texts)])
        self.queries = queries
        self.documents = [texts[place] for place in self._document_groups]
        self.top = top
        self._candidates: list[CandidateVectors] = []

    def add_model(
        self,
        name: str,
        encoder: Encoder,
        purposes: Sequence[Purpose],
        show: Listener,
    ) -> None:
        """Add a model as it is and for each purpose."""
        options: dict[str, Any] = {"normalize": True, "progress": show}
        queries = encoder.encode_query(self.queries, **options)
        documents = encoder.encode_document(self.documents, **options)
        as_it_is = CandidateVectors(name, documents, queries, WEIGHTS["bm25"])
        self._candidates.append(as_it_is)
        for purpose in purposes:
            collection = Collection(documents, purpose)
            candidate = CandidateVectors(
                f"{name}, {purpose}",
                collection.transform(documents),
                collection.transform(queries),
                RECIPES[purpose].weight,
            )
            self._candidates.append(candidate)

    def results(self) -> Results:
        """The first results of each candidate."""
        words = Bm25(self.documents)
        count = min(num_candidates("both", self.top) + 1, len(self.documents))
        results = defaultdict(list)
        for start in range(0, len(self.queries), _BATCH):
            batch = slice(start, start + _BATCH)
            nearest_by_candidate = []
            for candidate in self._candidates:
                queries = candidate.queries[batch]
                neighbours = nearest(candidate.documents, queries, count)
                nearest_by_candidate.append(neighbours.places)
            for query, by_candidate in enumerate(
                zip(*nearest_by_candidate, strict=True), start
            ):
                is_same = self._document_groups == self._query_groups[query]
                by_words = np.where(is_same, 0, words.scores(self.queries[query]))
                for candidate, places in zip(
                    self._candidates, by_candidate, strict=True
                ):
                    others = places[~is_same[places]]
                    fused = fuse(
                        candidate.documents,
                        candidate.queries[query],
                        others,
                        by_words,
                        candidate.weight,
                        self.top,
                    )
                    results[candidate.name].append(others[: self.top].tolist())
                    results[f"{candidate.name}, words"].append(fused.places.tolist())
        return results

    def rows(
        self, results: Results, queries: Sequence[int]
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of each of these queries: a row for each result of a candidate, with its ranks."""
        share = len(queries) / len(self.queries)
        for query in queries:
            found = {name: by_query[query] for name, by_query in results.items()}
            places = list(dict.fromkeys(chain.from_iterable(found.values())))
            values = (self.top, len(places), share)
            rows = []
            for place, cosine in zip(places, self._cosines(query, places), strict=True):
                row: dict[str, Any] = {
                    "text1": self.queries[query],
                    "text2": self.documents[place],
                    "label": cosine,
                    **dict(zip(QUERY_COLUMNS, values, strict=True)),
                }
                for name, ranked in found.items():
                    rank = ranked.index(place) + 1 if place in ranked else None
                    row[RANK + name] = rank
                rows.append(row)
            yield rows

    def _cosines(self, query: int, places: list[int]) -> list[float]:
        """The mean cosine of all candidates between a query and its results."""
        cosines = []
        for candidate in self._candidates:
            vectors = candidate.documents[np.array(places)]
            cosines.append(vectors @ candidate.queries[query])
        mean: list[float] = np.mean(cosines, axis=0).tolist()
        return mean


def differing_queries(results: Results) -> list[int]:
    """The queries for which candidates have another first result or other results."""
    differing = []
    for query, by_candidate in enumerate(zip(*results.values(), strict=True)):
        distinct = {(*ranked[:1], frozenset(ranked)) for ranked in by_candidate}
        if len(distinct) > 1:
            differing.append(query)
    return differing
