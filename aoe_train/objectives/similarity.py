"""Unit vectors and the cosine, row by row; the cosine of a zero vector is 0 and its gradient is bounded."""

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


def _divisor(lengths: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    return torch.where(lengths < TINY, torch.ones_like(lengths), lengths)
