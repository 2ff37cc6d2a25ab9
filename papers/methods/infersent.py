"""InferSent (Conneau et al., EMNLP 2017, arXiv 1705.02364): a BiLSTM over word vectors learns from NLI.

The vectors u and v of premise and hypothesis (`papers.methods.bilstm`, the largest value of each
number) become (u, v, |u - v|, u * v), of which layers of 512, 512 and as many numbers as there are classes
tell the class: the mean cross-entropy (Figure 1 there). As in the authors' code, the layers are linear.
Word vectors don't learn. The paper has three classes; here neutral rows are left out, as for all that learns
from NLI, a triplet is two pairs, and AdamW takes the place of SGD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from pairkit.app.errors import ConfigError
from papers.methods.base import Method

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_INNER, _CLASSES = 512, 2
_IGNORED, _ABSENT = -100, -1


class InferSent(Method):
    """The classifier."""

    lr = 1e-3
    kinds = "binary", "triplet"
    encoder: ClassVar[dict[str, Any]] = {"pooling": "max"}

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        backbone = encoder.model.backbone
        if backbone.config.model_type != "bilstm":
            raise ConfigError(
                f"infersent: trains a BiLSTM over word vectors, and no {type(backbone).__name__};"
                " give a file of them as the row's backbone"
            )
        backbone.get_input_embeddings().requires_grad_(requires_grad=False)
        self.classifier = nn.Sequential(
            nn.Linear(4 * encoder.model.dim, _INNER), nn.Linear(_INNER, _INNER), nn.Linear(_INNER, _CLASSES)
        )

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        vectors, places = batch.vectors(model), batch.rows
        others = places[:, 1:]
        premises = vectors[places[:, :1].expand_as(others)]
        found: Tensor = self.classifier(features(premises, vectors[others.clamp_min(0)]))
        wanted = classes(others, batch.labels)
        return {"loss": cross_entropy(found.float().flatten(0, 1), wanted.flatten(), ignore_index=_IGNORED)}


def classes(
    others: Int[Tensor, "row other"], labels: Float[Tensor, " row"] | None
) -> Int[Tensor, "row other"]:
    """Whether each of a row's further texts follows from its first: as labelled, or of a triplet the first.

    Absent texts have no class.
    """
    if labels is not None:
        return labels.long()[:, None]
    found = torch.zeros_like(others)
    found[:, 0] = 1
    return found.masked_fill(others == _ABSENT, _IGNORED)


def features(one: Float[Tensor, "*row dim"], other: Float[Tensor, "*row dim"]) -> Float[Tensor, "*row four"]:
    """The vectors, their distance in each number, and their product."""
    return torch.cat([one, other, (one - other).abs(), one * other], dim=-1)
