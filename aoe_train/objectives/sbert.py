"""The two losses of Sentence-BERT (Reimers and Gurevych, 2019), to compare with."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Float, Int
from torch import Tensor, nn

from aoe_train.objectives.kinds import LossContext
from aoe_train.objectives.pairs import Pairs
from aoe_train.objectives.parts import Loss
from aoe_train.objectives.similarity import cosine

IGNORED = -100


def sbert_part(context: LossContext) -> Loss:
    """The part `sbert`: graded labels are regressed on, others are classes."""
    low, high = context.label_range
    if context.kind != "graded":
        return Classifier(context.dim)
    return lambda pairs: regression_loss(pairs.first, pairs.second, (pairs.labels - low) / (high - low))


class Classifier(nn.Module):
    """A linear head over two classes, which learns with the model."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.head = nn.Linear(3 * dim, 2)

    def forward(self, pairs: Pairs) -> Float[Tensor, ""]:
        """The loss of the pairs."""
        classes = pairs.labels.long().masked_fill(~pairs.present, IGNORED)
        return softmax_loss(pairs.first, pairs.second, classes, self.head.weight, self.head.bias)


def softmax_loss(
    first: Float[Tensor, "pair dim"],
    second: Float[Tensor, "pair dim"],
    classes: Int[Tensor, " pair"],
    weight: Float[Tensor, "class features"],
    bias: Float[Tensor, " class"],
) -> Float[Tensor, ""]:
    """Classification of (u, v, |u - v|) by a linear head; mean cross-entropy."""
    features = torch.cat([first, second, (first - second).abs()], dim=-1)
    logits = F.linear(features, weight.to(features.dtype), bias.to(features.dtype))
    return F.cross_entropy(logits, classes, ignore_index=IGNORED)


def regression_loss(
    first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"], targets: Float[Tensor, " pair"]
) -> Float[Tensor, ""]:
    """Mean squared difference of the cosine and a target in [0, 1]."""
    return F.mse_loss(cosine(first, second), targets.to(first.dtype))
