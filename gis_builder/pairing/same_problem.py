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
    title_coverage: (
        float  # share of a title's words that are in the other text; the lower of the two titles'
    )


class SameProblem:
    """Compares texts by their words; `texts` show which words are rare."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts_with: Counter[str] = Counter()
        total = 0
        for text in texts:
            texts_with.update(set(words(text)))
            total += 1

        def rarity(word: str) -> float:
            return math.log((total + 1) / (texts_with[word] + 0.5))

        @lru_cache(_CACHED_TEXTS)  # a cache of a method would keep the counts alive
        def weighted_words(text: str) -> dict[str, float]:
            counts = Counter(words(text))
            return {word: (1 + math.log(count)) * rarity(word) for word, count in counts.items()}

        self._rarity = rarity
        self._weighted_words = weighted_words

    def probability(self, first: str, second: str) -> float:
        """The probability in [0, 1]; the order of the texts doesn't matter."""
        weights = read_weights()
        logit = weights["intercept"]
        for name, value in self.similarities(first, second)._asdict().items():
            logit += weights[name] * value
        return round(1 / (1 + math.exp(-logit)), 3)

    def similarities(self, first: str, second: str) -> Similarities:
        """The features of the regression."""
        coverage = min(self._title_coverage(first, second), self._title_coverage(second, first))
        return Similarities(self._cosine(first, second), coverage)

    def _cosine(self, first: str, second: str) -> float:
        vector = self._weighted_words(first)
        other = self._weighted_words(second)
        product = math.fsum(
            weight * other[word] for word, weight in vector.items() if word in other
        )
        lengths = math.hypot(*vector.values()) * math.hypot(*other.values())
        return min(1.0, product / lengths) if lengths else 0.0

    def _title_coverage(self, text: str, other: str) -> float:
        title = set(words(text.partition("\n\n")[0]))
        found = title.intersection(self._weighted_words(other))
        total = math.fsum(map(self._rarity, title))
        return math.fsum(map(self._rarity, found)) / total if total else 0.0


@cache
def read_weights() -> dict[str, float]:
    """The intercept, and the weight of each similarity."""
    return tomllib.loads(WEIGHTS.read_text("utf-8"))
