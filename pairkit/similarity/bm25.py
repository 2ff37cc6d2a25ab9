"""BM25 over a fixed list of texts, as in Lucene (k1 1.5, b 0.75), on words, names and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pairkit.base.errors import DataError
from pairkit.base.printable import comparable
from pairkit.base.system.files import write_json
from pairkit.base.system.folders import read_json_object
from pairkit.similarity.terms import MARKS, segmented

if TYPE_CHECKING:
    import bm25s


_ASCII_WORD = re.compile(r"[a-z_][a-z0-9_]+|[a-z]|[0-9]{2,}")
_WORD = re.compile(rf"(?:[^\W\d]|[{MARKS}])[\w{MARKS}]+|[^\W\d_]|[0-9]{{2,}}")

Scores: TypeAlias = npt.NDArray[np.float32]
_WORDS: Final = "words.json"


def words(text: str) -> list[str]:
    """The words of a text with repetitions; character bigrams in scripts without blanks."""
    text = comparable(text).lower()
    return (
        _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(segmented(text))
    )


class Bm25:
    """An index of texts that scores each of them for a query."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        vocabulary: dict[str, int] = {}
        documents = [
            [vocabulary.setdefault(word, len(vocabulary)) for word in words(text)]
            for text in texts
        ]
        # bm25s needs at least one word; texts without words score 0.
        vocabulary[""] = len(vocabulary)
        self._vocabulary = vocabulary
        self._size = len(documents)
        self._index: bm25s.BM25 = bm25s.BM25()
        if documents:
            with np.errstate(invalid="ignore"):  # if no text has a word
                self._index.index((documents, vocabulary), show_progress=False)

    def most(self, text: str) -> float:
        """An upper bound of all scores for `text`: the sum of each word's highest score."""
        if not self._size:
            return 0.0
        starts = self._index.scores["indptr"]
        scores = self._index.scores["data"]
        highest = 0.0
        for word in self._word_numbers(text):
            highest += scores[starts[word] : starts[word + 1]].max(initial=0)
        return float(highest)

    def save(self, folder: Path) -> None:
        """Write the index into an existing folder."""
        # In the order of their numbers, as each got the next one.
        write_json(folder / _WORDS, {"texts": self._size, "words": [*self._vocabulary]})
        if self._size:
            self._index.save(folder, show_progress=False)

    @classmethod
    def load(cls, folder: Path, texts: int) -> Bm25:
        """Load an index of this many texts from `save`, memory-mapped."""
        import bm25s

        index = cls([])
        try:
            saved = read_json_object(folder / _WORDS)
            index._size = saved["texts"]
            index._vocabulary = {
                str(word): number for number, word in enumerate(saved["words"])
            }
            if index._size:
                options = {"mmap": True, "load_vocab": False, "show_progress": False}
                index._index = bm25s.BM25.load(folder, backend="numpy", **options)
        except Exception as error:  # bm25s and numpy raise anything for damaged files
            raise DataError(
                "not readable; build the index again", path=folder
            ) from error
        if index._size != texts:
            raise DataError(
                f"isn't of the words of {texts:,} texts; build the index again",
                path=folder,
            )
        return index

    def scores(self, text: str) -> Scores:
        """The score of each indexed text for the distinct words of `text`."""
        word_numbers = self._word_numbers(text)
        if not word_numbers or not self._size:
            return np.zeros(self._size, np.float32)
        scores: Scores = self._index.get_scores_from_ids(sorted(word_numbers))
        return scores

    def _word_numbers(self, text: str) -> set[int]:
        """The numbers of the distinct words of `text` in the index."""
        return {
            self._vocabulary[word] for word in words(text) if word in self._vocabulary
        }


def best(scores: Scores, count: int) -> npt.NDArray[np.intp]:
    """The indices of the `count` highest positive scores, best first; ties by index."""
    is_candidate = scores > 0
    if 0 < count < len(scores):
        # All scores from the count-th best on, so that partition doesn't cut ties arbitrarily.
        is_candidate &= scores >= np.partition(scores, -count)[-count]
    candidates = np.flatnonzero(is_candidate)
    by_score = np.argsort(-scores[candidates], kind="stable")
    return candidates[by_score][:count]
