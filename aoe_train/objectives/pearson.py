"""A loss of the straight line between cosines and labels, where the rankings ask for their order alone."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from aoe_train.objectives.parts import Given, Loss
from aoe_train.objectives.similarity import cosine, unit, wide


def pearson_part(given: Given) -> Loss:
    """The part `pearson`."""
    del given
    return lambda pairs: pearson_loss(cosine(pairs.first, pairs.second), pairs.labels)


def pearson_loss(scores: Float[Tensor, " pair"], labels: Float[Tensor, " pair"]) -> Float[Tensor, ""]:
    """1 - r, where r is Pearson's correlation of scores and labels over the batch; in [0, 2].

    r = sum of (s_i - mean s)(l_i - mean l) / sqrt(sum of (s_i - mean s)^2 * sum of (l_i - mean l)^2). It does
    not depend on where the scores lie or how far they spread, so that an encoder whose cosines are all high
    need not spread them first. After Pcc-tuning (Zhang and Li, 2024, arXiv 2406.09790).
    """
    scores = wide(scores)
    wanted = labels.to(scores.dtype)
    r = (unit(scores - scores.mean()) * unit(wanted - wanted.mean())).sum()
    return torch.where((labels == labels[0]).all(), 0 * r, 1 - r)
