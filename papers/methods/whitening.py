"""BERT-whitening (Su et al., 2021, arXiv 2103.15316): a linear map to vectors of unit covariance.

Algorithm 1 there: mu and Sigma are the mean and covariance of the vectors of a corpus, Sigma = U Lambda U^T
with eigenvalues in descending order. A vector x becomes (x - mu) W, where W has the first k columns of U
Lambda^(-1/2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from papers.methods.base import Encode

# Eigenvalues below this share of the largest one are rounding errors; scaling their directions to unit
# variance would add noise to the vectors. all-MiniLM-L6-v2 has three such directions.
_ROUNDING = 1e-7


def whitened(encode: Encode, texts: Sequence[str], dim: int | None = None) -> Encode:
    """`encode` followed by a whitening that is fitted to the vectors of `texts`."""
    weight, bias = whitening(encode(list(texts)), dim)
    return lambda texts: encode(texts) @ weight.T + bias


def whitening(vectors: np.ndarray, dim: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The map's weight W^T (dim, in) and bias (dim,), float32.

    The sign of each direction is arbitrary; its largest element is made positive, so that machines agree.
    """
    width = vectors.shape[1]
    if dim is not None and not 1 <= dim <= width:
        raise ConfigError(
            f"whitening: dim = {dim}, expected 1 to {width}, the dimension of the vectors"
        )
    centred = vectors.astype(np.float64)
    mean = centred.mean(axis=0)
    centred -= mean
    covariance = centred.T @ centred / len(centred)
    ascending, eigenvectors = np.linalg.eigh(covariance)
    values = ascending[::-1]
    directions = eigenvectors[:, ::-1]
    is_spanned = values > max(_ROUNDING * values[0], 0)
    spanned = int(is_spanned.sum())
    kept = spanned if dim is None else dim
    if spanned < max(kept, 1):
        raise DataError(
            f"whitening: the vectors of {len(vectors):,} texts span {spanned} directions, expected"
            f" {max(kept, 1)}; use more texts or a smaller dim"
        )
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(width)])
    signed = directions * signs
    weight = signed[:, :kept].T / np.sqrt(values[:kept, None])
    bias = -weight @ mean
    return weight.astype(np.float32), bias.astype(np.float32)
