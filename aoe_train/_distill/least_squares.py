"""The vectors of tokens whose means come nearest to a model's vectors of texts.

Model2Vec (Tulkens and van Dongen, 2024) takes a model's vector of each token alone, weighted by how rare it
is. Here that is only where the search begins: the vectors E minimise

    |M E - Y|^2 + ridge * |E - s E0|^2,

where row i of M has the shares of text i's tokens, row i of Y the model's vector of it, and E0 what is known
of each token beforehand, with s, one number, its best scale. So tokens that texts have little of stay where
they were. The problem is convex, one for each number of a vector with the same matrix, and is solved for all
of them at once by conjugate gradients (Hestenes and Stiefel, 1952).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float
    from scipy import sparse

RIDGE = 0.03
_RARE = 1e-3
_ENOUGH = 1e-3  # of the first residual's length
_MOST_STEPS = 100


def rarity(shares: sparse.csr_matrix) -> Float[np.ndarray, " token"]:
    """Each token's weight a / (a + p), p being its share of all, with a = 0.001 (Arora et al., 2017: SIF)."""
    counts = np.asarray(shares.sum(axis=0), np.float64).ravel()
    weights: np.ndarray = _RARE / (_RARE + counts / max(counts.sum(), 1.0))
    return weights


def fit(
    shares: sparse.csr_matrix,
    wanted: Float[np.ndarray, "text dim"],
    prior: Float[np.ndarray, "token dim"],
    ridge: float = RIDGE,
    step: Callable[[int], None] = lambda _: None,
) -> Float[np.ndarray, "token dim"]:
    """The tokens' vectors, float32.

    Args:
        shares: Of texts' tokens, (text, token).
        wanted: The texts' vectors.
        prior: What to stay near to, but for its scale.
        ridge: How much to, above 0.
        step: Told the number of each step.
    """
    meant = shares @ prior
    known = float((meant * meant).sum())
    start = prior * np.float32(float((meant * wanted).sum()) / known if known else 0.0)
    residual = shares.T @ (wanted - shares @ start)
    moved, direction = np.zeros_like(residual), residual.copy()
    left = _squares(residual)
    first = left.sum()
    for number in range(_MOST_STEPS):
        if left.sum() <= _ENOUGH**2 * first:
            break
        step(number)
        ahead = shares.T @ (shares @ direction) + np.float32(ridge) * direction
        length = _ratio(left, np.einsum("td,td->d", direction, ahead, dtype=np.float64))
        moved += length * direction
        residual -= length * ahead
        before, left = left, _squares(residual)
        direction = residual + _ratio(left, before) * direction
    found: np.ndarray = start + moved
    return found


def _squares(values: Float[np.ndarray, "token dim"]) -> Float[np.ndarray, " dim"]:
    squares: np.ndarray = np.einsum("td,td->d", values, values, dtype=np.float64)
    return squares


def _ratio(over: Float[np.ndarray, " dim"], under: Float[np.ndarray, " dim"]) -> Float[np.ndarray, " dim"]:
    """Of what is solved already, 0."""
    ratio: np.ndarray = np.divide(over, under, out=np.zeros_like(over), where=under > 0)
    return ratio.astype(np.float32)
