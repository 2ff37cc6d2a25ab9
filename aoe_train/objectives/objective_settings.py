"""The loss parts of an objective, its settings, and the presets named after the papers.

A new part needs a function that makes a `Loss`, and an entry in `PARTS`, which gives it a weight and a
temperature. torch is only imported with the parts in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, create_model, model_validator

from pairkit.base.settings import Settings, setting, split_at_commas

if TYPE_CHECKING:
    from torch import Tensor

    from aoe_train.objectives.labelled_pairs import Pairs
    from aoe_train.objectives.objective_checks import LossContext

Loss = Callable[["Pairs"], "Tensor"]
"""The loss of labelled pairs, a scalar; an `nn.Module` if it has trainable weights."""

LearnsFrom = Literal["ranking", "batch", "teacher"]


class LossPart(NamedTuple):
    """A loss part: its function, what it learns from, its default temperature, and its name in help texts."""

    made_by: str
    learns_from: LearnsFrom
    tau: float | None
    about: str

    def make(self, context: LossContext) -> Loss:
        """The loss for a dataset."""
        make: Callable[[LossContext], Loss] = resolve_name(
            f"{__package__}.{self.made_by}"
        )
        return make(context)


PARTS: Mapping[str, LossPart] = {
    "cosent": LossPart(
        "labelled_pairs.cosent_part",
        "ranking",
        0.05,
        "the cosine-ranking loss (CoSENT)",
    ),
    "in_batch": LossPart(
        "contrastive.in_batch_part", "batch", 0.05, "the loss over in-batch negatives"
    ),
    # The reference library uses a temperature of 0.05 since 2024.
    "angle": LossPart(
        "labelled_pairs.angle_part", "ranking", 1.0, "the angle-ranking loss"
    ),
    "contrastive": LossPart(
        "contrastive.contrastive_part", "batch", 0.05, "the contrastive loss"
    ),
    "sbert": LossPart(
        "labelled_pairs.sbert_part",
        "ranking",
        None,
        "SBERT's softmax or regression loss",
    ),
    "embed_distill": LossPart(
        "distillation.EmbedDistillation",
        "teacher",
        None,
        "the distance from the teacher's vectors",
    ),
    "score_distill": LossPart(
        "distillation.score_distill_part",
        "teacher",
        0.05,
        "the loss on the teacher's scores of pairs",
    ),
    "margin_mse": LossPart(
        "distillation.margin_mse_part",
        "teacher",
        None,
        "the loss on the teacher's margins between positive and negatives",
    ),
}

_OPTIONS_OF_LAYERS = {"layer_weights", "align"}
# Other libraries multiply cosines by a scale, mostly 20, instead of dividing them by a temperature.
_SCALES_FROM = 10


def _parts_that_learn_from(source: LearnsFrom) -> frozenset[str]:
    """The names of the parts of a kind."""
    return frozenset(name for name, part in PARTS.items() if part.learns_from == source)


RANKED = _parts_that_learn_from("ranking")
IN_BATCH = _parts_that_learn_from("batch")
TAUGHT = _parts_that_learn_from("teacher")


class _Weights(Settings):
    """Weight of each part in the sum; parts with weight 0 are not computed."""

    @model_validator(mode="after")
    def _check_any(self) -> _Weights:
        if not self.active:
            raise ValueError("all weights are 0; expected at least one above 0")
        return self

    @property
    def active(self) -> dict[str, float]:
        """The parts with a weight above 0."""
        return {part: weight for part in PARTS if (weight := getattr(self, part)) > 0}


class _Taus(Settings):
    """Temperature of each part, by which similarities are divided. The defaults are the papers'."""

    @model_validator(mode="after")
    def _check_scale(self) -> _Taus:
        for part, tau in self:
            if part in RANKED | IN_BATCH and tau >= _SCALES_FROM:
                raise ValueError(
                    f"{part} = {tau:g}: is a scale; the temperature is {1 / tau:g}"
                )
        return self


if TYPE_CHECKING:

    class Weights(_Weights):
        """A weight for each part; see `PARTS`."""

        def __init__(self, **weights: float) -> None: ...

    class Taus(_Taus):
        """A temperature for each part that has one; see `PARTS`."""

        def __init__(self, **taus: float) -> None: ...

else:
    _weights = {
        name: (float, Field(default=0.0, ge=0, description=f"Weight of {part.about}."))
        for name, part in PARTS.items()
    }
    _taus = {
        name: (
            float,
            Field(default=part.tau, gt=0, description=f"Temperature of {part.about}."),
        )
        for name, part in PARTS.items()
        if part.tau is not None
    }
    Weights = create_model("Weights", __base__=_Weights, **_weights)
    Taus = create_model("Taus", __base__=_Taus, **_taus)


def _numbers(value: object) -> object:
    """One or several numbers, separated by commas on a command line, or a word such as `all`."""
    if isinstance(value, str) and value.isalpha():
        return value
    return [value] if isinstance(value, int | float) else split_at_commas(value)


_Sizes = tuple[Annotated[int, Field(ge=1)], ...]
_Shares = tuple[Annotated[float, Field(gt=0)], ...]


class ObjectiveSettings(Settings):
    """The loss parts of the objective and their options."""

    weights: Weights = Weights(cosent=1, in_batch=1, angle=1)
    tau: Taus = Taus()
    margin: float = setting(
        0.0,
        "Difference of cosines to reach between the highest and lowest label, in proportion (cosent).",
        ge=0,
        le=2,
    )
    positive_from: float | None = setting(
        None,
        "Lowest graded label of a positive, in in_batch and contrastive. Default: 0.8 of the range.",
    )
    hard_negatives: bool = setting(
        True, "Use the rows' negative texts as candidates in contrastive."
    )
    duplicates: Literal["exclude", "positive", "negative"] = setting(
        "exclude",
        "What copies of a positive elsewhere in the batch are in in_batch and contrastive: exclude (left "
        "out), positive (as in the arXiv paper) or negative.",
    )
    symmetric: bool = setting(
        False, "Also rank the first texts for each second text in contrastive."
    )
    contrast_anchors: bool = setting(
        False,
        "In in_batch and contrastive, use other rows' first texts as negatives of the first text.",
    )
    contrast_positives: bool = setting(
        False,
        "In in_batch and contrastive, use other rows' positives as negatives of the positive.",
    )
    guide_margin: float = setting(
        0.0,
        "Margin by which a negative must be less similar than the positive by the guide's vectors.",
        ge=-2,
        le=2,
    )
    guide_margin_strategy: Literal["absolute", "relative"] = setting(
        "absolute",
        "Unit of `guide_margin`: absolute, or relative to the similarity of the positive.",
    )
    embed_form: Literal["cosine", "mse"] = setting(
        "cosine",
        "Distance in embed_distill: cosine (1 - cosine) or mse (mean squared error).",
    )
    score_form: Literal["mse", "ranking", "kl"] = setting(
        "mse",
        "Loss on the scores in score_distill: mse (mean squared error), ranking (the scores are graded "
        "labels) or kl (divergence of each text's similarities to the batch, as probabilities, from the "
        "teacher's).",
    )
    dims: Annotated[_Sizes, BeforeValidator(_numbers)] = setting(
        (),
        "Train for truncation to these vector sizes, such as 384,128,32 (Matryoshka). They must include "
        "the full size. Default: full size only.",
    )
    dim_weights: Annotated[_Shares, BeforeValidator(_numbers)] = setting(
        (), "Weight of the loss of each size in `dims`. Default: 1."
    )
    layers: Annotated[
        Literal["all"] | _Sizes,
        BeforeValidator(_numbers),
    ] = setting(
        (),
        "Also train earlier layers as outputs, such as 2,4, or all. The model can then be cut to these "
        "depths (2D Matryoshka, Espresso). Default: last layer only.",
    )
    layer_weights: Annotated[
        Literal["falling", "equal"] | _Shares,
        BeforeValidator(_numbers),
    ] = setting(
        "falling",
        "Weight of the loss of each layer in `layers`: falling (1 / (1 + ln n) for layer n), equal (1), or "
        "one number each.",
    )
    align: float = setting(
        0.0, "Weight of the divergence of `layers` from the last layer.", ge=0
    )

    @property
    def changed(self) -> set[str]:
        """The options whose values aren't the defaults."""
        fields = type(self).model_fields.items()
        return {name for name, field in fields if getattr(self, name) != field.default}

    @model_validator(mode="after")
    def _check_layers_and_dims(self) -> ObjectiveSettings:
        layers = () if self.layers == "all" else self.layers
        for name, numbers in (("layers", layers), ("dims", self.dims)):
            if len(set(numbers)) < len(numbers):
                raise ValueError(
                    f"{name}: found a duplicate in {', '.join(map(str, numbers))}"
                )
        unused = self.changed & _OPTIONS_OF_LAYERS
        if unused and not self.layers:
            raise ValueError(
                f"{min(unused)}: has no effect without layers; give layers, or leave it out"
            )
        if self.dim_weights and len(self.dim_weights) != len(self.dims):
            raise ValueError(
                f"dim_weights: found {len(self.dim_weights)} for {len(self.dims)} dims; expected one each"
            )
        return self


PRESETS: dict[str, ObjectiveSettings] = {
    # arXiv Eq. 8. The authors use weight 1 for cosine and angle, and 0.5, 1, or 35 (LLaMA, NLI) for in_batch.
    "angle": ObjectiveSettings(weights=Weights(cosent=1, in_batch=1, angle=1)),
    # ACL Eq. 5.
    "aoe": ObjectiveSettings(weights=Weights(angle=1, contrastive=1)),
    "cosent": ObjectiveSettings(weights=Weights(cosent=1)),
    "sbert": ObjectiveSettings(weights=Weights(sbert=1)),
    # On single texts, this is unsupervised SimCSE.
    "simcse": ObjectiveSettings(weights=Weights(contrastive=1)),
}
