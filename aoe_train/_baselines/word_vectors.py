"""Average word vectors: GloVe (Pennington et al., 2014), word2vec (Mikolov et al., 2013), fastText.

A text's vector is the mean of its words' (the papers' "avg. GloVe").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aoe_train._conflicts import Say, silent
from aoe_train._prompts import NamedPrompts, written_out
from aoe_train._settings import Similarity
from aoe_train._word_vectors import read_word_vectors
from pairkit.files import sha256

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class WordVectors:
    """The mean of the vectors of a text's words; see `Embedder`.

    Words are looked up as they are written, else lower-cased; a clitic that a file has by itself ("'s") is
    cut off where the whole word is not there. Unknown words have no part in the mean; a text of unknown words
    alone is a vector of zeros. How many there are is told with each call.
    """

    separator = " "
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"
    device = "cpu"

    def __init__(self, path: Path, say: Say = silent) -> None:
        """Read a file.

        Args:
            path: The file.
            say: Told of words that it lacks.

        Raises:
            DataError: Not such a file, with the row.
        """
        self.name, self.identity = path.name, sha256(path)
        self.vectors, self.places = read_word_vectors(path)
        self._say = say

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim)."""
        found = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        words = unknown = empty = 0
        for row, text in enumerate(texts):
            places = [*self._places(written_out(prompt, text) if prompt else text)]
            known = [place for place in places if place is not None]
            words += len(places)
            unknown += len(places) - len(known)
            empty += not known
            if known:
                found[row] = self.vectors[known].mean(axis=0)
        if unknown:
            self._say(
                f"{self.name}: {unknown:,} of {words:,} words have no vector; {empty:,} of {len(texts):,}"
                " texts have no word that has one"
            )
        return found

    def _places(self, text: str) -> Iterator[int | None]:
        for word in _WORD.findall(text):
            stem, mark, rest = word.replace("’", "'").partition("'")
            whole = self._place(word)
            yield from (whole,) if whole is not None or not mark else map(self._place, (stem, mark + rest))

    def _place(self, word: str) -> int | None:
        return self.places.get(word, self.places.get(word.lower()))
