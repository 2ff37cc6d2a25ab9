"""Average word vectors: GloVe (Pennington et al., 2014), word2vec (Mikolov et al., 2013), fastText.

A text's vector is the mean of its words' (the papers' "avg. GloVe"). Files have a word and its numbers a
line; a first line of count and size is word2vec's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pairkit.app.errors import DataError
from pairkit.system.lines import read_text_lines

_SUFFIXES = ".txt", ".vec"  # perhaps with .gz behind
_LONGEST = 10_000  # numbers of a vector
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def is_word_vectors(name: str) -> bool:
    """Whether a model's name is that of a file of word vectors."""
    return name.removesuffix(".gz").endswith(_SUFFIXES) and Path(name).is_file()


def read_word_vectors(path: Path) -> tuple[np.ndarray, dict[str, int]]:
    """The vectors, float32 (word, dim), and each word's row; of a word that comes twice the first counts.

    A word may hold spaces, as some of GloVe's do: the numbers are the last `dim` fields of a line.
    """
    rows: list[np.ndarray] = []
    places: dict[str, int] = {}
    dim = 0
    for number, line in read_text_lines(path):
        fields = line.rstrip("\r\n ").split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            dim = int(fields[1])  # word2vec's first line
            continue
        dim = dim or len(fields) - 1
        word = " ".join(fields[:-dim]) if 0 < dim < len(fields) else ""
        try:
            vector = np.array(fields[len(fields) - dim :], np.float32)
        except ValueError:
            vector = np.empty(0, np.float32)
        if not word or dim > _LONGEST or len(vector) != dim or not np.isfinite(vector).all():
            raise DataError(
                f"expected a word and {dim or 'some'} numbers with single spaces between them, as GloVe's and"
                " word2vec's text files have",
                path=path,
                row=number,
            )
        if word not in places:
            places[word] = len(rows)
            rows.append(vector)
    if not rows:
        raise DataError("no word vectors; expected a word and its numbers a line", path=path)
    return np.stack(rows), places


class WordVectors:
    """The mean of the vectors of a text's words, as a function from texts to vectors.

    Words are looked up as they are written, else lower-cased; a clitic that a file has by itself ("'s") is
    cut off if the whole word is not there. Unknown words have no part in the mean; a text of unknown words
    alone is a vector of zeros.
    """

    def __init__(self, path: Path) -> None:
        self.vectors, self.places = read_word_vectors(path)

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Vectors, float32 (text, dim)."""
        found = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        for row, text in enumerate(texts):
            known = [place for place in self._places(text) if place is not None]
            if known:
                found[row] = self.vectors[known].mean(axis=0)
        return found

    def _places(self, text: str) -> Iterator[int | None]:
        for word in _WORD.findall(text):
            stem, mark, rest = word.replace("’", "'").partition("'")
            whole = self._place(word)
            yield from (whole,) if whole is not None or not mark else map(self._place, (stem, mark + rest))

    def _place(self, word: str) -> int | None:
        return self.places.get(word, self.places.get(word.lower()))
