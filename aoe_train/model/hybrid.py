"""Hybrid ranking: by vectors and words together.

Vectors find paraphrases; BM25 finds the names, numbers and messages that vectors blur. The score is the
weighted sum of both, each scaled to [0, 1] over the candidates (Bruch, Gai & Ingber 2023, "An Analysis of
Fusion Functions for Hybrid Retrieval", where it beats rank fusion).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from aoe_train.model.similarity import all_similarities, comparable
from aoe_train.settings.train_settings import Similarity
from pairkit.base.errors import DataError
from pairkit.base.settings import argument
from pairkit.similarity.bm25 import Bm25, Scores
from pairkit.similarity.bm25 import words as words_of

Words = Literal["bm25", "tfidf"]
"""Rankings by words."""

WEIGHTS: Final[Mapping[Words, float]] = {"bm25": 0.65, "tfidf": 0.8}
"""Default weight of vectors, chosen for all-MiniLM-L6-v2 on issues of rust-lang/rust."""


_Weight = Annotated[float, Field(ge=0, le=1)]


class WordIndex(Protocol):
    """An index of texts that is searched by words."""

    def scores(self, text: str) -> Scores:
        """The score of each indexed text for a query, (text,), at least 0."""
        ...


class TfIdf:
    """Cosines of TF-IDF vectors of words, names and numbers; unlike BM25 normalised by the query's length."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._size = len(texts)
        self._vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)
        try:
            self._by_word = self._vectorizer.fit_transform(texts).T.tocsr()
        except ValueError:  # no text contains a word
            self._by_word = None

    def scores(self, text: str) -> Scores:
        """The cosine of each indexed text with `text`, (text,), in [0, 1]."""
        if self._by_word is None:
            return np.zeros(self._size, np.float32)
        cosines = self._vectorizer.transform([text]) @ self._by_word
        return np.asarray(cosines.toarray()[0], np.float32)


WORD_INDEXES: Final[Mapping[Words, Callable[[Sequence[str]], WordIndex]]] = {"bm25": Bm25, "tfidf": TfIdf}


class Hybrid:
    """An index of texts that is searched by vectors and words.

    Example:
        >>> import aoe_train, numpy as np
        >>> texts = ["panic when saving", "the window is red", "E0277 when saving"]
        >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], np.float32)
        >>> index = aoe_train.Hybrid(texts, vectors)
        >>> [place for place, _ in index.best("E0277 on save", np.array([1.0, 0.0]), count=2)]
        [2, 0]
    """

    def __init__(
        self,
        texts: Sequence[str],
        vectors: npt.NDArray[np.float32],
        *,
        weight: float | None = None,
        words: Words = "bm25",
        similarity: Similarity = "cosine",
    ) -> None:
        self.words: Words = argument("words", words, Words)
        self.weight: float = argument("weight", WEIGHTS[self.words] if weight is None else weight, _Weight)
        self.similarity: Similarity = argument("similarity", similarity, Similarity)
        shape = np.shape(vectors)
        if len(shape) != 2 or shape[0] != len(texts):
            raise DataError(f"{len(texts)} texts and vectors of shape {shape}; expected one vector each")
        if not np.isfinite(vectors).all():
            raise DataError("some vectors contain NaN or infinity; encode the texts again")
        self._vectors = comparable(np.asarray(vectors), self.similarity)
        self._index = WORD_INDEXES[self.words](texts)

    def __len__(self) -> int:
        """Number of texts."""
        return len(self._vectors)

    def scores(self, text: str, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """The score of each indexed text, (text,), in [0, 1].

        Args:
            text: The query.
            vector: Its vector, (dim,).

        Raises:
            DataError: The vector has another length than those of the index.
        """
        query = np.asarray(vector)
        if query.shape != self._vectors.shape[1:]:
            raise DataError(
                f"the query's vector has shape {query.shape}, those of the index have"
                f" {self._vectors.shape[1:]}; encode both with one model"
            )
        by_vectors = all_similarities(
            comparable(query[None], self.similarity), self._vectors, self.similarity
        )[0]
        return fused(by_vectors, self._index.scores(text), self.weight)

    def best(self, text: str, vector: npt.NDArray[np.float32], count: int = 10) -> list[tuple[int, float]]:
        """Indices and scores of the best texts, best first; ties in index order.

        Args:
            text: The query.
            vector: Its vector, (dim,).
            count: Number of results.
        """
        scores = self.scores(text, vector)
        order = np.argsort(-scores, kind="stable")[:count]
        return [(int(index), float(scores[index])) for index in order]


def fused(by_vectors: np.ndarray, by_words: np.ndarray, weight: float) -> np.ndarray:
    """Fuse two scores of the same candidates: float64 (candidate,), in [0, 1]."""
    return weight * _scaled(by_vectors) + (1 - weight) * _scaled(by_words)


def _scaled(scores: np.ndarray) -> np.ndarray:
    """Scale to [0, 1]; equal scores become 0."""
    exact = scores.astype(np.float64)
    low, high = (exact.min(), exact.max()) if len(exact) else (0.0, 0.0)
    return (exact - low) / (high - low) if high > low else np.zeros_like(exact)
