"""Vectors of texts: made once for each distinct text, compared in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pairkit.errors import DataError

Encode = Callable[[list[str]], np.ndarray]
"""Texts to float32 (text, dim); `Encoder.encode` is one."""

Input = str | tuple[str, str]
"""A text, or two that the model shall read as one input with its separator between them."""

ROUNDING = 1e-12  # cosines nearer than this are equal: float64 can't tell
_DIGITS = 12  # of a cosine; what lies behind is float64's noise, which would break ties
_BLOCK = 8192


class Vectors:
    """The vector of each distinct input of several collections, encoded in one go.

    Attributes:
        matrix: float32 (text, dim), one row for each distinct input.
    """

    def __init__(
        self, encode: Encode, collections: Iterable[Sequence[Input]], *, separator: str = " "
    ) -> None:
        """Encode.

        Args:
            encode: Makes the vectors.
            collections: What will be asked for.
            separator: Put between the two texts of one input, such as " [SEP] ".

        Raises:
            DataError: The vectors are not one finite row a text.
        """
        inputs = list(dict.fromkeys(item for items in collections for item in items))
        self._row = {item: row for row, item in enumerate(inputs)}
        self.matrix = encode([item if isinstance(item, str) else separator.join(item) for item in inputs])
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != len(inputs):
            raise DataError(f"{len(inputs)} texts got vectors of shape {shape}; expected one vector each")
        bad = np.flatnonzero(~np.isfinite(self.matrix).all(axis=1))
        if len(bad):
            raise DataError(
                f"the model gives {len(bad)} of {len(inputs)} texts vectors that are not numbers (NaN,"
                f" infinity), first {str(inputs[bad[0]])[:60]!r}; try --precision fp32"
            )

    def rows(self, inputs: Sequence[Input]) -> np.ndarray:
        """int64 (text,): where in `matrix` each input's vector stands."""
        return np.array([self._row[item] for item in inputs], np.int64)


def unit(vectors: np.ndarray) -> np.ndarray:
    """(row, dim) as float64 of length one; a zero vector stays zero, so that its cosines are 0."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    np.divide(exact, lengths, out=exact, where=lengths > 0)
    return exact


def pair_cosines(vectors: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Cosine of each pair in float64, rounded to what its vectors can tell: equal pairs of texts are ties.

    Args:
        vectors: (text, dim)
        pairs: (pair, 2), indices into `vectors`.
    """
    cosines = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):  # a float64 copy of all of them could be large
        one, other = pairs[start : start + _BLOCK].T
        cosines[start : start + _BLOCK] = np.einsum("pd,pd->p", unit(vectors[one]), unit(vectors[other]))
    return cosines.round(_DIGITS)
