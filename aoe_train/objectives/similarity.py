"""How alike two texts' vectors are, row by row; larger is more alike, for every measure.

`angle_*` read a vector of 2d numbers as d complex ones: the first half holds the real parts, the second half
the imaginary parts (arXiv Eq. 3). A zero vector is to all others as if at right angles, and its gradient is
bounded.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

TINY = 1e-6  # lengths below it count as zero: dividing by them would only blow up rounding errors


def wide(values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """In float32, or in float64 where that is what they are: half precision is too coarse for a loss."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def unit(vectors: Float[Tensor, "*n dim"]) -> Float[Tensor, "*n dim"]:
    """Vectors of length 1, in the direction of `vectors`."""
    return vectors / _divisor(torch.linalg.vector_norm(vectors, dim=-1, keepdim=True))


def cosine(first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"]) -> Float[Tensor, " pair"]:
    """Cosine of each pair, in [-1, 1]."""
    return (unit(first) * unit(second)).sum(-1)


def angle_reference(
    first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"]
) -> Float[Tensor, " pair"]:
    """The measure behind the papers' tables, in [0, sqrt(2)]; not symmetric.

    With z = a + bi and w = c + di the papers divide z by w and normalise (arXiv Eq. 5 and 6). What their code
    ranks by is |sum(ac + bd) + sum(bc - ad)| / (|X| |Y|), the sum of all real *and* imaginary parts, larger
    for pairs that are more alike. That is sqrt(2) |cos(X, Y turned by 45 degrees)|: 1 for X = Y, no angle.
    """
    real, imaginary = _halves(unit(second)).unbind(-2)
    turned = torch.cat([real - imaginary, real + imaginary], dim=-1)  # by 45 degrees, times sqrt(2)
    return (unit(first) * turned).sum(-1).abs()


def _halves(vectors: Float[Tensor, "pair dim"]) -> Float[Tensor, "pair 2 half"]:
    return torch.stack(vectors.chunk(2, dim=-1), dim=-2)


def _divisor(lengths: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    return torch.where(lengths < TINY, torch.ones_like(lengths), lengths)
