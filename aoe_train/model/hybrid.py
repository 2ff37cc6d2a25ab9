"""Texts ranked by their vectors and by their words together.

Vectors find what is said in other words; BM25 finds the names, numbers and messages that vectors blur. Their
scores are put together as a weighted sum of both, each brought to [0, 1] over the candidates (Bruch, Gai &
Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval", where it beats fusing ranks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from aoe_train.model.similarity import all_similarities, comparable
from aoe_train.settings.training import Similarity
from pairkit.app.errors import DataError
from pairkit.app.settings import argument
from pairkit.similarity.bm25 import Bm25, Scores
from pairkit.similarity.bm25 import words as words_of

Words = Literal["bm25", "tfidf"]
"""What ranks by words."""

WEIGHTS: Final[Mapping[Words, float]] = {"bm25": 0.65, "tfidf": 0.8}
"""How much vectors count unless told: as suits all-MiniLM-L6-v2 on issues of rust-lang/rust."""


_Weight = Annotated[float, Field(ge=0, le=1)]


class WordIndex(Protocol):
    """Texts that are searched by words."""

    def scores(self, text: str) -> Scores:
        """The score of each of them, (text,), for any text; at least 0."""
        ...


class TfIdf:
    """Cosines of TF-IDF vectors of words, names and numbers.

    Unlike BM25 it takes a long text that is searched for as seriously as a long text that is found.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._size = len(texts)
        self._vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)
        try:
            self._by_word = self._vectorizer.fit_transform(texts).T.tocsr()
        except ValueError:  # no text has a word
            self._by_word = None

    def scores(self, text: str) -> Scores:
        """The cosine of each text of the index with `text`, (text,), in [0, 1]."""
        if self._by_word is None:
            return np.zeros(self._size, np.float32)
        found = self._vectorizer.transform([text]) @ self._by_word
        return np.asarray(found.toarray()[0], np.float32)


WORD_INDEXES: Final[Mapping[Words, Callable[[Sequence[str]], WordIndex]]] = {"bm25": Bm25, "tfidf": TfIdf}


class Hybrid:
    """An index of texts that is searched by vectors and words at once.

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
        """Index texts."""
        self.words: Words = argument("words", words, Words)
        self.weight: float = argument("weight", WEIGHTS[self.words] if weight is None else weight, _Weight)
        self.similarity: Similarity = argument("similarity", similarity, Similarity)
        shape = np.shape(vectors)
        if len(shape) != 2 or shape[0] != len(texts):
            raise DataError(f"{len(texts)} texts and vectors of shape {shape}; expected one vector each")
        if not np.isfinite(vectors).all():
            raise DataError("some vectors are not numbers (NaN, infinity); encode the texts again")
        self._vectors = comparable(np.asarray(vectors), self.similarity)
        self._index = WORD_INDEXES[self.words](texts)

    def __len__(self) -> int:
        """How many texts there are."""
        return len(self._vectors)

    def scores(self, text: str, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """How well each text fits, (text,), in [0, 1].

        Args:
            text: What is searched for.
            vector: Its vector, (dim,).

        Raises:
            DataError: A vector of another length.
        """
        asked = np.asarray(vector)
        if asked.shape != self._vectors.shape[1:]:
            raise DataError(
                f"the vector of the text has shape {asked.shape}, those of the index"
                f" {self._vectors.shape[1:]}; encode both with one model"
            )
        own = comparable(asked[None], self.similarity)
        near = all_similarities(own, self._vectors, self.similarity)[0]
        return fused(near, self._index.scores(text), self.weight)

    def best(self, text: str, vector: npt.NDArray[np.float32], count: int = 10) -> list[tuple[int, float]]:
        """The places of the texts that fit best with their scores, best first; ties in order of place.

        Args:
            text: What is searched for.
            vector: Its vector, (dim,).
            count: How many.
        """
        found = self.scores(text, vector)
        order = np.argsort(-found, kind="stable")[:count]
        return [(int(place), float(found[place])) for place in order]


def fused(by_vectors: np.ndarray, by_words: np.ndarray, weight: float) -> np.ndarray:
    """The scores of two rankings of the same candidates as one: float64 (candidate,), in [0, 1]."""
    return weight * _scaled(by_vectors) + (1 - weight) * _scaled(by_words)


def _scaled(scores: np.ndarray) -> np.ndarray:
    """Over [0, 1]; all 0 where they are all alike."""
    exact = scores.astype(np.float64)
    low, high = (exact.min(), exact.max()) if len(exact) else (0.0, 0.0)
    return (exact - low) / (high - low) if high > low else np.zeros_like(exact)
