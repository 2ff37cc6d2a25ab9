"""Files of word vectors: a word and its numbers a line, as GloVe, word2vec and fastText write them as text.

A first line of count and size is word2vec's, and GloVe's have none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pairkit.errors import DataError
from pairkit.lines import read_text_lines

SUFFIXES = (".txt", ".vec")  # perhaps with .gz behind
_LONGEST = 10_000  # numbers of a vector


def is_word_vectors(name: str) -> bool:
    """Whether a model's name is that of a file of word vectors."""
    return name.removesuffix(".gz").endswith(SUFFIXES) and Path(name).is_file()


def read_word_vectors(path: Path) -> tuple[np.ndarray, dict[str, int]]:
    """The vectors, float32 (word, dim), and each word's row; of a word that comes twice the first counts.

    A word may hold spaces, as some of GloVe's do: the numbers are the last `dim` fields of a line.

    Raises:
        DataError: A line of other length than the first vector's, or whose numbers are none; with its row.
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
