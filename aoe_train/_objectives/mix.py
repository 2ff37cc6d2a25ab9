"""The weighted sum that training minimises: arXiv Eq. 8, ACL Eq. 5, or any other mix.

What each part means for each kind of data stands in `kinds.py`, which also refuses what means nothing.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aoe_train._objectives.contrastive import contrastive_loss, ibn_loss
from aoe_train._objectives.kinds import IN_BATCH, LabelRange, check_objective, positive_threshold
from aoe_train._objectives.pairs import Pairs, as_pairs
from aoe_train._objectives.ranking import ranking_loss
from aoe_train._objectives.sbert import regression_loss, softmax_loss
from aoe_train._objectives.settings import ObjectiveSettings, Part
from aoe_train._objectives.similarity import angle_phase, angle_reference, cosine
from aoe_train._records import Kind


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
    ) -> None:
        """Prepare for data of one kind.

        Args:
            settings: The parts wanted.
            dim: Size of the embeddings.
            kind: What a row of the data means.
            label_range: The lowest and highest label of the data's scale; only graded labels need it.

        Raises:
            ConfigError: The parts, the kind and the size do not go together.
        """
        super().__init__()
        check_objective(settings, dim=dim, kind=kind, label_range=label_range)
        self.settings = settings
        wanted = settings.weights.wanted
        self.label_range = (label_range if kind == "graded" else None) or (0.0, 1.0)
        low, high = self.label_range
        self.margin = settings.margin and settings.margin / (high - low)  # for each unit of the labels
        self.positive_from = 0.0
        if IN_BATCH & wanted.keys():
            self.positive_from = positive_threshold(settings, kind, label_range)
        classifies = "sbert" in wanted and kind != "graded"
        self.head = nn.Linear(3 * dim, 2) if classifies else None

    def forward(
        self,
        vectors: Float[Tensor, "row column dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", and each part by its name, unweighted and detached.

        Args:
            vectors: Two columns, or three for triplets. For `single`, two encodings of the same text under
                different dropout.
            labels: As in the data; None for kinds without labels.
            texts: Numbers of the texts; equal numbers are equal texts.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
            pairs = as_pairs(wide, labels, texts)
            weights = self.settings.weights.wanted
            parts = {part: self._part(part, pairs) for part in weights}
            loss = torch.stack([weights[part] * value for part, value in parts.items()]).sum()
        return {"loss": loss, **{part: value.detach() for part, value in parts.items()}}

    def _part(self, part: Part, pairs: Pairs) -> Float[Tensor, ""]:
        tau, settings = self.settings.tau, self.settings
        first, second, labels, texts = pairs
        match part:
            case "cosine":
                return ranking_loss(cosine(first, second), labels, 1 / tau.cosine, self.margin)
            case "angle":
                measure = angle_phase if settings.angle_form == "phase" else angle_reference
                return ranking_loss(measure(first, second), labels, 1 / tau.angle)
            case "ibn":
                return ibn_loss(first, second, texts, labels >= self.positive_from, tau.ibn)
            case "contrastive":
                return contrastive_loss(
                    first,
                    second,
                    texts,
                    labels >= self.positive_from,
                    tau.contrastive,
                    hard_negatives=settings.hard_negatives,
                    symmetric=settings.symmetric,
                )
            case "sbert":
                return self._sbert(pairs)

    def _sbert(self, pairs: Pairs) -> Float[Tensor, ""]:
        if self.head is not None:
            return softmax_loss(pairs.first, pairs.second, pairs.labels, self.head.weight, self.head.bias)
        low, high = self.label_range
        return regression_loss(pairs.first, pairs.second, (pairs.labels - low) / (high - low))
