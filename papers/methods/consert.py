"""ConSERT (Yan et al., ACL 2021, arXiv 2105.11741), on texts alone.

Two views r of each text have to find each other among all 2N views of the batch (NT-Xent, Section 3 there):
the mean of -log(exp(cos(r_i, r_j) / tau) / sum over k != i of exp(cos(r_i, r_k) / tau)), with tau = 0.1. The
views are what did best there without labels: one has its tokens in random order (token shuffling), the other
lacks a fifth of the features of its token embeddings (feature cutoff); dropout is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from papers.methods.base import Method, OwnTokens
from papers.methods.objectives import ibn_angle_emb

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.1
_CUT = 0.2


class ConSert(Method):
    """Shuffled tokens against cut features."""

    lr = 5e-7

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self._own = OwnTokens(encoder)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        with without_dropout(model):
            first = shuffled(batch, self._own.of(batch)).vectors(model)
            with features_cut(model, batch.lengths, _CUT):
                second = batch.vectors(model)
        everyone = torch.ones_like(batch.texts, dtype=torch.bool)
        return {"loss": ibn_angle_emb(first.float(), second.float(), everyone, _TAU)}


@contextmanager
def without_dropout(model: Any) -> Iterator[None]:
    """Training without it; gradients are made all the same."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def shuffled(batch: TextBatch, own_tokens: Bool[Tensor, " token"]) -> TextBatch:
    """The same texts, the own tokens of each in random order; the others keep their places."""
    owners = torch.from_numpy(np.repeat(np.arange(len(batch.lengths)), batch.lengths))
    own = torch.nonzero(own_tokens).flatten()
    # By text, and within it by chance: a text's places are filled with its own tokens.
    drawn = own[torch.argsort(owners[own] + torch.rand(len(own), dtype=torch.float64))]
    places = torch.arange(len(owners))
    places[own] = drawn
    return batch._replace(input_ids=batch.input_ids[places.to(batch.input_ids.device)])


@contextmanager
def features_cut(model: Any, lengths: Int[np.ndarray, " text"], share: float) -> Iterator[None]:
    """While texts are read, let each be without a share of the features of all its token embeddings."""
    embeddings: Any = getattr(model.backbone, "embeddings", None) or model.backbone.get_input_embeddings()
    kept = torch.rand(len(lengths), model.token_dim) >= share

    def cut(_: object, __: object, found: Tensor) -> Tensor:
        mask = kept.to(found.device, found.dtype)
        if not model.packed:
            return found * mask[:, None]
        return found * mask.repeat_interleave(torch.from_numpy(lengths).to(found.device), dim=0)

    handle = embeddings.register_forward_hook(cut)
    try:
        yield
    finally:
        handle.remove()
