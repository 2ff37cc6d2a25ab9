"""What to search in a collection: its vectors, changed for a purpose, and its words.

All vectors of a collection share a common part, which says nothing about a single text. With their mean m, a
text's vector v becomes

    z = unit(v - m)
    unit(z + a * mean of the k nearest z of the collection)

Neighbours bring texts of one topic together, and blur single ones (semantic graph smoothing, Fettal et al.,
2024, arXiv 2402.12890). Queries are treated like the collection's texts. a, k and the weight of words were
chosen for all-MiniLM-L6-v2 on banking77, Stack Overflow, RQE, Eclipse and Firefox.

Vectors find paraphrases; BM25 finds the names, numbers and messages that vectors blur. The score is the
weighted sum of both, each scaled to [0, 1] over the candidates (Bruch, Gai & Ingber 2023, "An Analysis of
Fusion Functions for Hybrid Retrieval", where it beats rank fusion).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.model.similarity import scaled_to_one
from aoe_train.settings.train_settings import Purpose
from pairkit.base.errors import DataError
from pairkit.similarity.bm25 import Bm25, Scores
from pairkit.similarity.bm25 import words as words_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.model.quantization import Vectors

_MIN_TEXTS = 50
# Texts that represent the collection, so that time is linear in its size.
_MAX_TEXTS = 10_000
_TEXTS_AT_ONCE = 512
# From this cosine on, a neighbour is the text itself.
_SAME = 0.9999
_ROUNDING = 1e-6  # relative difference of scores in float32 that are equal
_SEED = 7

Words = Literal["bm25", "tfidf"]
"""Rankings by words."""

WEIGHTS: Final[Mapping[Words, float]] = {"bm25": 0.65, "tfidf": 0.8}
"""Default weight of vectors, chosen for all-MiniLM-L6-v2 on issues of rust-lang/rust."""


class Recipe(NamedTuple):
    """What is searched for a purpose: the weight of neighbours (a), and of vectors against words."""

    neighbours: float
    weight: float


RECIPES: Final[Mapping[Purpose, Recipe]] = {
    "group": Recipe(1.0, 0.9),
    "search": Recipe(0.0, 0.8),
    "match": Recipe(0.0, 0.75),
}


def drawn(count: int) -> Int[ndarray, " text"]:
    """The ascending numbers of the texts that represent a collection of this many."""
    shuffled = np.random.default_rng(_SEED).permutation(count)
    return np.sort(shuffled[:_MAX_TEXTS])


class Collection:
    """The texts of a collection, by a sample of their vectors."""

    def __init__(self, vectors: Vectors, purpose: Purpose) -> None:
        """`vectors` are the model's, of length 1."""
        if len(vectors) < _MIN_TEXTS:
            raise DataError(
                f"--purpose={purpose} needs at least {_MIN_TEXTS} texts, whose mean shows what they have in"
                f" common; found {len(vectors)}; leave it out, or set the purpose of an index to none"
            )
        sample = vectors[drawn(len(vectors))]
        self._mean = sample.mean(axis=0)
        self._centred = scaled_to_one(sample - self._mean)
        self._weight = RECIPES[purpose].neighbours
        # A quarter of the root suited 300 to 10,000 texts of banking77, clinc150 and Stack Overflow.
        self._count = max(1, round(np.sqrt(len(sample)) / 4))

    @property
    def identity(self) -> str:
        """A hash of everything that its vectors depend on."""
        digest = hashlib.sha256(f"{self._weight}".encode())
        digest.update(self._mean.tobytes())
        digest.update(self._centred.tobytes())
        return digest.hexdigest()

    def transform(
        self, vectors: Float[ndarray, "text dim"]
    ) -> Float[ndarray, "text dim"]:
        """The vectors to search, of length 1, for the model's vectors of texts or queries."""
        centred = scaled_to_one(vectors - self._mean)
        if not self._weight:
            return centred
        for start in range(0, len(centred), _TEXTS_AT_ONCE):
            block = centred[start : start + _TEXTS_AT_ONCE]
            block += self._weight * self._neighbours_mean(block)
        return scaled_to_one(centred)

    def _neighbours_mean(self, block: ndarray) -> ndarray:
        """The mean of the nearest vectors of the collection; a vector isn't its own neighbour."""
        cosines = block @ self._centred.T
        cosines[cosines > _SAME] = -1
        by_cosine = np.argpartition(cosines, -self._count, axis=1)
        nearest = by_cosine[:, -self._count :]
        mean: ndarray = self._centred[nearest].mean(axis=1)
        return mean


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
    if high - low <= _ROUNDING * abs(high):
        return (exact > 0).astype(np.float64)
    scaled: ndarray = (exact - low) / (high - low)
    return scaled
