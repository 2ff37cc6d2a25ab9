"""Losses of labelled pairs: ranking by cosine (CoSENT) or by angle, and the two of Sentence-BERT."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from aoe_train.objectives.kinds import LossContext
from aoe_train.objectives.pairs import Pairs, cosine, unit, wide
from aoe_train.objectives.settings import Loss


def cosine_part(context: LossContext) -> Loss:
    """The part `cosine`: CoSENT."""
    scale = 1 / context.tau("cosine")
    return lambda pairs: ranking_loss(
        cosine(pairs.first, pairs.second), pairs.labels, scale, context.margin, pairs.present
    )


def angle_part(context: LossContext) -> Loss:
    """The part `angle`."""
    return lambda pairs: ranking_loss(
        angle_reference(pairs.first, pairs.second),
        pairs.labels,
        1 / context.tau("angle"),
        present=pairs.present,
    )


def angle_reference(
    first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"]
) -> Float[Tensor, " pair"]:
    """The measure behind the papers' tables, in [0, sqrt(2)]; larger for more similar texts; not symmetric.

    A vector of 2d numbers is read as d complex ones: the first half holds the real parts, the second half the
    imaginary parts (arXiv Eq. 3).

    With z = a + bi and w = c + di the papers divide z by w and normalise (arXiv Eq. 5 and 6). What their code
    ranks by is |sum(ac + bd) + sum(bc - ad)| / (|X| |Y|), the sum of all real *and* imaginary parts, larger
    for pairs that are more alike. That is sqrt(2) |cos(X, Y turned by 45 degrees)|: 1 for X = Y, no angle.
    """
    real, imaginary = _halves(unit(second)).unbind(-2)
    turned = torch.cat([real - imaginary, real + imaginary], dim=-1)  # by 45 degrees, times sqrt(2)
    return (unit(first) * turned).sum(-1).abs()


def _halves(vectors: Float[Tensor, "pair dim"]) -> Float[Tensor, "pair 2 half"]:
    return torch.stack(vectors.chunk(2, dim=-1), dim=-2)


def ranking_loss(
    scores: Float[Tensor, " pair"],
    labels: Float[Tensor, " pair"],
    scale: float,
    margin: float = 0.0,
    present: Bool[Tensor, " pair"] | None = None,
) -> Float[Tensor, ""]:
    """Penalise every pair that scores above, or not far below, a pair of a larger label.

    log(1 + sum over label_i > label_j of exp(scale * (score_j - score_i))): arXiv Eq. 1 and 7, ACL Eq. 3.
    With a margin m, which is ours, scores shall also differ as labels do: m * (label_i - label_j) is added to
    the difference, so a ranking that holds by less still costs.

    The sum over j depends on i only by how many labels are smaller. So with the pairs in order of their
    labels it is a running sum, and B^2 terms take O(B log B) time and O(B) memory, exactly. Computed in
    logarithms, in float32 or wider.
    """
    ordered, order = labels.sort()
    scores = wide(scores)[order]
    # The margin parts into what belongs to i and what belongs to j, so the running sum stays one.
    scaled = scale * (scores - margin * ordered.to(scores.dtype))
    smaller = torch.searchsorted(ordered, ordered)  # how many labels are strictly smaller
    away = torch.zeros_like(order, dtype=torch.bool) if present is None else ~present[order]
    counted = scaled.masked_fill(away, -torch.inf)
    below = F.pad(counted.logcumsumexp(0), (1, 0), value=-torch.inf)  # [n]: over the n smallest labels
    terms = (below[smaller] - scaled).masked_fill(away, -torch.inf)
    return F.pad(terms, (1, 0)).logsumexp(0)  # the padding is the 1 in the logarithm


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
