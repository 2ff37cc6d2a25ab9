"""Settings of the objective, and the presets that carry the papers' names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, create_model, model_validator

from aoe_train.objectives.parts import PARTS
from pairkit.app.settings import Settings, split_at_commas


class _Weights(Settings):
    """What each part counts in the sum; a part of weight 0 is not computed."""

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
    """On a command line with commas between them, or one alone."""
    return [value] if isinstance(value, int | float) else split_at_commas(value)


def _numbers_or_word(value: object) -> object:
    return value if isinstance(value, str) and value.isalpha() else _numbers(value)


class ObjectiveSettings(Settings):
    """Which losses to mix, and how."""

    weights: Weights = Weights(cosine=1, ibn=1, angle=1)
    tau: Taus = Taus()
    # how much the cosines of the highest and the lowest label differ at least; labels between in proportion
    margin: float = Field(default=0.0, ge=0, le=2)
    positive_from: float | None = None  # graded labels: the lowest that is a positive for ibn, contrastive
    hard_negatives: bool = True  # contrastive: put negative texts among the candidates
    symmetric: bool = False  # contrastive: also compare the second text with the first ones
    # ibn, contrastive: the other rows' first texts are candidates too, and are to differ from the first text
    contrast_anchors: bool = False
    # ibn, contrastive: the other positives are also to differ from the positive itself
    contrast_positives: bool = False
    # how far below its similarity of a positive a guide has to put a candidate that counts as a negative
    guide_margin: float = Field(default=0.0, ge=-2, le=2)
    # whether this is a difference (absolute) or a share of the positive's similarity (relative)
    guide_margin_strategy: Literal["absolute", "relative"] = "absolute"
    # embed_distill: 1 - cosine with the teacher's vector, or the mean square of their differences
    embed_form: Literal["cosine", "mse"] = "cosine"
    # embed_distill, where sizes differ: a linear map to the teacher's vectors that learns, too; or the
    # teacher's vectors on their principal axes (fixed), so that they are compared without one
    projection: Literal["learned", "principal"] = "learned"
    # score_distill: the mean square of the differences, or a ranking as by graded labels
    score_form: Literal["mse", "ranking"] = "mse"
    # sizes that vectors may be cut to, the whole one among them: the same losses of the first so many numbers
    # are added up (Matryoshka); unset: the whole vectors alone
    dims: Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_numbers)] = ()
    # what the loss of each of `dims` counts in the sum; unset: 1
    dim_weights: Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(_numbers)] = ()
    # numbers of earlier layers, from 1, whose vectors learn by the same losses (2D Matryoshka, Espresso), so
    # that the model may be cut to so many; all: each of them
    layers: Annotated[
        Literal["all"] | tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_numbers_or_word)
    ] = ()
    # what the loss of each of `layers` counts: falling (layer n: 1 / (1 + ln n)), equal (1), or a number each
    layer_weights: Annotated[
        Literal["falling", "equal"] | tuple[Annotated[float, Field(gt=0)], ...],
        BeforeValidator(_numbers_or_word),
    ] = "falling"
    align: float = Field(default=0.0, ge=0)  # what the divergence of `layers` from the last one counts
    align_tau: float = Field(default=0.3, gt=0)  # its temperature: numbers of vectors are divided by it

    @model_validator(mode="after")
    def _layers(self) -> ObjectiveSettings:
        if len(set(self.layers)) < len(self.layers) and self.layers != "all":
            raise ValueError(f"layers: one is given twice among {', '.join(map(str, self.layers))}")
        if self.align and not self.layers:
            raise ValueError(
                "align: there are no layers to draw to the last one; give layers, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _sizes(self) -> ObjectiveSettings:
        if len(set(self.dims)) < len(self.dims):
            raise ValueError(f"dims: one size is given twice among {', '.join(map(str, self.dims))}")
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
