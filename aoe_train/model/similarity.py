"""Similarity of vectors in float64, by the measure that suits the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aoe_train.settings.train_settings import Similarity

ROUNDING = 1e-12  # smaller differences of cosines are rounding errors of float64
_DIGITS = 12  # of a cosine; further digits are rounding errors, which would break ties
_BLOCK = 8192


def unit(vectors: np.ndarray) -> np.ndarray:
    """(row, dim) in float64, scaled to length 1; a zero vector stays zero, so its cosines are 0."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    np.divide(exact, lengths, out=exact, where=lengths > 0)
    return exact


def scaled_to_one(vectors: np.ndarray) -> np.ndarray:
    """(row, dim), scaled to length 1 in place; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def comparable(vectors: np.ndarray, similarity: Similarity) -> np.ndarray:
    """(row, dim) in float64; for cosine scaled to length 1, so that cosines are dot products."""
    return unit(vectors) if similarity == "cosine" else vectors.astype(np.float64)


def pair_similarities(vectors: np.ndarray, pairs: np.ndarray, similarity: Similarity) -> np.ndarray:
    """float64 (pair,): the similarity of each pair; distances are negated, so larger means more similar.

    Rounding errors are removed, so that pairs of equal texts are ties.
    """
    exact = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):  # a float64 copy of all vectors could be large
        one, other = (comparable(vectors[side], similarity) for side in pairs[start : start + _BLOCK].T)
        exact[start : start + _BLOCK] = _COMPARED[similarity](one, other)
    largest = float(np.abs(exact).max(initial=0))
    scale = 1.0 if similarity == "cosine" else max(largest, np.finfo(np.float64).tiny)
    rounded: np.ndarray = (exact / scale).round(_DIGITS) * scale
    return rounded


def all_similarities(one: np.ndarray, other: np.ndarray, similarity: Similarity) -> np.ndarray:
    """float64 (one, other): the similarity of each vector to each other one; see `pair_similarities`."""
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
