"""The weighted sum that training minimises: arXiv Eq. 8, ACL Eq. 5, or any other mix.

What each part means for each kind of data stands in `kinds.py`, which also refuses what means nothing.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aoe_train.objectives.kinds import (
    LabelRange,
    LossContext,
    check_advisers,
    check_objective,
    positive_threshold,
)
from aoe_train.objectives.pairs import NO_ADVICE, Advice, as_pairs
from aoe_train.objectives.parts import IN_BATCH, NO_ADVISERS, PARTS, Advisers
from aoe_train.objectives.settings import ObjectiveSettings
from aoe_train.objectives.similarity import wide
from aoe_train.records import Kind


class Objective(nn.Module):
    """Loss of a batch, in float32 or wider even under autocast.

    It compares rows with each other. So it wants the batch as a whole, gathered from all ranks; the order of
    the rows does not matter.
    """

    def __init__(
        self,
        settings: ObjectiveSettings,
        *,
        dim: int,
        kind: Kind,
        label_range: LabelRange | None = None,
        advisers: Advisers = NO_ADVISERS,
    ) -> None:
        """Prepare for data of one kind."""
        super().__init__()
        check_objective(settings, dim=dim, kind=kind, label_range=label_range)
        check_advisers(settings, dim=dim, kind=kind, advisers=advisers)
        self.settings = settings
        wanted = settings.weights.wanted
        low, high = scale = (label_range if kind == "graded" else None) or (0.0, 1.0)
        in_batch = bool(IN_BATCH & wanted.keys())
        self.context = LossContext(
            settings,
            dim,
            kind,
            scale,
            margin=settings.margin and settings.margin / (high - low),
            positive_from=positive_threshold(settings, kind, label_range) if in_batch else 0.0,
            advisers=advisers,
        )
        self.parts = {part: PARTS[part].make(self.context) for part in wanted}
        for part, loss in self.parts.items():
            if isinstance(loss, nn.Module):
                self.add_module(part, loss)

    def forward(
        self,
        vectors: Float[Tensor, "row column dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
        advice: Advice = NO_ADVICE,
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", and each part by its name, unweighted and detached."""
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = wide(vectors)
            pairs = as_pairs(vectors, labels, texts, advice.each(lambda told: told.to(vectors.dtype)))
            weights = self.settings.weights.wanted
            parts = {part: loss(pairs) for part, loss in self.parts.items()}
            loss = torch.stack([weights[part] * value for part, value in parts.items()]).sum()
        return {"loss": loss, **{part: value.detach() for part, value in parts.items()}}
