"""Contrastive Tension (Carlsson et al., ICLR 2021, "Semantic Re-tuning with Contrastive Tension").

Two copies of the model, f1 and f2, are trained. The loss (Eq. 1 there) of sentences s and s' is
-log sigmoid(f1(s) . f2(s')) if they are the same and -log sigmoid(-f1(s) . f2(s')) if not. Each sentence has
K = 7 negatives. f1 is the resulting model. The paper draws negatives from the corpus; here they come from the
batch, so that n sentences cost n passes of each copy instead of 8 n.
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
    """Trains the model and a second copy of it."""

    lr = 1e-5

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.second = copy.deepcopy(encoder.model)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        first = batch.vectors(model)
        second = batch.vectors(self.second)
        return {"loss": tension_loss(first, second, batch.texts, _NEGATIVES)}


def tension_loss(
    first: Float[Tensor, "text dim"],
    second: Float[Tensor, "text dim"],
    text_ids: Int[Tensor, " text"],
    negatives: int,
) -> Float[Tensor, ""]:
    """The mean over pairs of each text with itself and with the next `negatives` texts, cyclically.

    Copies of a text (equal `text_ids`) are not negatives.
    """
    count = len(first)
    rows = torch.arange(count, device=first.device)[:, None]
    steps = torch.arange(1 + min(negatives, count - 1), device=first.device)
    partners = (rows + steps) % count
    similarities = first.float() @ second.float().T
    scores = similarities.gather(1, partners)
    is_same = partners == rows
    is_copy = text_ids[partners] == text_ids[:, None]
    is_counted = is_same | ~is_copy
    losses = softplus(torch.where(is_same, -scores, scores))
    return losses.masked_fill(~is_counted, 0).sum() / is_counted.sum()
