"""Vectors of texts: made once for each distinct text, compared in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from aoe_train._settings import Similarity
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
        similarity: What they are compared by.
    """

    def __init__(
        self,
        encode: Encode,
        collections: Iterable[Sequence[Input]],
        *,
        separator: str = " ",
        similarity: Similarity = "cosine",
    ) -> None:
        """Encode.

        Args:
            encode: Makes the vectors.
            collections: What will be asked for.
            separator: Put between the two texts of one input, such as " [SEP] ".
            similarity: What the model's vectors are compared by.

        Raises:
            DataError: The vectors are not one finite row a text.
        """
        self.similarity = similarity
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


def pair_similarities(vectors: np.ndarray, pairs: np.ndarray, similarity: Similarity) -> np.ndarray:
    """How alike the vectors of each pair are, in float64; distances are negative, so that more is more alike.

    Equal pairs of texts are ties, as in `pair_cosines`.

    Args:
        vectors: (text, dim)
        pairs: (pair, 2), indices into `vectors`.
        similarity: The measure.
    """
    if similarity == "cosine":
        return pair_cosines(vectors, pairs)
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):
        one, other = (vectors[side].astype(np.float64) for side in pairs[start : start + _BLOCK].T)
        found[start : start + _BLOCK] = _COMPARED[similarity](one, other)
    scale = max(float(np.abs(found).max(initial=0)), np.finfo(np.float64).tiny)
    rounded: np.ndarray = (found / scale).round(_DIGITS) * scale
    return rounded


def all_similarities(one: np.ndarray, other: np.ndarray, similarity: Similarity) -> np.ndarray:
    """float64 (one, other): how alike each vector of one is to each of the other; see `pair_similarities`."""
    if similarity == "cosine":
        one, other = unit(one), unit(other)
    exact = one.astype(np.float64), other.astype(np.float64)
    if similarity in ("cosine", "dot"):
        products: np.ndarray = exact[0] @ exact[1].T
        return products
    import torch

    tensors = torch.from_numpy(exact[0]), torch.from_numpy(exact[1])
    distances: np.ndarray = torch.cdist(*tensors, 2.0 if similarity == "euclidean" else 1.0).numpy()
    return -distances


_COMPARED = {
    "dot": lambda one, other: np.einsum("pd,pd->p", one, other),
    "euclidean": lambda one, other: -np.linalg.norm(one - other, axis=1),
    "manhattan": lambda one, other: -np.abs(one - other).sum(axis=1),
}


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
