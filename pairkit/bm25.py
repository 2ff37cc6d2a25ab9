"""BM25 over a fixed list of texts, as Lucene computes it (k1 1.5, b 0.75); of words, names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from pairkit.words import words

if TYPE_CHECKING:
    import bm25s

Scores: TypeAlias = npt.NDArray[np.float32]


class Bm25:
    """An index: scores each of its texts against any text."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self._vocabulary: dict[str, int] = {}
        number = self._vocabulary.setdefault
        documents = [[number(word, len(self._vocabulary)) for word in words(text)] for text in texts]
        # An index needs a word; texts without any score 0 with everything.
        number("", len(self._vocabulary))
        self._size = len(documents)
        self._index: bm25s.BM25 = bm25s.BM25()
        if documents:
            self._index.index((documents, self._vocabulary), show_progress=False)

    def scores(self, text: str) -> Scores:
        """The score of each text of the index for the distinct words of `text`, be it one of them or not."""
        known = {self._vocabulary[word] for word in words(text) if word in self._vocabulary}
        if not known or not self._size:
            return np.zeros(self._size, np.float32)
        found: Scores = self._index.get_scores_from_ids(sorted(known))
        return found


def best(scores: Scores, count: int) -> npt.NDArray[np.intp]:
    """The places of the `count` highest scores above 0, best first; ties in order of place."""
    if 0 < count < len(scores):
        # Everything from the count-th best score on, so that ties are not cut by the sorting method.
        least = float(np.partition(scores, -count)[-count])
        likely = np.flatnonzero((scores >= least) & (scores > 0))
    else:
        likely = np.flatnonzero(scores > 0)
    return likely[np.lexsort((likely, -scores[likely]))][:count]
