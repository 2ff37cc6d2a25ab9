"""The parts that an objective may have, its settings, and the presets that carry the papers' names.

A further part is a function that makes a `Loss`, and its line in `PARTS`: it then has a weight and a
temperature, and is checked against the data, as the others. torch is loaded with the parts that are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, create_model, model_validator

from pairkit.app.settings import Settings, split_at_commas

if TYPE_CHECKING:
    from torch import Tensor

    from aoe_train.objectives.pairs import Pairs

Loss = Callable[["Pairs"], "Tensor"]
Make = Callable[[Any], Loss]  # of a `LossContext`
"""Gives the loss of labelled pairs, a scalar; an `nn.Module` where it has weights of its own."""


LearnsFrom = Literal["ranking", "batch", "teacher"]


class LossPart(NamedTuple):
    """A line of the table."""

    made_by: str
    learns_from: LearnsFrom
    tau: float | None
    about: str

    def make(self, context: Any) -> Loss:
        """The loss."""
        module, _, name = self.made_by.partition(".")
        make: Make = getattr(import_module(f"{__package__}.{module}"), name)
        return make(context)


PARTS: Mapping[str, LossPart] = {
    "cosine": LossPart("ranking.cosine_part", "ranking", 0.05, "the cosine ranking (CoSENT)"),
    "ibn": LossPart("contrastive.ibn_part", "batch", 0.05, "in-batch negatives"),
    # The reference library has a temperature of 0.05 since 2024.
    "angle": LossPart("ranking.angle_part", "ranking", 1.0, "the angle ranking"),
    "contrastive": LossPart("contrastive.contrastive_part", "batch", 0.05, "the contrastive loss"),
    "sbert": LossPart("ranking.sbert_part", "ranking", None, "SBERT's softmax or regression"),
    "embed_distill": LossPart(
        "distillation.embed_distill_part", "teacher", None, "nearness to the teacher's vectors"
    ),
    "score_distill": LossPart(
        "distillation.score_distill_part", "teacher", 0.05, "the teacher's scores of pairs"
    ),
    "margin_mse": LossPart(
        "distillation.margin_mse_part",
        "teacher",
        None,
        "the teacher's margins between positive and negatives",
    ),
}


def _that_learn_from(what: LearnsFrom) -> frozenset[str]:
    return frozenset(name for name, part in PARTS.items() if part.learns_from == what)


RANKED, IN_BATCH, TAUGHT = (_that_learn_from(what) for what in ("ranking", "batch", "teacher"))


class _Weights(Settings):
    """The weight of each part in the sum; a part of weight 0 is not computed."""

    @model_validator(mode="after")
    def _any(self) -> _Weights:
        if not self.wanted:
            raise ValueError("all weights are 0; at least one part must have a weight above 0")
        return self

    @property
    def wanted(self) -> dict[str, float]:
        """The parts of weight above 0."""
        return {part: weight for part in PARTS if (weight := getattr(self, part)) > 0}


class _Taus(Settings):
    """Each part's own temperature: similarities are divided by it. The defaults are the papers'."""


if TYPE_CHECKING:

    class Weights(_Weights):
        """A weight for each part; see `PARTS`."""

        def __init__(self, **weights: float) -> None: ...

    class Taus(_Taus):
        """A temperature for each part that has one; see `PARTS`."""

        def __init__(self, **taus: float) -> None: ...

else:
    _weights = {
        name: (float, Field(default=0.0, ge=0, description=f"weight of {part.about}"))
        for name, part in PARTS.items()
    }
    _taus = {
        name: (float, Field(default=part.tau, gt=0, description=f"temperature of {part.about}"))
        for name, part in PARTS.items()
        if part.tau is not None
    }
    Weights = create_model("Weights", __base__=_Weights, **_weights)
    Taus = create_model("Taus", __base__=_Taus, **_taus)


def _numbers(value: object) -> object:
    """One number or several; separated by commas on a command line."""
    return [value] if isinstance(value, int | float) else split_at_commas(value)


def _numbers_or_word(value: object) -> object:
    return value if isinstance(value, str) and value.isalpha() else _numbers(value)


class ObjectiveSettings(Settings):
    """Which losses to mix, and how."""

    weights: Weights = Weights(cosine=1, ibn=1, angle=1)
    tau: Taus = Taus()
    # minimum difference of cosine between the highest and the lowest label; others in proportion
    margin: float = Field(default=0.0, ge=0, le=2)
    positive_from: float | None = None  # graded: lowest label of a positive in ibn, contrastive
    hard_negatives: bool = True  # contrastive: put negative texts among the candidates
    symmetric: bool = False  # contrastive: also compare the second text with the first ones
    # ibn, contrastive: other rows' first texts are negatives of the first text, too
    contrast_anchors: bool = False
    # ibn, contrastive: other positives are negatives of the positive, too
    contrast_positives: bool = False
    # a negative's similarity by the guide must be below its positive's by this margin
    guide_margin: float = Field(default=0.0, ge=-2, le=2)
    # the margin is a difference (absolute) or a share of the positive's similarity (relative)
    guide_margin_strategy: Literal["absolute", "relative"] = "absolute"
    # embed_distill: 1 - cosine with the teacher's vector, or the mean square of their differences
    embed_form: Literal["cosine", "mse"] = "cosine"
    # embed_distill, if sizes differ: train a linear map to the teacher's vectors (learned), or reduce the
    # teacher's vectors to their principal axes (principal)
    projection: Literal["learned", "principal"] = "learned"
    # score_distill: the mean square of the differences, or a ranking as by graded labels
    score_form: Literal["mse", "ranking"] = "mse"
    # sizes that vectors may be cut to, including the full one; losses are summed over sizes (Matryoshka);
    # unset: the full size only
    dims: Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_numbers)] = ()
    # weight of each of `dims` in the sum; unset: 1
    dim_weights: Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(_numbers)] = ()
    # earlier layers, counted from 1, that are trained with the same losses so that the model may be cut there
    # (2D Matryoshka, Espresso); all: every layer
    layers: Annotated[
        Literal["all"] | tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_numbers_or_word)
    ] = ()
    # weight of the loss of each of `layers`: falling (layer n: 1 / (1 + ln n)), equal (1), or one number each
    layer_weights: Annotated[
        Literal["falling", "equal"] | tuple[Annotated[float, Field(gt=0)], ...],
        BeforeValidator(_numbers_or_word),
    ] = "falling"
    align: float = Field(default=0.0, ge=0)  # weight of the divergence of `layers` from the last layer
    align_tau: float = Field(default=0.3, gt=0)  # temperature of that divergence

    @model_validator(mode="after")
    def _layers(self) -> ObjectiveSettings:
        if len(set(self.layers)) < len(self.layers) and self.layers != "all":
            raise ValueError(f"layers: a duplicate in {', '.join(map(str, self.layers))}")
        if self.align and not self.layers:
            raise ValueError(
                "align: there are no layers to draw to the last one; give layers, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _sizes(self) -> ObjectiveSettings:
        if len(set(self.dims)) < len(self.dims):
            raise ValueError(f"dims: a duplicate in {', '.join(map(str, self.dims))}")
        if self.dim_weights and len(self.dim_weights) != len(self.dims):
            raise ValueError(
                f"dim_weights: found {len(self.dim_weights)} for {len(self.dims)} dims; expected one each"
            )
        return self


PRESETS: dict[str, ObjectiveSettings] = {
    # arXiv Eq. 8. The authors name weights 1 for cosine and angle; for ibn 0.5, 1, or 35 (LLaMA on NLI).
    "angle": ObjectiveSettings(weights=Weights(cosine=1, ibn=1, angle=1)),
    # ACL Eq. 5
    "aoe": ObjectiveSettings(weights=Weights(angle=1, contrastive=1)),
    "cosent": ObjectiveSettings(weights=Weights(cosine=1)),
    "sbert": ObjectiveSettings(weights=Weights(sbert=1)),
    # Unsupervised when each text is its own positive.
    "simcse": ObjectiveSettings(weights=Weights(contrastive=1)),
}
