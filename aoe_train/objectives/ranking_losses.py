"""Losses of labelled pairs: ranking by cosine (CoSENT) or angle, and Sentence-BERT's two losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from aoe_train.objectives.labelled_pairs import Pairs, cosine, unit, wide
from aoe_train.objectives.objective_checks import LossContext
from aoe_train.objectives.objective_settings import Loss

IGNORED = -100  # the class of absent pairs


def cosent_part(context: LossContext) -> Loss:
    """The part `cosent`: CoSENT."""
    scale = 1 / context.tau("cosent")

    def loss(pairs: Pairs) -> Tensor:
        scores = cosine(pairs.first, pairs.second)
        return ranking_loss(scores, pairs.labels, scale, context.margin, pairs.present)

    return loss


def angle_part(context: LossContext) -> Loss:
    """The part `angle`."""
    scale = 1 / context.tau("angle")

    def loss(pairs: Pairs) -> Tensor:
        scores = angle_reference(pairs.first, pairs.second)
        return ranking_loss(scores, pairs.labels, scale, present=pairs.present)

    return loss


def angle_reference(
    first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"]
) -> Float[Tensor, " pair"]:
    """The similarity behind the papers' results, in [0, sqrt(2)]; it is not symmetric.

    A vector of 2d numbers is d complex numbers, with the real parts in its first half and the imaginary parts
    in its second (arXiv Eq. 3). With z = a + bi and w = c + di the papers divide z by w and normalise (arXiv
    Eq. 5 and 6). Their code computes |sum(ac + bd) + sum(bc - ad)| / (|X| |Y|), the sum of all real *and*
    imaginary parts. That is sqrt(2) |cos(X, Y rotated by 45 degrees)|, which is 1 for X = Y.
    """
    real, imaginary = unit(second).chunk(2, dim=-1)
    # By 45 degrees, times sqrt(2).
    rotated = torch.cat([real - imaginary, real + imaginary], dim=-1)
    return (unit(first) * rotated).sum(-1).abs()


def ranking_loss(
    scores: Float[Tensor, " pair"],
    labels: Float[Tensor, " pair"],
    scale: float,
    margin: float = 0.0,
    present: Bool[Tensor, " pair"] | None = None,
) -> Float[Tensor, ""]:
    """Penalise each pair that scores above, or not far below, a pair with a larger label.

    log(1 + sum over label_i > label_j of exp(scale * (score_j - score_i))): arXiv Eq. 1 and 7, ACL Eq. 3. Our
    margin m adds m * (label_i - label_j) to each difference, so that rankings with a smaller distance cost.

    With pairs sorted by label, the sum over j is a cumulative sum, so the B^2 terms take O(B log B) time and
    O(B) memory without approximation.
    """
    ordered, order = labels.sort()
    scores = wide(scores)[order]
    if present is None:
        absent = torch.zeros_like(order, dtype=torch.bool)
    else:
        absent = ~present[order]

    # The margin splits into a term of i and a term of j, so the sum over j stays cumulative.
    scaled = scale * (scores - margin * ordered.to(scores.dtype))
    counted = scaled.masked_fill(absent, -torch.inf)
    # [n]: the logarithm of the sum over the n smallest labels.
    sums = F.pad(counted.logcumsumexp(0), (1, 0), value=-torch.inf)

    smaller = torch.searchsorted(ordered, ordered)  # number of strictly smaller labels
    terms = (sums[smaller] - scaled).masked_fill(absent, -torch.inf)
    return F.pad(terms, (1, 0)).logsumexp(0)  # the padding is the 1 in the logarithm


def sbert_part(context: LossContext) -> Loss:
    """The part `sbert`: regression on graded labels, classification of others."""
    if context.kind != "graded":
        return Classifier(context.dim)
    low, high = context.label_range

    def regression(pairs: Pairs) -> Tensor:
        """Mean squared error of the cosine against labels scaled to [0, 1]."""
        targets = (pairs.labels - low) / (high - low)
        return F.mse_loss(
            cosine(pairs.first, pairs.second), targets.to(pairs.first.dtype)
        )

    return regression


class Classifier(nn.Module):
    """A linear classifier of two classes, trained with the model."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.head = nn.Linear(3 * dim, 2)

    def forward(self, pairs: Pairs) -> Float[Tensor, ""]:
        """The loss of the pairs."""
        classes = pairs.labels.long().masked_fill(~pairs.present, IGNORED)
        return softmax_loss(
            pairs.first, pairs.second, classes, self.head.weight, self.head.bias
        )


def softmax_loss(
    first: Float[Tensor, "pair dim"],
    second: Float[Tensor, "pair dim"],
    classes: Int[Tensor, " pair"],
    weight: Float[Tensor, "class features"],
    bias: Float[Tensor, " class"],
) -> Float[Tensor, ""]:
    """Mean cross-entropy of a linear classifier on (u, v, |u - v|)."""
    features = torch.cat([first, second, (first - second).abs()], dim=-1)
    logits = F.linear(features, weight.to(features.dtype), bias.to(features.dtype))
    return F.cross_entropy(logits, classes, ignore_index=IGNORED)
