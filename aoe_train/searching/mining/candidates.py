"""Candidates: models and ways of searching with them, between which people choose by the results of queries.

Each model is a candidate as it is and for each purpose (see `collection.py`), by vectors only and together
with words (BM25). It encodes texts and queries once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from aoe_train.model.collection import RECIPES, Collection, drawn
from aoe_train.model.hybrid import WEIGHTS
from aoe_train.searching.nearest import IndexVectors, nearest
from aoe_train.searching.ranking import candidates as candidates_to_fuse
from aoe_train.searching.ranking import fuse
from aoe_train.settings.train_settings import Purpose
from pairkit.similarity.bm25 import Bm25

_BATCH = 256  # queries at a time


@dataclass(frozen=True)
class Candidate:
    """A way of searching; `weight` is that of vectors against words, or None without words."""

    name: str
    documents: np.ndarray  # vectors of length 1, (document, dim)
    queries: np.ndarray
    weight: float | None


def candidates_of(
    model: str, documents: np.ndarray, queries: np.ndarray, purposes: Sequence[Purpose]
) -> Iterator[Candidate]:
    """The candidates of a model with these vectors of length 1; the first one is the model as it is."""
    yield Candidate(model, documents, queries, None)
    yield Candidate(f"{model}, words", documents, queries, WEIGHTS["bm25"])
    sample = documents[drawn(len(documents))]
    for purpose in purposes:
        collection = Collection(sample, purpose)
        name, vectors = f"{model}, {purpose}", collection.transform(documents)
        moved = collection.transform(queries)
        yield Candidate(name, vectors, moved, None)
        yield Candidate(f"{name}, words", vectors, moved, RECIPES[purpose].weight)


@dataclass(frozen=True)
class Searched:
    """Queries, the words of documents, and for each query the document that is its near-duplicate, or -1."""

    queries: Sequence[str]
    words: Bm25
    same: np.ndarray

    def results(self, candidate: Candidate, top: int) -> list[list[int]]:
        """The first documents that a candidate finds for each query, without near-duplicates of the query."""
        vectors = IndexVectors(candidate.documents)
        count = candidates_to_fuse("model" if candidate.weight is None else "both", top)
        count = min(count + 1, len(vectors))
        found = list[list[int]]()
        for start in range(0, len(self.queries), _BATCH):
            block = candidate.queries[start : start + _BATCH]
            for query, places in enumerate(nearest(vectors, block, count).places, start):
                kept = places[places != self.same[query]]
                if candidate.weight is not None:
                    by_words = self._by_words(query)
                    vector = candidate.queries[query]
                    kept, *_ = fuse(vectors, vector, kept, by_words, candidate.weight, top)
                found.append(kept[:top].tolist())
        return found

    def _by_words(self, query: int) -> np.ndarray:
        """The score of each document, and 0 for the query's near-duplicate."""
        scores = np.array(self.words.scores(self.queries[query]))
        if self.same[query] >= 0:
            scores[self.same[query]] = 0
        return scores
