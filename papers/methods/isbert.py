"""IS-BERT (Zhang et al., EMNLP 2020, arXiv 2009.12061): a text's vector distinguishes its own n-grams.

Convolutions of widths 1, 3 and 5 over the backbone's token vectors h give local features F_i of each token,
ReLU(w . h_(i : i+k-1) + b), padded with zeros at the ends of a text; all widths together give as many
features as h has dimensions. The text's vector E is their mean. The method maximises the Jensen-Shannon
estimate of their mutual information (Eq. 3 there): the mean of -sp(-F_i . E(x)) over tokens i of x, minus the
mean of sp(F_i . E(x')) over the other texts x' of the batch, where sp is the softplus. The convolutions are
saved with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn.functional import one_hot, softplus

from papers.methods.base import Encode, Method, in_batches, text_of_token

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_WIDTHS = 1, 3, 5
_FILE = "ngrams.safetensors"


class NGrams(nn.ModuleList):
    """Convolutions over packed tokens, in float32."""

    def __init__(self, widths: Sequence[int], dim: int) -> None:
        super().__init__()
        shares = np.array_split(np.arange(dim), len(widths))
        for width, features in zip(widths, shares, strict=True):
            self.append(
                nn.Conv1d(
                    dim,
                    len(features),
                    width,
                    padding=width // 2,
                )
            )
        self._gap = max(widths) // 2

    def forward(
        self, tokens: Float[Tensor, "token dim"], text: Int[Tensor, " token"]
    ) -> Float[Tensor, "token dim"]:
        """Features of each token, from its own text only; `text` is the index of each token's text."""
        # In one row, texts are so far apart that no convolution sees two of them.
        count, dim = tokens.shape
        positions = torch.arange(count, device=tokens.device) + text * self._gap
        length = int(positions[-1]) + 1 + self._gap
        empty = tokens.new_zeros(length, dim, dtype=torch.float32)
        spread = empty.index_copy(0, positions, tokens.float())
        with torch.autocast(tokens.device.type, enabled=False):
            features = torch.cat([convolve(spread.T) for convolve in self])
        return torch.relu(features.T[positions])


class IsBert(Method):
    """Trains the model and the convolutions."""

    lr = 2e-5
    encoder: ClassVar[dict[str, Any]] = {"pooling": "avg"}

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.ngrams = NGrams(_WIDTHS, encoder.model.token_dim)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        local, text = self._local(model, batch)
        vectors = mean(local, text)
        loss = information_loss(local, vectors, text, batch.texts)
        return {"loss": loss}

    def save(self, folder: Path) -> None:
        """Write the convolutions to the model folder."""
        from safetensors.torch import save_file

        save_file(self.ngrams.state_dict(), folder / _FILE)

    def reader(self, encoder: Encoder, folder: Path | None) -> Encode:
        """See `Method`."""
        from safetensors.torch import load_file

        self.begin(encoder, "single")
        if folder is not None:
            self.ngrams.load_state_dict(load_file(folder / _FILE))
        self.to(encoder.device)

        def vectors_of(batch: TextBatch) -> Tensor:
            local, text = self._local(encoder.model, batch)
            return mean(local, text)

        return in_batches(encoder, vectors_of)

    def _local(self, model: Any, batch: TextBatch) -> tuple[Tensor, Tensor]:
        """The features of each token, and the index of its text."""
        states = batch.states(model)
        text = text_of_token(batch).to(states.device)
        return self.ngrams(states, text), text


def mean(
    local: Float[Tensor, "token dim"], text: Int[Tensor, " token"]
) -> Float[Tensor, "text dim"]:
    """The mean of each text's features."""
    counts = torch.bincount(text)
    sums = local.new_zeros(len(counts), local.shape[1])
    return sums.index_add(0, text, local) / counts[:, None]


def information_loss(
    local: Float[Tensor, "token dim"],
    vectors: Float[Tensor, "text dim"],
    text: Int[Tensor, " token"],
    text_ids: Int[Tensor, " text"],
) -> Float[Tensor, ""]:
    """The negative of the estimate; copies of a text have equal `text_ids` and are not negatives."""
    scores = local @ vectors.T
    is_own = one_hot(text, len(vectors)).bool()
    is_other = text_ids[text][:, None] != text_ids
    of_own = softplus(-scores).masked_fill(~is_own, 0)
    of_others = softplus(scores).masked_fill(~is_other, 0)
    positive = of_own.sum() / len(local)
    negative = of_others.sum() / is_other.sum().clamp_min(1)
    return positive + negative
