"""What each part of the objective means for each kind of data; what has no meaning is refused.

| part | binary | graded | triplet | positive | single |
|---|---|---|---|---|---|
| cosine, angle | 1 ranks above 0 | a larger label ranks above a smaller | any (anchor, positive) ranks above any (anchor, negative), of all negatives of all rows | – | – |
| ibn | anchors: first texts of rows labelled 1; candidates: all second texts | the same, positive from `positive_from` on | anchors with positives; candidates: all positives and all negatives of all rows | every row is positive | the other view of the text |
| contrastive | as ibn; without `hard_negatives` only second texts of positive rows are candidates | the same | as ibn; without `hard_negatives` negatives are left out | as ibn | as ibn: unsupervised SimCSE |
| sbert | softmax over two classes | cosine regressed on the label, scaled from `label_range` to [0, 1] | softmax: (anchor, positive) is 1, (anchor, negative) is 0 | – | – |
| embed_distill | the vector of each text, as near as can be to its teacher's | the same | the same | the same | the same |
| score_distill | scores of each row's first text with the second texts of all rows; where the rows bring scores, these | the same | the same, with positives and negatives | as binary | of each text with all others of the batch |
| margin_mse | – | – | by how much a row's positive is above each of its negatives | – | – |

`–` is a ConfigError: without negatives there is nothing to rank or contrast. Further conditions: `angle`
needs an even embedding size (two halves, the real and the imaginary parts); `positive_from` is for graded
labels only; where ibn or contrastive meet graded labels, it defaults to POSITIVE_SHARE of the way up the
label range (4 of 0 to 5: "mostly equivalent" in STS-B). `margin` is a difference of cosines over the whole
label range (0 to 1 for labels that are not graded); the part cosine alone has it. The last three need a
teacher. Nothing here imports torch,
so a command can refuse before it loads a model.
"""  # noqa: E501 - a table

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aoe_train.objectives.settings import IN_BATCH, RANKED, TAUGHT, ObjectiveSettings
from aoe_train.records import Kind
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@dataclass(frozen=True)
class TeacherSample:
    """Some texts' vectors by the model as it is before training, and by its teacher, to begin maps with."""

    own: Float[Tensor, "text dim"]
    teacher: Float[Tensor, "text teacher"]


@dataclass(frozen=True)
class Advisers:
    """What the run's guide and teacher provide, before the first batch."""

    guide: bool = False
    teacher_dim: int | None = None
    scores: bool = False
    dot: bool = False
    sample: TeacherSample | None = None


NO_ADVISERS = Advisers()


POSITIVE_SHARE = 0.8
LabelRange = tuple[float, float]


def check_objective(
    settings: ObjectiveSettings, *, dim: int, kind: Kind, label_range: LabelRange | None = None
) -> None:
    """Refuse combinations that the table above marks with –."""
    wanted = settings.weights.wanted
    ranked = sorted(RANKED & wanted.keys())
    if ranked and kind in ("positive", "single"):
        raise ConfigError(
            f"objective {', '.join(ranked)}: found {kind} data, where no pair is less alike than another; "
            "expected labelled pairs or triplets, or only the parts ibn and contrastive (preset simcse)"
        )
    if "angle" in wanted and dim % 2:
        raise ConfigError(
            f"objective angle: found an embedding of odd size {dim}, expected an even one (it is halved into "
            "real and imaginary parts); take another backbone or leave angle out (preset cosent or simcse)"
        )
    if settings.positive_from is not None and kind != "graded":
        raise ConfigError(
            f"positive_from = {settings.positive_from:g}: found {kind} data, where the positives are known; "
            "it is for graded labels: leave it out"
        )
    if kind == "graded" and "sbert" in wanted:
        _bounds(label_range, "objective sbert")
    if "margin_mse" in wanted and kind != "triplet":
        raise ConfigError(
            f"objective margin_mse: found {kind} data, expected triplets, whose positives are above their"
            " negatives by a margin; take score_distill, or mine negatives with `aoe mine`"
        )
    if (settings.contrast_anchors or settings.contrast_positives) and not _has_candidates(settings):
        raise ConfigError(
            "contrast_anchors and contrast_positives are for ibn and contrastive; give"
            " one of them a weight, or leave them out"
        )
    if settings.margin and "cosine" not in wanted:
        raise ConfigError(
            f"margin = {settings.margin:g}: only the part cosine has one; give it a weight, or leave it out"
        )
    if settings.margin and kind == "graded":
        _bounds(label_range, "margin")
    if IN_BATCH & wanted.keys():
        positive_threshold(settings, kind, label_range)


def check_advisers(settings: ObjectiveSettings, *, dim: int, kind: Kind, advisers: Advisers) -> None:
    """Refuse a guide or teacher that no part uses, and parts that lack theirs."""
    wanted = settings.weights.wanted
    taught = [part for part in wanted if part in TAUGHT]
    teacher = advisers.teacher_dim is not None
    if taught and not (teacher or advisers.scores):
        raise ConfigError(f"objective {', '.join(taught)}: learns from a teacher; give one by --teacher")
    if (teacher or advisers.scores) and not taught:
        raise ConfigError(
            f"a teacher is given, and no part of the objective ({', '.join(wanted)}) learns from one; add"
            " one, such as --set objective.weights.embed_distill=1, or leave the teacher out"
        )
    if "embed_distill" in wanted and not teacher:
        raise ConfigError(
            "objective embed_distill: the rows bring a teacher's scores, and no vectors; give a --teacher"
            " too, or take score_distill"
        )
    if advisers.teacher_dim is not None and settings.projection == "principal" and dim > advisers.teacher_dim:
        raise ConfigError(
            f"objective.projection principal: the teacher's vectors have {advisers.teacher_dim} numbers,"
            f" fewer than the {dim} of this backbone's; take learned"
        )
    if not advisers.guide:
        return
    if not _has_candidates(settings):
        raise ConfigError(
            f"a guide is given, and no part of the objective ({', '.join(wanted)}) has candidates that it"
            " could leave out; add contrastive, or ibn in the form paper, or leave the guide out"
        )
    if kind == "single" and settings.guide_margin <= 0:
        raise ConfigError(
            "a guide for single texts: nothing is nearer to a text than itself; say how much farther a"
            " negative has to be, such as --set objective.guide_margin=0.3"
        )


def _has_candidates(settings: ObjectiveSettings) -> bool:
    """Whether a part compares an anchor with candidates that may be left out or added."""
    return bool({"contrastive", "ibn"} & settings.weights.wanted.keys())


def check_dims(settings: ObjectiveSettings, dim: int, *, own: bool = False) -> None:
    """Refuse sizes that vectors can't be cut to."""
    for size in settings.dims:
        if size > dim:
            raise ConfigError(
                f"objective.dims {size}: this backbone's vectors have {dim} numbers; leave it out"
            )
        if size % 2 and not own and "angle" in settings.weights.wanted:
            raise ConfigError(
                f"objective.dims {size}: expected even sizes, as the angle halves the first {size} numbers"
                " into real and imaginary parts; change it, or leave angle out (preset cosent or simcse)"
            )
    if settings.dims and dim not in settings.dims:
        raise ConfigError(
            f"objective.dims: {dim}, the whole vector, is not among them, and its last numbers would learn"
            " nothing; add it"
        )


def positive_threshold(settings: ObjectiveSettings, kind: Kind, label_range: LabelRange | None) -> float:
    """The label from which on a row counts as positive; triplets and positives count as labelled 1 and 0."""
    if kind != "graded":
        return 0.5
    if settings.positive_from is None:
        low, high = _bounds(label_range, "positive_from")
        return low + POSITIVE_SHARE * (high - low)
    if label_range is not None:
        low, high = _bounds(label_range, "positive_from")
        if not low < settings.positive_from <= high:
            raise ConfigError(
                f"positive_from = {settings.positive_from:g}: the labels go from {low:g} to {high:g}; "
                "expected a value above the lowest and not above the highest"
            )
    return settings.positive_from


def _bounds(label_range: LabelRange | None, who: str) -> LabelRange:
    if label_range is None:
        raise ConfigError(f"{who}: the range of graded labels is not known; give their lowest and highest")
    low, high = label_range
    if not low < high:
        raise ConfigError(f"{who}: found labels from {low:g} to {high:g}, expected at least two values")
    return low, high


@dataclass(frozen=True)
class LossContext:
    """What a part is made for."""

    settings: ObjectiveSettings
    dim: int
    kind: Kind
    label_range: tuple[float, float]
    margin: float
    positive_from: float
    advisers: Advisers = NO_ADVISERS

    def tau(self, part: str) -> float:
        """A part's temperature."""
        return float(getattr(self.settings.tau, part))
