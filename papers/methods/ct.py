"""Contrastive Tension (Carlsson et al., ICLR 2021, "Semantic Re-tuning with Contrastive Tension").

Two copies of the model, f1 and f2, learn independently. For a sentence s and a sentence s' the loss (Eq. 1
there) is -log sigmoid(f1(s) . f2(s')) where they are the same, and -log sigmoid(-f1(s) . f2(s')) where they
are not, with K = 7 others for each sentence. f1 is the model that is kept.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import softplus

from papers.methods.base import Method

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_NEGATIVES = 7


class ContrastiveTension(Method):
    """The second copy, which learns too.

    The paper draws each sentence's seven others from the corpus; here they are seven others of the batch, so
    that a batch of n sentences is n passes of each copy and not 8 n.
    """

    lr = 1e-5

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.other = copy.deepcopy(encoder.model)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        loss = tension_loss(batch.vectors(model), batch.vectors(self.other), batch.texts, _NEGATIVES)
        return {"loss": loss}


def tension_loss(
    first: Float[Tensor, "text dim"],
    second: Float[Tensor, "text dim"],
    numbers: Int[Tensor, " text"],
    negatives: int,
) -> Float[Tensor, ""]:
    """The mean over all pairs of a text with itself and with the `negatives` texts after it, in a circle."""
    count = len(first)
    places = torch.arange(count, device=first.device)
    steps = torch.arange(1 + min(negatives, count - 1), device=first.device)
    partners = (places[:, None] + steps) % count
    scores = (first.float() @ second.float().T).gather(1, partners)
    same = partners == places[:, None]
    counted = same | (numbers[partners] != numbers[:, None])
    losses = softplus(torch.where(same, -scores, scores))
    return losses.masked_fill(~counted, 0).sum() / counted.sum()
