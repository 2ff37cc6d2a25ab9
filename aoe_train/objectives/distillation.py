"""Distillation losses, which make a model imitate its teacher.

In shapes, `teacher` is the size of the teacher's vectors and `dim` that of the trained model's.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float
from torch import Tensor, nn

from aoe_train.objectives.labelled_pairs import Pairs, cosine, unit
from aoe_train.objectives.objective_checks import LossContext, TeacherSample
from aoe_train.objectives.objective_settings import Loss
from aoe_train.objectives.ranking_losses import ranking_loss

_RIDGE = 1e-3  # times the mean square of a dimension; regularises maps from few texts


class _Scores(NamedTuple):
    """Scores of the same pairs by the model and by its teacher, and a mask of those that count."""

    model: Float[Tensor, " pair"]
    teacher: Float[Tensor, " pair"]
    known: Bool[Tensor, " pair"]


def margin_mse_part(context: LossContext) -> Loss:
    """The part `margin_mse`: MarginMSE (Hofstätter et al., 2020, arXiv 2010.02666, Eq. 6).

    It is a mean over all negatives.
    """

    def loss(pairs: Pairs) -> Tensor:
        scores = _pair_scores(pairs, dot=context.teachers.dot)
        columns = -1, pairs.anchors  # the positives, then each column of negatives

        errors = (scores.model - scores.teacher).view(columns)
        differences = errors[:1] - errors[1:]

        known = scores.known.view(columns)
        counted = known[:1] & known[1:]
        return _masked_mean(differences.square(), counted)

    return loss


class EmbedDistillation(nn.Module):
    """The part `embed_distill`: distance of the model's from the teacher's vectors, a mean over texts.

    If sizes differ, a linear map without bias (`learned`) takes the model's vectors to the teacher's. It
    trains with the model and is discarded afterwards. It starts as the least-squares map of a sample of
    texts, since the model would first adapt to random weights. Or the teacher's vectors are reduced to their
    principal axes (`principal`), found on the same sample without centring, which preserves dot products as
    well as possible.

    Reimers and Gurevych (2020, arXiv 2004.09813) use the mean square; Kim et al. (EmbedDistill, 2023) also
    other distances.
    """

    def __init__(self, context: LossContext) -> None:
        super().__init__()
        self._form = context.settings.embed_form
        self._axes: Tensor | None
        self.register_buffer("_axes", None)
        self._projection: nn.Linear | None = None

        dim = context.dim
        teacher_dim = context.teachers.teacher_dim or dim
        sample = context.teachers.sample
        if context.settings.projection == "principal" and sample is not None:
            self._axes = principal_axes(sample.teacher)[:, :dim]
        elif dim != teacher_dim:
            self._projection = nn.Linear(dim, teacher_dim, bias=False)
            if sample is not None:
                self._projection.weight.data.copy_(least_squares(sample, dim))

    def forward(self, pairs: Pairs) -> Float[Tensor, ""]:
        """The loss of the batch's texts."""
        if pairs.teacher is None:
            raise RuntimeError("the batch has no teacher's vectors")
        rows = pairs.anchors
        student = torch.cat([pairs.first[:rows], pairs.second])
        teacher = torch.cat([pairs.teacher.first[:rows], pairs.teacher.second])
        present = torch.cat([torch.ones_like(pairs.present[:rows]), pairs.present])

        if self._axes is not None:
            teacher = teacher @ self._axes.to(teacher.dtype)
        if self._projection is not None:
            student = F.linear(student, self._projection.weight.to(student.dtype))

        if self._form == "mse":
            distances = (student - teacher).square().mean(-1)
        else:
            distances = 1 - cosine(student, teacher)
        return _masked_mean(distances, present)


def principal_axes(vectors: Float[Tensor, "text teacher"]) -> Float[Tensor, "teacher axis"]:
    """Orthogonal axes in descending order of the vectors' mean square along them."""
    exact = vectors.double()
    axes: Tensor = torch.linalg.eigh(exact.T @ exact).eigenvectors.flip(-1)
    # The sign of an axis is arbitrary. Its largest number becomes positive, for reproducibility.
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return (axes * signs).float()


def least_squares(sample: TeacherSample, dim: int) -> Float[Tensor, "teacher dim"]:
    """The least-squares map from the model's first `dim` numbers to the teacher's vectors."""
    student = sample.student[:, :dim].double()
    teacher = sample.teacher.double()
    square = student.T @ student
    diagonal = square.diagonal()
    diagonal.add_(_RIDGE * diagonal.mean().clamp_min(1e-12))
    solution: Tensor = torch.linalg.solve(square, student.T @ teacher)
    return solution.T.float()


def score_distill_part(context: LossContext) -> Loss:
    """The part `score_distill`."""
    scale = 1 / context.tau("score_distill")
    form = context.settings.score_form

    def loss(pairs: Pairs) -> Tensor:
        scores = _all_scores(pairs, dot=context.teachers.dot)
        if form == "kl":
            model, teacher, known = (each.view(pairs.anchors, -1) for each in scores)
            return similarity_kl_loss(model, teacher, known, scale)
        if form == "ranking":
            return ranking_loss(scores.model, scores.teacher, scale, present=scores.known)
        return _masked_mean((scores.model - scores.teacher).square(), scores.known)

    return loss


def similarity_kl_loss(
    scores: Float[Tensor, "row other"],
    taught: Float[Tensor, "row other"],
    known: Bool[Tensor, "row other"],
    scale: float,
) -> Float[Tensor, ""]:
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


def _all_scores(pairs: Pairs, *, dot: bool) -> _Scores:
    """Scores of the first text of every row with the second texts of all rows, if there are vectors."""
    if pairs.scores is not None or pairs.teacher is None:
        return _pair_scores(pairs, dot=dot)

    def scores(first: Tensor, second: Tensor) -> Tensor:
        first = _comparable(first[: pairs.anchors], dot=dot)
        return (first @ _comparable(second, dot=dot).T).flatten()

    is_same = pairs.texts[: pairs.anchors, :1] == pairs.texts[:, 1]
    known = (pairs.present & ~is_same).flatten()
    return _Scores(scores(pairs.first, pairs.second), scores(*pairs.teacher), known)


def _pair_scores(pairs: Pairs, *, dot: bool) -> _Scores:
    """Scores of the pairs; by a file, some may be missing."""

    def scores(first: Tensor, second: Tensor) -> Tensor:
        return (_comparable(first, dot=dot) * _comparable(second, dot=dot)).sum(-1)

    model = scores(pairs.first, pairs.second)
    if pairs.scores is not None:
        known = pairs.scores.isfinite() & pairs.present
        return _Scores(model, pairs.scores.masked_fill(~known, 0).to(model.dtype), known)
    if pairs.teacher is None:
        raise RuntimeError("the batch has no teacher's vectors or scores")
    return _Scores(model, scores(*pairs.teacher), pairs.present)


def _comparable(vectors: Float[Tensor, "text dim"], *, dot: bool) -> Float[Tensor, "text dim"]:
    """Vectors of which dot products are the scores."""
    return vectors if dot else unit(vectors)


def _masked_mean(values: Float[Tensor, " any"], counted: Bool[Tensor, " any"]) -> Float[Tensor, ""]:
    """Mean of the counted values; 0 if there are none. The others may be NaN."""
    return values.masked_fill(~counted, 0).sum() / counted.sum().clamp_min(1)
