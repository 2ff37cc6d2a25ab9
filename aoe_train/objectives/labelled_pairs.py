"""Labelled pairs, which rows become for the losses, and the losses of pairs: CoSENT, angle and Sentence-BERT's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from aoe_train.objectives.objective_checks import LossContext
from aoe_train.objectives.objective_settings import Loss
from aoe_train.objectives.training_rows import ABSENT

# Shorter vectors aren't normalised, which would only amplify rounding errors.
TINY = 1e-6
_IGNORED = -100  # the class of absent pairs

PairVectors = Float[Tensor, "pair dim"]
PairValues = Float[Tensor, " pair"]
PairMask = Bool[Tensor, " pair"]
Scalar = Float[Tensor, ""]
RowVectors = Float[Tensor, "row column dim"]
RowTexts = Int[Tensor, "row column"]


class BatchTeachers(NamedTuple):
    """Vectors and scores of guide and teacher for a batch."""

    guide: Float[Tensor, "row column guide"] | None = None
    teacher: Float[Tensor, "row column teacher"] | None = None
    scores: Float[Tensor, "row other"] | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> BatchTeachers:
        """Apply a function to each tensor."""
        return BatchTeachers(
            *(output if output is None else function(output) for output in self)
        )


NO_BATCH_TEACHERS = BatchTeachers()


class Sides(NamedTuple):
    """A guide's or teacher's vectors of first and second texts, in the order of `Pairs`."""

    first: Float[Tensor, "pair teacher"]
    second: Float[Tensor, "pair teacher"]


class Pairs(NamedTuple):
    """Vectors of first and second texts, with the pairs' labels and the texts' content ids.

    Attributes:
        present: Mask of pairs without absent negatives; selecting these pairs would wait for the device.
        anchors: Number of rows, whose positives are the first pairs.
    """

    first: PairVectors
    second: PairVectors
    labels: PairValues
    texts: Int[Tensor, "pair 2"]
    present: PairMask
    anchors: int
    guide: Sides | None
    teacher: Sides | None
    scores: PairValues | None


def as_pairs(
    vectors: RowVectors,
    labels: Float[Tensor, " row"] | None,
    texts: RowTexts,
    batch_teachers: BatchTeachers = NO_BATCH_TEACHERS,
) -> Pairs:
    """Split rows into pairs: (anchor, positive) is labelled 1 and (anchor, negative) 0.

    All positives come first, then the first negative of each row, then the second, and so on. Pairs without
    labels are labelled 1.
    """
    rows = len(texts)
    first, second = _sides(vectors)
    second_texts = texts[:, 1:].T.flatten()
    first_texts = texts[:, 0].repeat(texts.shape[1] - 1)

    if labels is None:
        is_positive = torch.arange(len(first), device=vectors.device) < rows
        labels = is_positive.to(vectors.dtype)

    guide, teacher, scores = batch_teachers
    return Pairs(
        first,
        second,
        labels,
        texts=torch.stack([first_texts, second_texts], dim=1),
        present=second_texts != ABSENT,
        anchors=rows,
        guide=None if guide is None else _sides(guide),
        teacher=None if teacher is None else _sides(teacher),
        scores=None if scores is None else scores.T.flatten(),
    )


def _sides(vectors: RowVectors) -> Sides:
    """Pair the first vector of each row with each of its others, column by column."""
    others = vectors.shape[1] - 1
    first = vectors[:, 0].repeat(others, 1)
    second = vectors[:, 1:].transpose(0, 1).flatten(0, 1)
    return Sides(first, second)


def wide(values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The values in float32 or wider: half precision is too coarse for a loss."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def unit(vectors: Float[Tensor, "*n dim"]) -> Float[Tensor, "*n dim"]:
    """Vectors scaled to length 1."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    divisors = torch.where(lengths < TINY, torch.ones_like(lengths), lengths)
    return vectors / divisors


def cosine(first: PairVectors, second: PairVectors) -> PairValues:
    """Cosine of each pair."""
    return (unit(first) * unit(second)).sum(-1)


def cosent_part(context: LossContext) -> Loss:
    """The part `cosent`: CoSENT."""
    low, high = context.low_and_high
    margin = context.settings.margin and context.settings.margin / (high - low)
    return partial(_rank, cosine, context.tau("cosent"), margin)


def angle_part(context: LossContext) -> Loss:
    """The part `angle`."""
    return partial(_rank, angle_reference, context.tau("angle"), 0.0)


def _rank(
    similarity: Callable[[PairVectors, PairVectors], PairValues],
    tau: float,
    margin: float,
    pairs: Pairs,
) -> Scalar:
    """Rank pairs by a similarity of their vectors."""
    scores = similarity(pairs.first, pairs.second)
    return ranking_loss(scores, pairs.labels, 1 / tau, margin, pairs.present)


def angle_reference(first: PairVectors, second: PairVectors) -> PairValues:
    """The similarity behind the papers' results, in [0, sqrt(2)]; it is not symmetric.

    A vector of 2d numbers is d complex numbers, with the real parts in its first half and the imaginary parts
    in its second (arXiv Eq. 3). With z = a + bi and w = c + di the papers divide z by w and normalise (arXiv
    Eq. 5 and 6). Their code computes |sum(ac + bd) + sum(bc - ad)| / (|X| |Y|), the sum of all real *and*
    imaginary parts. That is sqrt(2) |cos(X, Y rotated by 45 degrees)|, which is 1 for X = Y.
    """
    real, imaginary = unit(second).chunk(2, dim=-1)
    # A rotation by 45 degrees, times sqrt(2).
    rotated = torch.cat([real - imaginary, real + imaginary], dim=-1)
    return (unit(first) * rotated).sum(-1).abs()


def ranking_loss(
    scores: PairValues,
    labels: PairValues,
    scale: float,
    margin: float = 0.0,
    present: PairMask | None = None,
) -> Scalar:
    """Penalise each pair that scores above, or not far below, a pair with a larger label.

    log(1 + sum over label_i > label_j of exp(scale * (score_j - score_i))): arXiv Eq. 1 and 7, ACL Eq. 3. Our
    margin m adds m * (label_i - label_j) to each difference, so that rankings with a smaller distance cost.

    With pairs sorted by label, the sum over j is a cumulative sum, so the B^2 terms take O(B log B) time and
    O(B) memory without approximation.
    """
    sorted_labels, order = labels.sort()
    sorted_scores = wide(scores)[order]

    # The margin splits into a term of i and a term of j, so the sum over j stays cumulative.
    margins = margin * sorted_labels.to(sorted_scores.dtype)
    scaled = scale * (sorted_scores - margins)

    # Absent pairs contribute exp(-inf) = 0 to each sum.
    absent = torch.zeros_like(order, dtype=torch.bool)
    if present is not None:
        absent = ~present[order]
    counted = scaled.masked_fill(absent, -torch.inf)

    # sums[n] is the logarithm of the sum over the n smallest labels.
    sums = F.pad(counted.logcumsumexp(0), (1, 0), value=-torch.inf)
    num_smaller = torch.searchsorted(sorted_labels, sorted_labels)
    terms = (sums[num_smaller] - scaled).masked_fill(absent, -torch.inf)

    # The padding is the 1 in the logarithm.
    return F.pad(terms, (1, 0)).logsumexp(0)


def sbert_part(context: LossContext) -> Loss:
    """The part `sbert`: regression on graded labels, classification of others."""
    if context.kind != "graded":
        return Classifier(context.dim)
    low, high = context.low_and_high

    def regression(pairs: Pairs) -> Tensor:
        """Mean squared error of the cosine against labels scaled to [0, 1]."""
        scores = cosine(pairs.first, pairs.second)
        targets = (pairs.labels - low) / (high - low)
        return F.mse_loss(scores, targets.to(scores.dtype))

    return regression


class Classifier(nn.Module):
    """A linear classifier of two classes on (u, v, |u - v|), trained with the model."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.head = nn.Linear(3 * dim, 2)

    def forward(self, pairs: Pairs) -> Scalar:
        """Mean cross-entropy of the pairs."""
        first = pairs.first
        second = pairs.second
        features = torch.cat([first, second, (first - second).abs()], dim=-1)
        weight = self.head.weight.to(features.dtype)
        bias = self.head.bias.to(features.dtype)
        logits = F.linear(features, weight, bias)
        classes = pairs.labels.long().masked_fill(~pairs.present, _IGNORED)
        return F.cross_entropy(logits, classes, ignore_index=_IGNORED)
