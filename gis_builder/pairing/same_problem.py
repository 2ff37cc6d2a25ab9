"""The probability that an issue and the one that it was closed for describe the same problem.

It depends on two similarities of their texts. `same_problem.toml` has the weights of a logistic regression,
which `benchmarks/strict_pairs.py --fit` fits to pairs that were read one by one.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from pairkit.similarity.bm25 import words

WEIGHTS = Path(__file__).with_name("same_problem.toml")
_CACHED_TEXTS = 512  # an original is compared with each of its duplicates


class Similarities(NamedTuple):
    """How much two issues have in common, from 0 to 1; rare words count more."""

    text_cosine: float  # TF-IDF cosine of the texts
    # Share of a title's words that are in the other text; the lower of the two titles'
    title_coverage: float


class SameProblem:
    """Compares texts by their words; `texts` show which words are rare."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts_with: Counter[str] = Counter()
        self._total = 0
        for text in texts:
            self._texts_with.update(set(words(text)))
            self._total += 1
        # A decorated method would keep this object alive.
        self._weighted_words = lru_cache(_CACHED_TEXTS)(self._weigh_words)

    def _rarity(self, word: str) -> float:
        texts_with = self._texts_with[word] + 0.5
        return math.log((self._total + 1) / texts_with)

    def _weigh_words(self, text: str) -> dict[str, float]:
        weights = {}
        for word, count in Counter(words(text)).items():
            weights[word] = (1 + math.log(count)) * self._rarity(word)
        return weights

    def probability(self, first: str, second: str) -> float:
        """The probability in [0, 1]; the order of the texts doesn't matter."""
        weights = read_weights()
        similarities = self.similarities(first, second)._asdict()
        logit = weights["intercept"]
        for name, value in similarities.items():
            logit += weights[name] * value
        return round(1 / (1 + math.exp(-logit)), 3)

    def similarities(self, first: str, second: str) -> Similarities:
        """The features of the regression."""
        first_coverage = self._title_coverage(first, second)
        second_coverage = self._title_coverage(second, first)
        return Similarities(
            self._cosine(first, second), min(first_coverage, second_coverage)
        )

    def _cosine(self, first: str, second: str) -> float:
        vector = self._weighted_words(first)
        other = self._weighted_words(second)
        shared = vector.keys() & other.keys()
        product = math.fsum(vector[word] * other[word] for word in shared)
        lengths = math.hypot(*vector.values()) * math.hypot(*other.values())
        if not lengths:
            return 0.0
        return min(1.0, product / lengths)

    def _title_coverage(self, text: str, other: str) -> float:
        first_line, _, _ = text.partition("\n\n")
        title = set(words(first_line))
        shared = title.intersection(self._weighted_words(other))
        total = math.fsum(map(self._rarity, title))
        if not total:
            return 0.0
        return math.fsum(map(self._rarity, shared)) / total


@cache
def read_weights() -> dict[str, float]:
    """The intercept, and the weight of each similarity."""
    return tomllib.loads(WEIGHTS.read_text("utf-8"))
