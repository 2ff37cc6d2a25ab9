"""Similarity of vectors in float64, by the measure that suits the model."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from aoe_train.settings.train_settings import Similarity

# Smaller differences of cosines are rounding errors of float64.
ROUNDING = 1e-12
# Digits of a cosine; further digits are rounding errors, which would break ties.
_DIGITS = 12
_PAIRS_AT_ONCE = 8192


def unit(vectors: ndarray) -> ndarray:
    """(row, dim) in float64, scaled to length 1; a zero vector stays zero, so its cosines are 0."""
    return scaled_to_one(vectors.astype(np.float64))


def scaled_to_one(vectors: ndarray) -> ndarray:
    """(row, dim), scaled to length 1 in place; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def comparable(vectors: ndarray, similarity: Similarity) -> ndarray:
    """(row, dim) in float64; for cosine scaled to length 1, so that cosines are dot products."""
    return unit(vectors) if similarity == "cosine" else vectors.astype(np.float64)


def pair_similarities(
    vectors: ndarray, pairs: ndarray, similarity: Similarity
) -> ndarray:
    """float64 (pair,), larger is more similar; rounding errors are removed, so that equal texts are ties."""
    exact = np.empty(len(pairs))
    # A float64 copy of all vectors could be large.
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        block = slice(start, start + _PAIRS_AT_ONCE)
        first, second = (
            comparable(vectors[side], similarity) for side in pairs[block].T
        )
        if similarity == "euclidean":
            exact[block] = -np.linalg.norm(first - second, axis=1)
        elif similarity == "manhattan":
            exact[block] = -np.abs(first - second).sum(axis=1)
        else:
            exact[block] = np.einsum("pd,pd->p", first, second)

    scale = 1.0
    if similarity != "cosine":
        largest = float(np.abs(exact).max(initial=0))
        scale = max(largest, np.finfo(np.float64).tiny)
    rounded: ndarray = (exact / scale).round(_DIGITS) * scale
    return rounded


def all_similarities(
    queries: ndarray, texts: ndarray, similarity: Similarity
) -> ndarray:
    """float64 (query, text): the similarity of each query to each text; see `pair_similarities`."""
    if similarity in ("cosine", "dot"):
        products: ndarray = queries @ texts.T
        return products
    import torch

    order = 2.0 if similarity == "euclidean" else 1.0
    distances = torch.cdist(torch.from_numpy(queries), torch.from_numpy(texts), order)
    similarities: ndarray = -distances.numpy()
    return similarities
