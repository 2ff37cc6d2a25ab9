"""BERT-whitening (Su et al., 2021, arXiv 2103.15316): vectors of unit covariance, by a linear map.

Algorithm 1 there: mu and Sigma are mean and covariance of the vectors of a corpus, Sigma = U Lambda U^T with
the largest eigenvalues first, and a vector x becomes (x - mu) W, where W has the first k columns of
U Lambda^(-1/2). As a dense layer behind the pooling that is W^T x - W^T mu, so that whoever reads a model's
folder can whiten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aoe_train._heads import with_layer
from pairkit.errors import ConfigError, DataError
from pairkit.progress import Listener

if TYPE_CHECKING:
    from aoe_train._encoder import Encoder

# Share of the largest eigenvalue below which a direction is taken for rounding errors: to stretch those to
# unit variance would fill vectors with noise. all-MiniLM-L6-v2 has three such directions.
_NOTHING = 1e-7


@dataclass(frozen=True)
class Whitened:
    """What a whitening was fitted on, and what it keeps.

    Attributes:
        texts: How many distinct ones its mean and covariance are of.
        dim: Numbers of a vector.
        variance: Share of the vectors' variance in the directions that are kept.
        gain: How many times as large, relative to a vector, a difference of two vectors may become:
            directions of little variance are stretched, and rounding errors with them.
    """

    texts: int
    dim: int
    variance: float
    gain: float


def whiten(
    encoder: Encoder, texts: Sequence[str], dim: int | None = None, *, progress: bool | Listener = False
) -> Whitened:
    """Put a whitening of the vectors of `texts` behind a model, in place.

    Args:
        encoder: In float32.
        texts: Unlabelled ones, of the kind that the model is for; with the model's default prompt.
        dim: Numbers of a whitened vector; None keeps all directions that the vectors have.
        progress: Shown on stderr, or told to a function.

    Raises:
        ConfigError: The model can't have so many numbers, or cuts its vectors already.
        DataError: Too few texts, or too like each other.
    """
    if encoder.settings.flow is not None:
        raise ConfigError("whitening: this model has a flow, which stands behind all layers; whiten it first")
    if encoder.settings.dim is not None:
        raise ConfigError(
            f"whitening: this model keeps {encoder.settings.dim} numbers of each vector, which is done after"
            " all layers; give --whiten-dim for a model without encoder.dim"
        )
    vectors = encoder.encode(texts, normalize=False, progress=progress)
    weight, bias, variance = whitening(vectors, dim)
    heads = with_layer(encoder.model.heads, encoder.model.token_dim, weight, bias)
    encoder.model.heads = heads.to(encoder.device)
    layers = tuple(head.settings for head in heads)
    encoder.settings = encoder.settings.model_copy(update={"dense": layers})
    stretched = float(np.linalg.norm(weight, 2) * np.sqrt((vectors.astype(np.float64) ** 2).sum(1).mean()))
    return Whitened(len(vectors), len(bias), variance, max(1.0, stretched / len(bias) ** 0.5))


def whitening(vectors: np.ndarray, dim: int | None = None) -> tuple[np.ndarray, np.ndarray, float]:
    """The layer's weight W^T (dim, in) and bias (dim,), float32, and the share of variance that it keeps.

    Either sign of a direction would do: its largest number is positive, so that machines agree.

    Args:
        vectors: (text, in)
        dim: Directions that are kept, those of the largest variance; None keeps all that there are.

    Raises:
        ConfigError: More directions than the vectors have numbers, or fewer than one.
        DataError: The texts' vectors span fewer directions.
    """
    numbers = vectors.shape[1]
    if dim is not None and not 1 <= dim <= numbers:
        raise ConfigError(f"--whiten-dim {dim}: the model's vectors have {numbers} numbers")
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
            " that differ, or keep fewer directions by --whiten-dim"
        )
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(numbers)])
    weight = (directions * signs)[:, :kept].T / np.sqrt(values[:kept, None])
    bias = -weight @ mean
    return weight.astype(np.float32), bias.astype(np.float32), float(values[:kept].sum() / values.sum())
