"""ConSERT (Yan et al., ACL 2021, arXiv 2105.11741), unsupervised or with labels ("joint").

The loss (NT-Xent, Section 3 there): each of the two views r of a text has to find the other one among all 2N
views of the batch. It is the mean of -log(exp(cos(r_i, r_j) / tau) / sum over k != i of
exp(cos(r_i, r_k) / tau)), with tau = 0.1. The views are the paper's best pair: one has its tokens in random
order (token shuffling), the other lacks a fifth of the features of its token embeddings (feature cutoff).
Dropout is off.

With labels, 0.15 of this loss is added to the cross-entropy of Sentence-BERT's classifier on (u, v, |u - v|).
Differences from the paper: two classes, as neutral rows are left out, and no further training on unlabelled
texts ("joint-unsup"), which the papers' figure includes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from papers.methods.base import IGNORED, Method, OrdinaryTokens, text_of_token
from papers.methods.infersent import classes, sides
from papers.methods.objectives import in_batch_angle_emb

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.1
_CUT = 0.2
_SHARE = 0.15  # weight of the contrast beside the classifier


class ConSert(Method):
    """Contrasts shuffled tokens with cut features."""

    lr = 5e-7

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self._ordinary = OrdinaryTokens(encoder)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        with without_dropout(model):
            first = shuffled(batch, self._ordinary.mask(batch)).vectors(model)
            with features_cut(model, batch.lengths, _CUT):
                second = batch.vectors(model)
        all_positive = torch.ones_like(batch.texts, dtype=torch.bool)
        loss = in_batch_angle_emb(
            first.float(),
            second.float(),
            all_positive,
            _TAU,
        )
        return {"loss": loss}


class ConSertJoint(ConSert):
    """Also classifies pairs."""

    lr = 2e-5
    kinds = "binary", "triplet"

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.classifier = nn.Linear(3 * encoder.model.dim, 2)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        u, v = sides(batch.vectors(model).float(), batch)
        features = torch.cat([u, v, (u - v).abs()], dim=-1)
        logits: Tensor = self.classifier(features)
        labels = classes(batch.rows[:, 1:], batch.labels)
        classification = cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=IGNORED,
        )
        contrast = super().forward(model, batch)["loss"]
        return {"loss": classification + _SHARE * contrast}


@contextmanager
def without_dropout(model: Any) -> Iterator[None]:
    """Switch dropout off for a training step; gradients are still computed."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def shuffled(batch: TextBatch, ordinary: Bool[Tensor, " token"]) -> TextBatch:
    """The texts with their ordinary tokens in random order; special tokens keep their positions."""
    text = text_of_token(batch)
    positions = torch.nonzero(ordinary).flatten()
    # Sorting by text index plus a number below 1 shuffles within each text.
    keys = text[positions] + torch.rand(len(positions), dtype=torch.float64)
    order = torch.arange(len(text))
    order[positions] = positions[torch.argsort(keys)]
    shuffled_ids = batch.input_ids[order.to(batch.input_ids.device)]
    return batch._replace(input_ids=shuffled_ids)


@contextmanager
def features_cut(
    model: Any, lengths: Int[np.ndarray, " text"], share: float
) -> Iterator[None]:
    """Zero a random share of each text's embedding features, the same ones in all its tokens."""
    backbone = model.backbone
    embeddings: Any = (
        getattr(backbone, "embeddings", None) or backbone.get_input_embeddings()
    )
    kept = torch.rand(len(lengths), model.token_dim) >= share

    def cut(_: object, __: object, embedded: Tensor) -> Tensor:
        mask = kept.to(embedded.device, embedded.dtype)
        if not model.packed:
            return embedded * mask[:, None]
        repeats = torch.from_numpy(lengths).to(embedded.device)
        return embedded * mask.repeat_interleave(repeats, dim=0)

    handle = embeddings.register_forward_hook(cut)
    try:
        yield
    finally:
        handle.remove()
