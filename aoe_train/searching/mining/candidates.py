"""Candidates: models and ways of searching with them, between which people choose by the results of queries.

Each model is a candidate as it is and for each purpose (see `model/collection.py`), by vectors only and
together with words (BM25). It encodes texts and queries once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aoe_train.model.collection import RECIPES, Collection, drawn
from aoe_train.model.hybrid import WEIGHTS
from aoe_train.searching.nearest import IndexVectors, nearest
from aoe_train.searching.ranking import candidates as candidates_to_fuse
from aoe_train.searching.ranking import fuse
from aoe_train.settings.train_settings import Purpose
from pairkit.similarity.bm25 import Bm25

_BATCH = 256  # queries at a time


class CandidateVectors(NamedTuple):
    """The vectors of a model as it is or for a purpose, of length 1, and their weight against words."""

    name: str
    documents: IndexVectors
    queries: np.ndarray
    weight: float


def candidate_vectors(
    model: str, documents: np.ndarray, queries: np.ndarray, purposes: Sequence[Purpose]
) -> Iterator[CandidateVectors]:
    """The vectors of a model as it is, and then for each purpose."""
    yield CandidateVectors(model, IndexVectors(documents), queries, WEIGHTS["bm25"])
    for purpose in purposes:
        collection = Collection(documents[drawn(len(documents))], purpose)
        searched = IndexVectors(collection.transform(documents))
        weight = RECIPES[purpose].weight
        yield CandidateVectors(f"{model}, {purpose}", searched, collection.transform(queries), weight)


class Asked(NamedTuple):
    """Queries, the words of documents, and groups of near-duplicates among both."""

    queries: Sequence[str]
    words: Bm25
    groups: np.ndarray  # of each query
    document_groups: np.ndarray

    def results(self, vectors: Sequence[CandidateVectors], top: int) -> Mapping[str, list[list[int]]]:
        """What each candidate finds first for each query, without near-duplicates of the query."""
        count = min(candidates_to_fuse("both", top) + 1, len(self.document_groups))
        found = defaultdict[str, list[list[int]]](list)
        for name, documents, queries, weight in vectors:
            for start in range(0, len(queries), _BATCH):
                near = nearest(documents, queries[start : start + _BATCH], count).places
                for query, places in enumerate(near, start):
                    is_same = self.document_groups == self.groups[query]
                    kept = places[~is_same[places]]
                    by_words = np.where(is_same, 0, self.words.scores(self.queries[query]))
                    both, *_ = fuse(documents, queries[query], kept, by_words, weight, top)
                    found[name].append(kept[:top].tolist())
                    found[f"{name}, words"].append(both.tolist())
        return found
