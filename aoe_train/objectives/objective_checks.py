"""The meaning of each loss part for each kind of data, and checks that refuse other combinations.

`docs/howto/objectives.md` has the table. Without negatives there is nothing to rank. `angle` needs an even
embedding size, as it halves vectors into real and imaginary parts. `positive_from` is only for graded labels.
For in_batch and contrastive it defaults to POSITIVE_SHARE of the label range (4 of 0 to 5, "mostly
equivalent" in STS-B). `margin`, only for cosent, is the difference of cosines over the whole label range (0
to 1 unless graded). This module doesn't import torch, so commands can check before loading a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aoe_train.objectives.objective_settings import (
    IN_BATCH,
    RANKED,
    TAUGHT,
    ObjectiveSettings,
)
from aoe_train.objectives.training_rows import Kind
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

POSITIVE_SHARE = 0.8
# Options that only some parts have. Not `symmetric`, which the preset domain always sets.
_PARTS_WITH_OPTION = {
    "margin": {"cosent"},
    "hard_negatives": {"contrastive"},
    "contrast_anchors": IN_BATCH,
    "contrast_positives": IN_BATCH,
    "embed_form": {"embed_distill"},
    "score_form": {"score_distill"},
}
_OPTIONS_OF_GUIDE = {"guide_margin", "guide_margin_strategy"}
LabelRange = tuple[float, float]


@dataclass(frozen=True)
class TeacherSample:
    """Vectors of a sample of texts by the model before training, and by its teacher."""

    student: Float[Tensor, "text dim"]
    teacher: Float[Tensor, "text teacher"]


@dataclass(frozen=True)
class TeacherInfo:
    """What the guide and teacher of a run provide."""

    guide: bool = False
    teacher_dim: int | None = None
    scores: bool = False
    dot: bool = False
    sample: TeacherSample | None = None


NO_TEACHERS = TeacherInfo()


def check_objective(context: LossContext) -> None:
    """Refuse combinations that the table marks with –."""
    settings = context.settings
    kind = context.kind
    active = settings.weights.active
    ranked = sorted(RANKED & active.keys())
    if ranked and kind in ("positive", "single"):
        raise ConfigError(
            f"objective {', '.join(ranked)}: found {kind} data without negatives, so there is nothing to"
            " rank; expected labelled pairs or triplets, or only in_batch and contrastive (preset simcse)"
        )
    if "angle" in active and context.dim % 2:
        raise ConfigError(
            f"objective angle: found an odd embedding size {context.dim}, expected an even one (halved into real and"
            " imaginary parts); use another backbone or dims, or no angle (preset cosent or simcse)"
        )
    if settings.positive_from is not None and kind != "graded":
        raise ConfigError(
            f"positive_from = {settings.positive_from:g}: found {kind} data, expected graded labels; leave it"
            " out"
        )
    if kind == "graded" and "sbert" in active:
        _bounds(context.label_range, "objective sbert")
    if "margin_mse" in active and kind != "triplet":
        raise ConfigError(
            f"objective margin_mse: found {kind} data, expected triplets; use score_distill, or mine"
            " negatives with `aoe mine`"
        )
    changed = settings.changed
    for option, parts in _PARTS_WITH_OPTION.items():
        if option in changed and not parts & active.keys():
            raise ConfigError(
                f"objective.{option}: has no effect without {' or '.join(sorted(parts))}; give it a"
                " weight, or leave the option out"
            )
    if settings.margin and kind == "graded":
        _bounds(context.label_range, "margin")


def check_teacher_use(
    settings: ObjectiveSettings, *, kind: Kind, teachers: TeacherInfo
) -> None:
    """Refuse a guide or teacher that no part uses, and parts that lack theirs."""
    active = settings.weights.active
    taught = [part for part in active if part in TAUGHT]
    teacher_dim = teachers.teacher_dim
    has_teacher = teacher_dim is not None or teachers.scores
    if taught and not has_teacher:
        raise ConfigError(
            f"objective {', '.join(taught)}: needs a teacher; give --teacher"
        )
    if has_teacher and not taught:
        raise ConfigError(
            f"found a teacher, but no part of the objective ({', '.join(active)}) learns from one; add one,"
            " such as --set objective.weights.embed_distill=1, or leave the teacher out"
        )
    if "embed_distill" in active and teacher_dim is None:
        raise ConfigError(
            "objective embed_distill: found a teacher's scores, expected its vectors; give --teacher, or use"
            " score_distill"
        )
    if "score_distill" in active and settings.score_form == "kl" and teachers.scores:
        raise ConfigError(
            "objective.score_form kl: found a teacher's scores of single pairs, expected its vectors; give"
            " --teacher, or use mse or ranking"
        )
    if not teachers.guide:
        if unused := sorted(settings.changed & _OPTIONS_OF_GUIDE):
            raise ConfigError(
                f"objective.{unused[0]}: has no effect without a guide; give --guide, or leave it out"
            )
        return
    if not IN_BATCH & active.keys():
        raise ConfigError(
            f"found a guide, but no part of the objective ({', '.join(active)}) has in-batch negatives to"
            " filter; add contrastive or in_batch, or leave the guide out"
        )
    if kind == "single" and settings.guide_margin <= 0:
        raise ConfigError(
            "a guide for single texts needs a margin, as a text's positive is the text itself; give one, such"
            " as --set objective.guide_margin=0.3"
        )


def check_dims(settings: ObjectiveSettings, dim: int) -> None:
    """Refuse sizes that vectors can't be cut to."""
    for size in settings.dims:
        if size > dim:
            raise ConfigError(
                f"objective.dims {size}: this backbone's vectors have {dim} numbers; leave it out"
            )
    if settings.dims and dim not in settings.dims:
        raise ConfigError(f"objective.dims: lacks the full size {dim}; add it")


def positive_threshold(
    settings: ObjectiveSettings, kind: Kind, label_range: LabelRange | None
) -> float:
    """The lowest label of a positive row."""
    if kind != "graded":
        return 0.5
    threshold = settings.positive_from
    if threshold is not None and label_range is None:
        return threshold
    low, high = _bounds(label_range, "positive_from")
    if threshold is None:
        return low + POSITIVE_SHARE * (high - low)
    if not low < threshold <= high:
        raise ConfigError(
            f"positive_from = {threshold:g}: found labels from {low:g} to {high:g}; expected a value above"
            f" {low:g}, at most {high:g}"
        )
    return threshold


def _bounds(label_range: LabelRange | None, who: str) -> LabelRange:
    """The label range, if it is known and has two ends."""
    if label_range is None:
        raise ConfigError(
            f"{who}: the range of graded labels is unknown; give the lowest and highest label"
        )
    low, high = label_range
    if not low < high:
        raise ConfigError(
            f"{who}: found labels from {low:g} to {high:g}, expected at least two values"
        )
    return low, high


@dataclass(frozen=True)
class LossContext:
    """The inputs from which a loss part is made."""

    settings: ObjectiveSettings
    dim: int
    kind: Kind
    label_range: LabelRange | None
    teachers: TeacherInfo = NO_TEACHERS

    @property
    def low_and_high(self) -> LabelRange:
        """The lowest and highest label; 0 and 1 unless labels are graded."""
        if self.kind != "graded" or self.label_range is None:
            return 0.0, 1.0
        return self.label_range

    @property
    def positive_from(self) -> float:
        """The lowest label of a positive row."""
        return positive_threshold(self.settings, self.kind, self.label_range)

    def tau(self, part: str) -> float:
        """A part's temperature."""
        return float(getattr(self.settings.tau, part))
