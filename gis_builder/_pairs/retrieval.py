"""BM25 among the texts of one repository: which other text looks most like this one, and how much."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence

import bm25s
import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+|[^\W\d_]+|[0-9]{2,}")
_REMEMBERED = 512  # score vectors kept; one is four bytes a text

Scores = npt.NDArray[np.float32]


class Retriever:
    """Scores every text of a fixed list against one of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        vocabulary: dict[str, int] = {}
        documents = [
            [vocabulary.setdefault(word, len(vocabulary)) for word in _WORD.findall(text.lower())]
            for text in texts
        ]
        # An index needs a word; texts without any score 0 with everything.
        vocabulary.setdefault("", len(vocabulary))
        self._queries = [sorted(set(document)) for document in documents]
        self._index = bm25s.BM25()
        self._index.index((documents, vocabulary), show_progress=False)
        self._recent: OrderedDict[int, Scores] = OrderedDict()

    def scores(self, position: int) -> Scores:
        """The BM25 score of every text for the distinct words of the text at `position`."""
        known = self._recent.get(position)
        if known is None:
            query = self._queries[position]
            known = (
                self._index.get_scores_from_ids(query)
                if query
                else np.zeros(len(self._queries), dtype=np.float32)
            )
            self._recent[position] = known
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        else:
            self._recent.move_to_end(position)
        return known

    def share(self, one: int, other: int) -> float:
        """The larger score of one for the other, as a share of the asking text's score for itself."""
        return max(self._one_way(one, other), self._one_way(other, one))

    def best(self, position: int, count: int) -> list[int]:
        """The `count` other texts that score highest and above 0, best first; ties in order of position."""
        scores = self.scores(position)
        if count < len(scores):
            # Everything from the count-th best score on, so that ties are not cut by the sorting method.
            least = float(np.partition(scores, -count - 1)[-count - 1])
            likely = np.flatnonzero((scores >= least) & (scores > 0))
        else:
            likely = np.flatnonzero(scores > 0)
        ranked = likely[np.lexsort((likely, -scores[likely]))]
        return [int(other) for other in ranked if other != position][:count]

    def _one_way(self, asking: int, other: int) -> float:
        scores = self.scores(asking)
        own = float(scores[asking])
        return float(scores[other]) / own if own > 0 else 0.0
