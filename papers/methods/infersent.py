"""InferSent (Conneau et al., EMNLP 2017, arXiv 1705.02364): a BiLSTM over word vectors, trained on NLI.

The vectors u and v of premise and hypothesis (`papers.methods.word_vectors`) become (u, v, |u - v|, u * v). Linear
layers of 512 and 512 units, as in the authors' code, and an output per class classify the pair: the mean
cross-entropy (Figure 1 there). Word vectors are frozen. Differences from the paper: two classes, because
neutral rows are left out; a triplet is two pairs; AdamW instead of SGD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from pairkit.base.errors import ConfigError
from papers.methods.base import IGNORED, Method

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_INNER = 512
_CLASSES = 2
_ABSENT = -1  # text index of an absent negative


class InferSent(Method):
    """Trains the model with a classifier of pairs."""

    lr = 1e-3
    kinds = "binary", "triplet"
    encoder: ClassVar[dict[str, Any]] = {"pooling": "max"}

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        backbone = encoder.model.backbone
        if backbone.config.model_type != "bilstm":
            raise ConfigError(
                f"infersent: found a {type(backbone).__name__}, expected a BiLSTM over word vectors; set the"
                " row's backbone to a file of word vectors"
            )
        backbone.get_input_embeddings().requires_grad_(requires_grad=False)
        self.classifier = nn.Sequential(
            nn.Linear(4 * encoder.model.dim, _INNER),
            nn.Linear(_INNER, _INNER),
            nn.Linear(_INNER, _CLASSES),
        )

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        u, v = sides(batch.vectors(model), batch)
        logits: Tensor = self.classifier(features(u, v))
        labels = classes(batch.rows[:, 1:], batch.labels)
        loss = cross_entropy(
            logits.float().flatten(0, 1),
            labels.flatten(),
        )
        return {"loss": loss}


def sides(
    vectors: Float[Tensor, "text dim"], batch: TextBatch
) -> tuple[Tensor, Tensor]:
    """The vectors of the premise and of the hypothesis of each pair, (row, hypothesis, dim)."""
    premises = batch.rows[:, :1]
    hypotheses = batch.rows[:, 1:]
    u = vectors[premises.expand_as(hypotheses)]
    v = vectors[hypotheses.clamp_min(0)]
    return u, v


def classes(
    hypotheses: Int[Tensor, "row hypothesis"], labels: Float[Tensor, " row"] | None
) -> Int[Tensor, "row hypothesis"]:
    """1 for entailment, else 0: a pair's label; in a triplet 1 for the positive. Absent texts are ignored."""
    if labels is not None:
        return labels.long()[:, None]
    entailed = torch.zeros_like(hypotheses)
    entailed[:, 0] = 1
    return entailed.masked_fill(hypotheses == _ABSENT, IGNORED)


def features(
    u: Float[Tensor, "*row dim"], v: Float[Tensor, "*row dim"]
) -> Float[Tensor, "*row four"]:
    """(u, v, |u - v|, u * v)."""
    parts = [
        u,
        v,
        (u - v).abs(),
        u * v,
    ]
    return torch.cat(parts, dim=-1)
