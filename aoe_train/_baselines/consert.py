"""ConSERT (Yan et al., ACL 2021, arXiv 2105.11741), on texts alone or with labelled pairs, as of NLI.

Two views r of each text have to find each other among all 2N views of the batch (NT-Xent, Section 3 there):
the mean of -log(exp(cos(r_i, r_j) / tau) / sum over k != i of exp(cos(r_i, r_k) / tau)), with tau = 0.1. The
views are what did best there without labels: one has its tokens in random order (token shuffling), the other
lacks a fifth of the features of its token embeddings (feature cutoff); dropout is off. With labels the loss
is that of SBERT's classifier plus alpha = 0.15 times the contrastive one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aoe_train._baselines.own_tokens import OwnTokens
from aoe_train._baselines.way import TEXTS, Rows, Texts, TrainedOn, TrainingWay
from aoe_train._objectives.contrastive import ibn_angle_emb
from aoe_train._objectives.sbert import Classifier, softmax_loss

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from torch import Tensor

    from aoe_train._encoder import Encoder
    from aoe_train._text_model import TextModel

_TAU = 0.1
_CUT = 0.2
_ALPHA = 0.15


class ConSert(TrainingWay):
    """With labels there is a linear classifier, which learns."""

    def __init__(self, encoder: Encoder, given: TrainedOn = TEXTS) -> None:
        super().__init__(encoder, given)
        self._own = OwnTokens(encoder, given.prompts)
        self.classifier = Classifier(encoder.model.dim) if given.kind == "binary" else None

    def forward(
        self, model: TextModel, texts: Texts, numbers: Int[Tensor, " text"], more: Rows
    ) -> dict[str, Tensor]:
        """See `TrainingWay`."""
        with without_dropout(model):
            first = shuffled(texts, self._own.of(texts)).vectors(model)
            with features_cut(model, texts.lengths, _CUT):
                second = texts.vectors(model)
        everyone = torch.ones_like(numbers, dtype=torch.bool)
        contrastive = ibn_angle_emb(first.float(), second.float(), everyone, _TAU)
        if self.classifier is None or more.labels is None:
            return {"loss": contrastive}
        one, other = texts.vectors(model).float()[more.places].unbind(1)
        head = self.classifier.head
        supervised = softmax_loss(one, other, more.labels.long(), head.weight, head.bias)
        parts = {"sbert": supervised.detach(), "contrastive": contrastive.detach()}
        return {"loss": supervised + _ALPHA * contrastive, **parts}


@contextmanager
def without_dropout(model: TextModel) -> Iterator[None]:
    """Training without it; gradients are made all the same."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def shuffled(texts: Texts, own_tokens: Bool[Tensor, " token"]) -> Texts:
    """The same texts, the own tokens of each in random order; the others keep their places."""
    owners = torch.from_numpy(np.repeat(np.arange(len(texts.lengths)), texts.lengths))
    own = torch.nonzero(own_tokens).flatten()
    # By text, and within it by chance: a text's places are filled with its own tokens.
    drawn = own[torch.argsort(owners[own] + torch.rand(len(own), dtype=torch.float64))]
    places = torch.arange(len(owners))
    places[own] = drawn
    return texts._replace(input_ids=texts.input_ids[places.to(texts.input_ids.device)])


@contextmanager
def features_cut(model: TextModel, lengths: Int[np.ndarray, " text"], share: float) -> Iterator[None]:
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
