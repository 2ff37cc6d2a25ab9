"""Settings of the objective, and the presets that carry the papers' names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from pairkit.config import Settings

Part = Literal["cosine", "ibn", "angle", "contrastive", "sbert"]


class Weights(Settings):
    """What each part counts in the sum; a part of weight 0 is not computed."""

    cosine: float = Field(default=0.0, ge=0)  # ranking of all pairs by cosine (CoSENT)
    ibn: float = Field(default=0.0, ge=0)  # in-batch negatives
    angle: float = Field(default=0.0, ge=0)  # ranking of all pairs by angle
    contrastive: float = Field(default=0.0, ge=0)  # contrastive, with hard negatives
    sbert: float = Field(default=0.0, ge=0)  # SBERT's softmax or regression

    @model_validator(mode="after")
    def _any(self) -> Weights:
        if not self.wanted:
            raise ValueError("all weights are 0; at least one part must have a weight above 0")
        return self

    @property
    def wanted(self) -> dict[Part, float]:
        """The parts of weight above 0."""
        every: dict[Part, float] = {
            "cosine": self.cosine,
            "ibn": self.ibn,
            "angle": self.angle,
            "contrastive": self.contrastive,
            "sbert": self.sbert,
        }
        return {part: weight for part, weight in every.items() if weight > 0}


class Taus(Settings):
    """Each part's own temperature: similarities are divided by it. The defaults are the papers'."""

    cosine: float = Field(default=0.05, gt=0)  # temperature of the cosine ranking
    ibn: float = Field(default=0.05, gt=0)  # temperature of the in-batch negatives
    # temperature of the angle; the reference library moved to 0.05 in 2024
    angle: float = Field(default=1.0, gt=0)
    contrastive: float = Field(default=0.05, gt=0)  # temperature of the contrastive loss


class ObjectiveSettings(Settings):
    """Which losses to mix, and how."""

    weights: Weights = Weights(cosine=1, ibn=1, angle=1)
    tau: Taus = Taus()
    angle_form: Literal["reference", "phase"] = "reference"  # as published code has it, or the true angle
    # how much the cosines of the highest and the lowest label differ at least; labels between in proportion
    margin: float = Field(default=0.0, ge=0, le=2)
    positive_from: float | None = None  # graded labels: the lowest that is a positive for ibn, contrastive
    hard_negatives: bool = True  # contrastive: put negative texts among the candidates
    symmetric: bool = False  # contrastive: also compare the second text with the first ones


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
