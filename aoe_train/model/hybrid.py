"""Hybrid ranking: by vectors and words together.

Vectors find paraphrases; BM25 finds the names, numbers and messages that vectors blur. The score is the
weighted sum of both, each scaled to [0, 1] over the candidates (Bruch, Gai & Ingber 2023, "An Analysis of
Fusion Functions for Hybrid Retrieval", where it beats rank fusion).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

import numpy as np
from numpy import ndarray

from pairkit.similarity.bm25 import Bm25, Scores
from pairkit.similarity.bm25 import words as words_of

Words = Literal["bm25", "tfidf"]
"""Rankings by words."""

WEIGHTS: Final[Mapping[Words, float]] = {"bm25": 0.65, "tfidf": 0.8}
"""Default weight of vectors, chosen for all-MiniLM-L6-v2 on issues of rust-lang/rust."""


class TfIdf:
    """Cosines of TF-IDF vectors of words, names and numbers; unlike BM25 normalised by the query's length."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._size = len(texts)
        self._vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)
        self._by_word = None
        with suppress(ValueError):  # no text contains a word
            by_text = self._vectorizer.fit_transform(texts)
            self._by_word = by_text.T.tocsr()

    def scores(self, text: str) -> Scores:
        """The cosine of each indexed text with `text`, (text,), in [0, 1]."""
        if self._by_word is None:
            return np.zeros(self._size, np.float32)
        query = self._vectorizer.transform([text])
        (cosines,) = (query @ self._by_word).toarray()
        return np.asarray(cosines, np.float32)


WORD_INDEXES: Final[Mapping[Words, type[Bm25 | TfIdf]]] = {"bm25": Bm25, "tfidf": TfIdf}


def fused(by_vectors: ndarray, by_words: ndarray, weight: float) -> ndarray:
    """Fuse two scores of the same candidates: float64 (candidate,), in [0, 1]."""
    vector_part = weight * _scaled(by_vectors)
    return vector_part + (1 - weight) * _scaled(by_words)


def _scaled(scores: ndarray) -> ndarray:
    """Scale to [0, 1]; equal scores become 1 if they are positive, such as that of a single row."""
    exact = scores.astype(np.float64)
    low = exact.min(initial=np.inf)
    high = exact.max(initial=-np.inf)
    if high <= low:
        return (exact > 0).astype(np.float64)
    scaled: ndarray = (exact - low) / (high - low)
    return scaled
