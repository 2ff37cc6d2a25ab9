"""Rows of any kind as labelled pairs, which is all that the losses know."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Pairs(NamedTuple):
    """Vectors of first and second texts, with the pairs' labels and the texts' numbers."""

    first: Float[Tensor, "pair dim"]
    second: Float[Tensor, "pair dim"]
    labels: Float[Tensor, " pair"]
    texts: Int[Tensor, "pair 2"]


def as_pairs(
    vectors: Float[Tensor, "row column dim"],
    labels: Float[Tensor, " row"] | None,
    texts: Int[Tensor, "row column"],
) -> Pairs:
    """Cut each triplet into (anchor, positive) labelled 1 and (anchor, negative) labelled 0.

    Pairs without labels are all labelled 1.
    """
    ones = vectors.new_ones(len(vectors))
    if vectors.shape[1] == 3:
        vectors = torch.cat([vectors[:, [0, 1]], vectors[:, [0, 2]]])
        texts = torch.cat([texts[:, [0, 1]], texts[:, [0, 2]]])
        labels = torch.cat([ones, torch.zeros_like(ones)])
    first, second = vectors.unbind(1)
    return Pairs(first, second, ones if labels is None else labels, texts)
