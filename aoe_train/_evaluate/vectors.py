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


def comparable(vectors: np.ndarray, similarity: Similarity) -> np.ndarray:
    """(row, dim) as float64; of length one for cosines, which then are dot products."""
    return unit(vectors) if similarity == "cosine" else vectors.astype(np.float64)


def pair_similarities(vectors: np.ndarray, pairs: np.ndarray, similarity: Similarity) -> np.ndarray:
    """How alike the vectors of each pair are, in float64; distances are negative, so that more is more alike.

    They are rounded to what the vectors can tell: equal pairs of texts are ties.

    Args:
        vectors: (text, dim)
        pairs: (pair, 2), indices into `vectors`.
        similarity: The measure.
    """
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):  # a float64 copy of all of them could be large
        one, other = (comparable(vectors[side], similarity) for side in pairs[start : start + _BLOCK].T)
        found[start : start + _BLOCK] = _COMPARED[similarity](one, other)
    largest = float(np.abs(found).max(initial=0))
    scale = 1.0 if similarity == "cosine" else max(largest, np.finfo(np.float64).tiny)
    rounded: np.ndarray = (found / scale).round(_DIGITS) * scale
    return rounded


def all_similarities(one: np.ndarray, other: np.ndarray, similarity: Similarity) -> np.ndarray:
    """float64 (one, other): how alike each vector of one is to each of the other; see `pair_similarities`.

    Args:
        one: (one, dim), of `comparable`.
        other: (other, dim), of `comparable`.
        similarity: The measure.
    """
    if similarity in ("cosine", "dot"):
        products: np.ndarray = one @ other.T
        return products
    import torch

    tensors = torch.from_numpy(one), torch.from_numpy(other)
    distances: np.ndarray = torch.cdist(*tensors, 2.0 if similarity == "euclidean" else 1.0).numpy()
    return -distances


def _dots(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    dots: np.ndarray = np.einsum("pd,pd->p", one, other)
    return dots


_COMPARED: dict[Similarity, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cosine": _dots,
    "dot": _dots,
    "euclidean": lambda one, other: -np.linalg.norm(one - other, axis=1),
    "manhattan": lambda one, other: -np.abs(one - other).sum(axis=1),
}
