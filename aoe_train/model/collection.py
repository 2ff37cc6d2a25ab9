"""Vectors among those of a collection: what to search depends on what the texts are searched for.

All vectors of a collection share a common part, which says nothing about a single text. With their mean m, a
text's vector v becomes

    z = unit(v - m)
    unit(z + a * mean of the k nearest z of the collection)

Neighbours bring texts of one topic together, and blur single ones (semantic graph smoothing, Fettal et al.,
2024, arXiv 2402.12890). Queries are treated like the collection's texts. a, k and the weight of words were
chosen for all-MiniLM-L6-v2 on banking77, Stack Overflow, RQE, Eclipse and Firefox.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.model.similarity import scaled_to_one
from aoe_train.settings.train_settings import Purpose
from pairkit.base.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.model.quantization import Vectors

_MIN_TEXTS = 50
# Texts that represent the collection, so that time is linear in its size.
_MAX_TEXTS = 10_000
_TEXTS_AT_ONCE = 512
# From this cosine on, a neighbour is the text itself.
_SAME = 0.9999
_SEED = 7


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
                f"--purpose {purpose} needs at least {_MIN_TEXTS} texts, whose mean shows what they have in"
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
