"""Average word vectors: GloVe (Pennington et al., 2014), word2vec (Mikolov et al., 2013), fastText.

A text's vector is the mean of its words' vectors (the papers' "avg. GloVe"). A file has a word and its vector
on each line; files of word2vec start with a line of count and dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pairkit.base.errors import DataError
from pairkit.base.system.text_lines import read_text_lines

_SUFFIXES = ".txt", ".vec"  # optionally followed by .gz
_MAX_DIM = 10_000
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def is_word_vectors(name: str) -> bool:
    """Whether a model's name is a file of word vectors."""
    return name.removesuffix(".gz").endswith(_SUFFIXES) and Path(name).is_file()


def read_word_vectors(path: Path) -> tuple[np.ndarray, dict[str, int]]:
    """The vectors, float32 (word, dim), and the row of each word; of a repeated word the first one counts.

    A word may contain spaces, as some in GloVe do: its vector is in the last `dim` fields of the line.
    """
    rows: list[np.ndarray] = []
    row_of_word: dict[str, int] = {}
    dim = 0
    for number, line in read_text_lines(path):
        fields = line.rstrip("\r\n ").split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            _, width = fields  # the header of word2vec
            dim = int(width)
            continue
        dim = dim or len(fields) - 1
        start = len(fields) - dim
        word = " ".join(fields[:start]) if dim and start > 0 else ""
        try:
            vector = np.array(fields[start:], np.float32)
        except ValueError:
            vector = np.empty(0, np.float32)
        if (
            not word
            or dim > _MAX_DIM
            or len(vector) != dim
            or not np.isfinite(vector).all()
        ):
            raise DataError(
                f"expected a word and {dim or 'some'} numbers separated by single spaces, as in GloVe and"
                " word2vec text files",
                path=path,
                row=number,
            )
        if word not in row_of_word:
            row_of_word[word] = len(rows)
            rows.append(vector)
    if not rows:
        raise DataError(
            "no word vectors; expected a word and its vector on each line", path=path
        )
    return np.stack(rows), row_of_word


class WordVectors:
    """Maps texts to the means of their words' vectors.

    A word is looked up as written, then in lower case. If a word with an apostrophe is unknown, its parts are
    looked up ("it", "'s"). Unknown words are skipped; a text without known words becomes zeros.
    """

    def __init__(self, path: Path) -> None:
        self._vectors, self._row_of_word = read_word_vectors(path)

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Vectors, float32 (text, dim)."""
        means = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for index, text in enumerate(texts):
            rows = [row for row in self._rows(text) if row is not None]
            if rows:
                means[index] = self._vectors[rows].mean(axis=0)
        return means

    def _rows(self, text: str) -> Iterator[int | None]:
        for word in _WORD.findall(text):
            row = self._row(word)
            stem, mark, rest = word.replace("’", "'").partition("'")
            if row is None and mark:
                yield self._row(stem)
                yield self._row(mark + rest)
            else:
                yield row

    def _row(self, word: str) -> int | None:
        return self._row_of_word.get(word, self._row_of_word.get(word.lower()))
