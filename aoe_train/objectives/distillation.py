"""Distillation losses, which make a model imitate its teacher.

In shapes, `teacher` is the size of the teacher's vectors and `dim` that of the trained model's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float
from torch import Tensor, nn

from aoe_train.objectives.kinds import LossContext, TeacherSample
from aoe_train.objectives.labelled_pairs import Pairs, Sides, unit
from aoe_train.objectives.objective_settings import Loss
from aoe_train.objectives.ranking_losses import ranking_loss

_RIDGE = 1e-3  # times the mean square of a dimension; regularises maps from few texts


def margin_mse_part(context: LossContext) -> Loss:
    """The part `margin_mse`."""

    def loss(pairs: Pairs) -> Tensor:
        scores = _scores(Sides(pairs.first, pairs.second), dot=context.teachers.dot)
        taught, known = _taught(pairs, dot=context.teachers.dot)
        rows = pairs.anchors
        return margin_mse_loss(scores, taught, known & known[:rows].repeat(len(known) // rows), rows)

    return loss


def margin_mse_loss(
    scores: Float[Tensor, " pair"], taught: Float[Tensor, " pair"], known: Bool[Tensor, " pair"], rows: int
) -> Float[Tensor, ""]:
    """MarginMSE (Hofstätter et al., 2020, arXiv 2010.02666, Eq. 6), as a mean over all negatives."""
    errors, counted = scores - taught, known[rows:]
    differences = errors[:rows].repeat(len(counted) // rows) - errors[rows:]
    return _masked_mean(differences.square(), counted)


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
        dim, teachers = context.dim, context.teachers
        teacher, sample = teachers.teacher_dim or dim, teachers.sample
        if context.settings.projection == "principal" and sample is not None:
            self._axes = principal_axes(sample.teacher)[:, :dim]
        elif dim != teacher:
            self._projection = nn.Linear(dim, teacher, bias=False)
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
            return _masked_mean((student - teacher).square().mean(-1), present)
        return _masked_mean(1 - (unit(student) * unit(teacher)).sum(-1), present)


def principal_axes(vectors: Float[Tensor, "text teacher"]) -> Float[Tensor, "teacher axis"]:
    """Orthogonal axes in descending order of the vectors' mean square along them."""
    exact = vectors.double()
    axes: Tensor = torch.linalg.eigh(exact.T @ exact).eigenvectors.flip(-1)
    # The sign of an axis is arbitrary. Its largest number becomes positive, for reproducibility.
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return (axes * signs).float()


def least_squares(sample: TeacherSample, dim: int) -> Float[Tensor, "teacher dim"]:
    """The least-squares map from the model's first `dim` numbers to the teacher's vectors."""
    student, teacher = sample.student[:, :dim].double(), sample.teacher.double()
    square = student.T @ student
    ridge = _RIDGE * square.diagonal().mean().clamp_min(1e-12)
    square.diagonal().add_(ridge)
    solution: Tensor = torch.linalg.solve(square, student.T @ teacher)
    return solution.T.float()


def score_distill_part(context: LossContext) -> Loss:
    """The part `score_distill`."""
    scale = 1 / context.tau("score_distill")

    def loss(pairs: Pairs) -> Tensor:
        scores, taught, known = _compared(pairs, dot=context.teachers.dot)
        if context.settings.score_form == "kl":
            student, target, counted = (each.view(pairs.anchors, -1) for each in (scores, taught, known))
            return similarity_kl_loss(student, target, counted, scale)
        if context.settings.score_form == "ranking":
            return ranking_loss(scores, taught, scale, present=known)
        return _masked_mean((scores - taught).square(), known)

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
    student, target = (
        (scale * matrix).masked_fill(~known, masked).log_softmax(1) for matrix in (scores, taught)
    )
    return (target.exp() * (target - student)).masked_fill(~known, 0).sum(1).mean()


def _compared(
    pairs: Pairs, *, dot: bool
) -> tuple[Float[Tensor, " compared"], Float[Tensor, " compared"], Bool[Tensor, " compared"]]:
    """Scores by the model and by the teacher, and a mask of those that count."""
    # With a teacher's vectors, the first text of every row is scored with the second texts of all rows.
    if pairs.scores is not None or pairs.teacher is None:
        taught, known = _taught(pairs, dot=dot)
        return _scores(Sides(pairs.first, pairs.second), dot=dot), taught, known
    rows = pairs.anchors
    student = _all_scores(pairs.first[:rows], pairs.second, dot=dot)
    taught = _all_scores(pairs.teacher.first[:rows], pairs.teacher.second, dot=dot)
    same = pairs.texts[:rows, :1] == pairs.texts[:, 1]
    return student.flatten(), taught.flatten(), (pairs.present & ~same).flatten()


def _taught(pairs: Pairs, *, dot: bool) -> tuple[Float[Tensor, " pair"], Bool[Tensor, " pair"]]:
    """The teacher's score of each pair, and a mask of the pairs that have one."""
    if pairs.scores is not None:
        known = pairs.scores.isfinite() & pairs.present
        return pairs.scores.masked_fill(~known, 0).to(pairs.first.dtype), known
    if pairs.teacher is None:
        raise RuntimeError("the batch has no teacher's vectors or scores")
    return _scores(pairs.teacher, dot=dot), pairs.present


def _scores(sides: Sides, *, dot: bool) -> Float[Tensor, " pair"]:
    first, second = sides if dot else (unit(sides.first), unit(sides.second))
    return (first * second).sum(-1)


def _all_scores(
    first: Float[Tensor, "one dim"], second: Float[Tensor, "other dim"], *, dot: bool
) -> Float[Tensor, "one other"]:
    return first @ second.T if dot else unit(first) @ unit(second).T


def _masked_mean(values: Float[Tensor, " any"], counted: Bool[Tensor, " any"]) -> Float[Tensor, ""]:
    """Mean of the counted values; 0 if there are none. The others may be NaN."""
    return values.masked_fill(~counted, 0).sum() / counted.sum().clamp_min(1)
