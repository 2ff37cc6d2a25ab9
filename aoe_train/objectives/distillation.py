"""Distillation losses, which make a model imitate its teacher.

In shapes, `teacher` is the size of the teacher's vectors and `dim` that of the trained model's.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float
from torch import Tensor, nn

from aoe_train.objectives.labelled_pairs import (
    PairMask,
    Pairs,
    PairValues,
    Scalar,
    Sides,
    cosine,
    ranking_loss,
    unit,
)
from aoe_train.objectives.objective_checks import LossContext, TeacherSample
from aoe_train.objectives.objective_settings import Loss

# Regularises maps from few texts, as a multiple of the mean square of a dimension.
_RIDGE = 1e-3


class _Scores(NamedTuple):
    """Scores of the same pairs by the model and by its teacher, and a mask of those that count."""

    model: PairValues
    teacher: PairValues
    known: PairMask


def margin_mse_part(context: LossContext) -> Loss:
    """The part `margin_mse`: MarginMSE (Hofstätter et al., 2020, arXiv 2010.02666, Eq. 6).

    It is a mean over all negatives.
    """

    def loss(pairs: Pairs) -> Tensor:
        scores = _pair_scores(pairs, dot=context.teachers.dot)
        # The first row has the positives, each other one a column of negatives.
        errors = (scores.model - scores.teacher).view(-1, pairs.anchors)
        known = scores.known.view(-1, pairs.anchors)

        differences = errors[0] - errors[1:]
        return _masked_mean(differences.square(), known[1:])

    return loss


class EmbedDistillation(nn.Module):
    """The part `embed_distill`: distance of the model's from the teacher's vectors, a mean over texts.

    If sizes differ, a linear map without bias takes the model's vectors to the teacher's. It trains with the
    model and is discarded afterwards. It starts as the least-squares map of a sample of texts, since the
    model would first adapt to random weights.

    Reimers and Gurevych (2020, arXiv 2004.09813) use the mean square; Kim et al. (EmbedDistill, 2023) also
    other distances.
    """

    def __init__(self, context: LossContext) -> None:
        super().__init__()
        self._form = context.settings.embed_form
        self._projection: nn.Linear | None = None

        dim = context.dim
        teacher_dim = context.teachers.teacher_dim or dim
        sample = context.teachers.sample
        if dim != teacher_dim:
            self._projection = nn.Linear(dim, teacher_dim, bias=False)
            if sample is not None:
                initial = least_squares(sample, dim)
                self._projection.weight.data.copy_(initial)

    def forward(self, pairs: Pairs) -> Scalar:
        """The loss of the batch's texts."""
        rows = pairs.anchors
        taught = _teacher_sides(pairs)
        student = torch.cat([pairs.first[:rows], pairs.second])
        teacher = torch.cat([taught.first[:rows], taught.second])

        if self._projection is not None:
            weight = self._projection.weight.to(student.dtype)
            student = F.linear(student, weight)

        if self._form == "mse":
            distances = (student - teacher).square().mean(-1)
        else:
            distances = 1 - cosine(student, teacher)

        others_present = pairs.present
        anchors_present = torch.ones_like(others_present[:rows])
        return _masked_mean(distances, torch.cat([anchors_present, others_present]))


def principal_axes(
    vectors: Float[Tensor, "text teacher"],
) -> Float[Tensor, "teacher axis"]:
    """Orthogonal axes in descending order of the vectors' mean square along them."""
    exact = vectors.double()
    axes: Tensor = torch.linalg.eigh(exact.T @ exact).eigenvectors.flip(-1)
    # The sign of an axis is arbitrary; for reproducibility, its largest entry becomes positive.
    largest = axes.abs().argmax(0, keepdim=True)
    signs = axes.gather(0, largest).sign()
    return (axes * signs).float()


def least_squares(sample: TeacherSample, dim: int) -> Float[Tensor, "teacher dim"]:
    """The least-squares map from the model's first `dim` dimensions to the teacher's vectors."""
    student = sample.student[:, :dim].double()
    teacher = sample.teacher.double()
    square = student.T @ student
    diagonal = square.diagonal()
    diagonal.add_(_RIDGE * diagonal.mean().clamp_min(1e-12))
    solution: Tensor = torch.linalg.solve(square, student.T @ teacher)
    return solution.T.float()


def score_distill_part(context: LossContext) -> Loss:
    """The part `score_distill`, in one of three forms."""
    scale = 1 / context.tau("score_distill")
    form = context.settings.score_form
    dot = context.teachers.dot

    def loss(pairs: Pairs) -> Tensor:
        if pairs.scores is None:
            scores = _batch_scores(pairs, dot=dot)
        else:
            scores = _pair_scores(pairs, dot=dot)
        if form == "kl":
            model, teacher, known = (each.view(pairs.anchors, -1) for each in scores)
            return similarity_kl_loss(model, teacher, known, scale)
        if form == "ranking":
            return ranking_loss(
                scores.model, scores.teacher, scale, present=scores.known
            )
        errors = scores.model - scores.teacher
        return _masked_mean(errors.square(), scores.known)

    return loss


def similarity_kl_loss(
    scores: Float[Tensor, "row other"],
    taught: Float[Tensor, "row other"],
    known: Bool[Tensor, "row other"],
    scale: float,
) -> Scalar:
    """Mean over rows of KL(softmax(taught * scale) || softmax(scores * scale)), over the known entries.

    Similarity distillation (SEED, Fang et al., 2021, arXiv 2101.04731, Eq. 5), here with one temperature for
    both and the batch's texts in place of a queue, as in RankCSE (Liu et al., 2023, arXiv 2305.16726).
    `scale` is 1 / tau. Rows without known entries count 0.
    """
    masked = torch.finfo(scores.dtype).min / 2
    student = (scale * scores).masked_fill(~known, masked).log_softmax(1)
    target = (scale * taught).masked_fill(~known, masked).log_softmax(1)
    divergence = target.exp() * (target - student)
    return divergence.masked_fill(~known, 0).sum(1).mean()


def _batch_scores(pairs: Pairs, *, dot: bool) -> _Scores:
    """Scores of the first text of every row with the second texts of all rows, without equal texts."""
    rows = pairs.anchors
    model_sides = Sides(pairs.first, pairs.second)
    scores = []
    for first, second in (model_sides, _teacher_sides(pairs)):
        anchors, others = _comparable(first[:rows], second, dot=dot)
        scores.append((anchors @ others.T).flatten())
    is_same = pairs.texts[:rows, :1] == pairs.texts[:, 1]
    model, taught = scores
    return _Scores(model, taught, known=(pairs.present & ~is_same).flatten())


def _pair_scores(pairs: Pairs, *, dot: bool) -> _Scores:
    """Scores of the pairs."""
    first, second = _comparable(pairs.first, pairs.second, dot=dot)
    model = (first * second).sum(-1)
    if pairs.scores is None:
        first, second = _comparable(*_teacher_sides(pairs), dot=dot)
        return _Scores(model, (first * second).sum(-1), pairs.present)
    return _Scores(model, pairs.scores.to(model.dtype), pairs.present)


def _comparable(first: Tensor, second: Tensor, *, dot: bool) -> Sides:
    """Vectors to compare by dot products: the given ones, or for cosines those of length 1."""
    if dot:
        return Sides(first, second)
    return Sides(unit(first), unit(second))


def _teacher_sides(pairs: Pairs) -> Sides:
    """The teacher's vectors, without which a run of these losses is refused."""
    return cast("Sides", pairs.teacher)


def _masked_mean(
    values: Float[Tensor, " any"], counted: Bool[Tensor, " any"]
) -> Float[Tensor, ""]:
    """Mean of the counted values; 0 if there are none. The others may be NaN."""
    total = values.masked_fill(~counted, 0).sum()
    return total / counted.sum().clamp_min(1)
