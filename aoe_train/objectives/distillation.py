"""Distillation losses, which make a model imitate its teacher.

Shapes of a teacher's vectors say `teacher`, those of the model that is trained `dim`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float
from torch import Tensor, nn

from aoe_train.objectives.kinds import LossContext, TeacherSample
from aoe_train.objectives.pairs import Pairs, Sides, unit
from aoe_train.objectives.ranking import ranking_loss
from aoe_train.objectives.settings import Loss

_RIDGE = 1e-3  # of the mean square of a dimension; keeps a map from few texts from being wild


def margin_mse_part(context: LossContext) -> Loss:
    """The part `margin_mse`."""

    def loss(pairs: Pairs) -> Tensor:
        scores = _scores(Sides(pairs.first, pairs.second), dot=context.advisers.dot)
        taught, known = _taught(pairs, dot=context.advisers.dot)
        rows = pairs.anchors
        return margin_mse_loss(scores, taught, known & known[:rows].repeat(len(known) // rows), rows)

    return loss


def margin_mse_loss(
    scores: Float[Tensor, " pair"],
    taught: Float[Tensor, " pair"],
    known: Bool[Tensor, " pair"],
    rows: int,
) -> Float[Tensor, ""]:
    """MarginMSE (Hofstätter et al., 2020, arXiv 2010.02666, Eq. 6), as a mean over all negatives.

    Mean square of (score of the positive - score of a negative) less the same difference by the teacher.
    """
    beyond, counted = scores - taught, known[rows:]
    differences = beyond[:rows].repeat(len(counted) // rows) - beyond[rows:]
    return _mean(differences.square(), counted)


def embed_distill_part(context: LossContext) -> Loss:
    """The part `embed_distill`."""
    return EmbedDistillation(context)


class EmbedDistillation(nn.Module):
    """How far a text's vector is from its teacher's, as a mean over the rows' texts.

    Where sizes differ, either a linear map without bias takes the vectors to the teacher's; it learns with
    the model and is thrown away with the objective. It begins as the least-squares map of a sample of texts:
    from random weights the model would first have to follow it around. Or the teacher's vectors are turned
    to their principal axes, by the same sample and without centring, so that dot products stay what they are
    as far as so few numbers can hold them; then the first so many are compared as they are.

    Reimers and Gurevych (2020, arXiv 2004.09813) take the mean square; Kim et al. (EmbedDistill, 2023) also
    other distances.
    """

    def __init__(self, context: LossContext) -> None:
        super().__init__()
        self._form = context.settings.embed_form
        self._axes: Tensor | None
        self.register_buffer("_axes", None)
        self._projection: nn.Linear | None = None
        dim, advisers = context.dim, context.advisers
        teacher, sample = advisers.teacher_dim or dim, advisers.sample
        if context.settings.projection == "principal" and sample is not None:
            self._axes = principal_axes(sample.teacher)[:, :dim]
        elif dim != teacher:
            self._projection = nn.Linear(dim, teacher, bias=False)
            if sample is not None:
                self._projection.weight.data.copy_(least_squares(sample, dim))

    def forward(self, pairs: Pairs) -> Float[Tensor, ""]:
        """The loss of the batch's texts."""
        if pairs.teacher is None:
            raise RuntimeError("a batch without the teacher's vectors")
        rows = pairs.anchors
        own = torch.cat([pairs.first[:rows], pairs.second])
        teacher = torch.cat([pairs.teacher.first[:rows], pairs.teacher.second])
        there = torch.cat([torch.ones_like(pairs.present[:rows]), pairs.present])
        if self._axes is not None:
            teacher = teacher @ self._axes.to(teacher.dtype)
        if self._projection is not None:
            own = F.linear(own, self._projection.weight.to(own.dtype))
        if self._form == "mse":
            return _mean((own - teacher).square().mean(-1), there)
        return _mean(1 - (unit(own) * unit(teacher)).sum(-1), there)


def principal_axes(vectors: Float[Tensor, "text teacher"]) -> Float[Tensor, "teacher axis"]:
    """Orthogonal axes, those first along which the vectors are longest."""
    wide = vectors.double()
    axes: Tensor = torch.linalg.eigh(wide.T @ wide).eigenvectors.flip(-1)
    # Either direction of an axis would do: the largest number decides, as algorithms choose at will.
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return (axes * signs).float()


def least_squares(sample: TeacherSample, dim: int) -> Float[Tensor, "teacher dim"]:
    """The linear map of the model's first `dim` numbers that comes nearest to the teacher's vectors."""
    own, teacher = sample.own[:, :dim].double(), sample.teacher.double()
    square = own.T @ own
    ridge = _RIDGE * square.diagonal().mean().clamp_min(1e-12)
    square.diagonal().add_(ridge)
    there: Tensor = torch.linalg.solve(square, own.T @ teacher)
    return there.T.float()


def score_distill_part(context: LossContext) -> Loss:
    """The part `score_distill`."""
    scale = 1 / context.tau("score_distill")

    def loss(pairs: Pairs) -> Tensor:
        scores, taught, known = _compared(pairs, dot=context.advisers.dot)
        if context.settings.score_form == "ranking":
            return ranking_loss(scores, taught, scale, present=known)
        return _mean((scores - taught).square(), known)

    return loss


def _compared(
    pairs: Pairs, *, dot: bool
) -> tuple[Float[Tensor, " compared"], Float[Tensor, " compared"], Bool[Tensor, " compared"]]:
    """Scores by the model and by the teacher, and which of them count.

    A teacher that gives vectors scores the first text of every row with the second texts of all rows. Of a
    teacher whose scores come with the rows these are all that is known.
    """
    if pairs.scores is not None or pairs.teacher is None:
        taught, known = _taught(pairs, dot=dot)
        return _scores(Sides(pairs.first, pairs.second), dot=dot), taught, known
    rows = pairs.anchors
    own = _all_scores(pairs.first[:rows], pairs.second, dot=dot)
    taught = _all_scores(pairs.teacher.first[:rows], pairs.teacher.second, dot=dot)
    same = pairs.texts[:rows, :1] == pairs.texts[:, 1]
    return own.flatten(), taught.flatten(), (pairs.present & ~same).flatten()


def _taught(pairs: Pairs, *, dot: bool) -> tuple[Float[Tensor, " pair"], Bool[Tensor, " pair"]]:
    """The teacher's score of each pair, and for which there is one."""
    if pairs.scores is not None:
        known = pairs.scores.isfinite() & pairs.present
        return pairs.scores.masked_fill(~known, 0).to(pairs.first.dtype), known
    if pairs.teacher is None:
        raise RuntimeError("a batch without the teacher's vectors or scores")
    return _scores(pairs.teacher, dot=dot), pairs.present


def _scores(sides: Sides, *, dot: bool) -> Float[Tensor, " pair"]:
    first, second = sides if dot else (unit(sides.first), unit(sides.second))
    return (first * second).sum(-1)


def _all_scores(
    first: Float[Tensor, "one dim"], second: Float[Tensor, "other dim"], *, dot: bool
) -> Float[Tensor, "one other"]:
    return first @ second.T if dot else unit(first) @ unit(second).T


def _mean(values: Float[Tensor, " any"], counted: Bool[Tensor, " any"]) -> Float[Tensor, ""]:
    """Of those that count; what the others hold may be no number. None gives 0."""
    return values.masked_fill(~counted, 0).sum() / counted.sum().clamp_min(1)
