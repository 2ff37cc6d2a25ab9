"""Vectors of texts: made once for each distinct text, compared in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

Encode = Callable[[list[str]], np.ndarray]
"""Texts to float32 (text, dim); `Encoder.encode` is one."""

ROUNDING = 1e-12  # cosines nearer than this are equal: float64 can't tell
_BLOCK = 8192


class Vectors:
    """The vector of each distinct text of several collections, encoded in one go.

    Attributes:
        matrix: float32 (text, dim), one row for each distinct text.
    """

    def __init__(self, encode: Encode, collections: Iterable[Sequence[str]]) -> None:
        texts = list(dict.fromkeys(text for texts in collections for text in texts))
        self._row = {text: row for row, text in enumerate(texts)}
        self.matrix = encode(texts)

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """int64 (text,): where in `matrix` each text's vector stands."""
        return np.array([self._row[text] for text in texts], np.int64)


def unit(vectors: np.ndarray) -> np.ndarray:
    """(row, dim) as float64 of length one; a zero vector stays zero, so that its cosines are 0."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    np.divide(exact, lengths, out=exact, where=lengths > 0)
    return exact


def pair_cosines(vectors: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Cosine of each pair in float64.

    Args:
        vectors: (text, dim)
        pairs: (pair, 2), indices into `vectors`.
    """
    cosines = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):  # a float64 copy of all of them could be large
        one, other = pairs[start : start + _BLOCK].T
        cosines[start : start + _BLOCK] = np.einsum("pd,pd->p", unit(vectors[one]), unit(vectors[other]))
    return cosines
