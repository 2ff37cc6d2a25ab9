"""BERT-whitening (Su et al., 2021, arXiv 2103.15316): vectors of unit covariance, by a linear map.

Algorithm 1 there: mu and Sigma are mean and covariance of the vectors of a corpus, Sigma = U Lambda U^T with
the largest eigenvalues first, and a vector x becomes (x - mu) W, where W has the first k columns of
U Lambda^(-1/2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    from papers.methods.base import Encode

# Share of the largest eigenvalue below which a direction is taken for rounding errors: to stretch those to
# unit variance would fill vectors with noise. all-MiniLM-L6-v2 has three such directions.
_NOTHING = 1e-7


def whitened(encode: Encode, texts: Sequence[str], dim: int | None = None) -> Encode:
    """`encode` with a whitening behind it that is fitted to its vectors of `texts`."""
    weight, bias = whitening(encode(list(texts)), dim)
    return lambda texts: encode(texts) @ weight.T + bias


def whitening(vectors: np.ndarray, dim: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The map's weight W^T (dim, in) and bias (dim,), float32.

    Either sign of a direction would do: its largest number is positive, so that machines agree.
    """
    numbers = vectors.shape[1]
    if dim is not None and not 1 <= dim <= numbers:
        raise ConfigError(f"whitening to {dim} directions: the model's vectors have {numbers} numbers")
    centred = vectors.astype(np.float64)
    mean = centred.mean(axis=0)
    centred -= mean
    values, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    values, directions = values[::-1], directions[:, ::-1]
    spanned = int((values > _NOTHING * values[0]).sum()) if values[0] > 0 else 0
    kept = spanned if dim is None else dim
    if spanned < max(kept, 1):
        raise DataError(
            f"whitening: the vectors of {len(vectors):,} texts span {spanned} directions; give more texts"
            " that differ, or keep fewer directions"
        )
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(numbers)])
    weight = (directions * signs)[:, :kept].T / np.sqrt(values[:kept, None])
    bias = -weight @ mean
    return weight.astype(np.float32), bias.astype(np.float32)
