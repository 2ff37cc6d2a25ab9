"""Candidates: models and ways of searching with them, between which people choose by the results of queries.

Each model is a candidate as it is and for each purpose (see `model/collection.py`), by vectors only and
together with words (BM25). It encodes texts and queries once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.model.collection import RECIPES
from aoe_train.model.hybrid import WEIGHTS
from aoe_train.searching.nearest import IndexVectors, nearest
from aoe_train.searching.ranking import candidates, fuse
from aoe_train.settings.train_settings import Purpose
from pairkit.similarity.bm25 import Bm25

_BATCH = 256  # queries at a time


class CandidateVectors(NamedTuple):
    """The vectors of a model as it is or for a purpose, of length 1, and their weight against words."""

    name: str
    documents: IndexVectors
    queries: ndarray
    weight: float


def candidate_vectors(
    model: str,
    documents: ndarray,
    queries: ndarray,
    purposes: Sequence[Purpose],
) -> Iterator[CandidateVectors]:
    """The vectors of a model as it is, and then for each purpose."""
    vectors = IndexVectors(documents)
    yield CandidateVectors(model, vectors, queries, WEIGHTS["bm25"])
    for purpose in purposes:
        collection = vectors.collection(purpose)
        searched = IndexVectors(collection.transform(documents))
        transformed_queries = collection.transform(queries)
        weight = RECIPES[purpose].weight
        yield CandidateVectors(
            f"{model}, {purpose}", searched, transformed_queries, weight
        )


def candidate_results(
    queries: Sequence[str],
    query_groups: ndarray,
    document_groups: ndarray,
    words: Bm25,
    vectors: Sequence[CandidateVectors],
    top: int,
) -> Mapping[str, list[list[int]]]:
    """The places that each candidate finds first for each query, without near-duplicates of the query.

    The groups are those of near-duplicates among queries and documents.
    """
    count = min(candidates("both", top) + 1, len(document_groups))
    results = defaultdict(list)
    for start in range(0, len(queries), _BATCH):
        batch = slice(start, start + _BATCH)
        nearest_by_candidate = []
        for candidate in vectors:
            neighbours = nearest(candidate.documents, candidate.queries[batch], count)
            nearest_by_candidate.append(neighbours.places)
        for query, by_candidate in enumerate(
            zip(*nearest_by_candidate, strict=True), start
        ):
            is_same = document_groups == query_groups[query]
            by_words = np.where(is_same, 0, words.scores(queries[query]))
            for candidate, places in zip(vectors, by_candidate, strict=True):
                other_places = places[~is_same[places]]
                vector = candidate.queries[query]
                weight = candidate.weight
                fused = fuse(
                    candidate.documents, vector, other_places, by_words, weight, top
                )
                results[candidate.name].append(other_places[:top].tolist())
                results[f"{candidate.name}, words"].append(fused.places.tolist())
    return results
