"""How alike vectors are, by the measure that their model is made for; in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aoe_train.settings.training import Similarity

ROUNDING = 1e-12  # cosines nearer than this are equal: float64 can't tell
_DIGITS = 12  # of a cosine; what lies behind is float64's noise, which would break ties
_BLOCK = 8192


def unit(vectors: np.ndarray) -> np.ndarray:
    """(row, dim) as float64 of length one; a zero vector stays zero, so that its cosines are 0."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    np.divide(exact, lengths, out=exact, where=lengths > 0)
    return exact


def scaled_to_one(vectors: np.ndarray) -> np.ndarray:
    """(row, dim) at length one, in their own numbers and in place; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def comparable(vectors: np.ndarray, similarity: Similarity) -> np.ndarray:
    """(row, dim) as float64; of length one for cosines, which then are dot products."""
    return unit(vectors) if similarity == "cosine" else vectors.astype(np.float64)


def pair_similarities(vectors: np.ndarray, pairs: np.ndarray, similarity: Similarity) -> np.ndarray:
    """How alike the vectors of each pair are, in float64; distances are negative, so that more is more alike.

    They are rounded to what the vectors can tell: equal pairs of texts are ties.
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
    """float64 (one, other): how alike each vector of one is to each of the other; see `pair_similarities`."""
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
