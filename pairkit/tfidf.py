"""Cosines of TF-IDF vectors over a fixed list of texts; of words, names and numbers.

A word weighs (1 + ln of how often it stands in a text) * (1 + ln((1 + texts) / (1 + texts that have it))), as
scikit-learn has it with `sublinear_tf`. Unlike BM25 it takes a long text that is searched for as seriously as
a long text that is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pairkit.bm25 import Scores
from pairkit.words import words


class TfIdf:
    """An index: the cosine of each of its texts with any text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._vocabulary: dict[str, int] = {}
        number = self._vocabulary.setdefault
        counted = [Counter(number(word, len(self._vocabulary)) for word in words(text)) for text in texts]
        self._size = len(counted)
        lengths = np.fromiter(map(len, counted), np.int64, len(counted))
        text = np.repeat(np.arange(self._size), lengths)
        word = np.fromiter((word for each in counted for word in each), np.int64, lengths.sum())
        often = np.fromiter((count for each in counted for count in each.values()), float, lengths.sum())
        frequency = np.bincount(word, minlength=len(self._vocabulary))
        self._idf = 1 + np.log((1 + self._size) / (1 + frequency))
        weights = (1 + np.log(often)) * self._idf[word]
        norms = np.sqrt(np.bincount(text, weights * weights, minlength=self._size))
        by_word = np.argsort(word, kind="stable")
        self._texts, self._weights = text[by_word], (weights / norms[text])[by_word]
        self._ends = np.cumsum(frequency)

    def scores(self, text: str) -> Scores:
        """The cosine of each text of the index with `text`, be it one of them or not; in [0, 1]."""
        known = Counter(self._vocabulary[word] for word in words(text) if word in self._vocabulary)
        found = np.zeros(self._size)
        square = 0.0
        for word, count in sorted(known.items()):
            weight = (1 + np.log(count)) * self._idf[word]
            square += weight * weight
            place = slice(self._ends[word - 1] if word else 0, self._ends[word])
            found[self._texts[place]] += weight * self._weights[place]
        return (found / np.sqrt(square) if square else found).astype(np.float32)
