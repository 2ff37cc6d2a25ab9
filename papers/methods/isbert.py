"""IS-BERT (Zhang et al., EMNLP 2020, arXiv 2009.12061): a text's vector knows its own n-grams from others'.

Local features F_i of each token come from filters of widths 1, 3 and 5 over the backbone's tokens: a filter
of width k gives ReLU(w . h_(i : i+k-1) + b), with zeros beyond the ends of a text; all widths together give
as many features as a token has numbers. The text's vector E is their mean. What is maximised is the
Jensen-Shannon estimate of their mutual information (Eq. 3 there): the mean of -sp(-F_i . E(x)) over tokens i
of x, less the mean of sp(F_i . E(x')) over the batch's other texts x', with sp the softplus. The filters are
part of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn.functional import one_hot, softplus

from papers.methods.base import Encode, Method

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_WIDTHS = 1, 3, 5
_FILE = "ngrams.safetensors"


class NGrams(nn.ModuleList):
    """Filters over packed tokens, in float32."""

    def __init__(self, widths: Sequence[int], dim: int) -> None:
        share, more = divmod(dim, len(widths))
        sizes = [share + (place < more) for place in range(len(widths))]
        super().__init__(
            nn.Conv1d(dim, size, width, padding=width // 2) for size, width in zip(sizes, widths, strict=True)
        )
        self._gap = max(widths) // 2

    def forward(
        self, tokens: Float[Tensor, "token dim"], owners: Int[Tensor, " token"]
    ) -> Float[Tensor, "token dim"]:
        """Features of each token, of no text but its own."""
        places = torch.arange(len(tokens), device=tokens.device) + owners * self._gap
        # Texts lie so far apart in one row that no filter sees two of them.
        size = len(tokens) + (int(owners[-1]) + 1) * self._gap
        apart = tokens.new_zeros(size, tokens.shape[1], dtype=torch.float32)
        row = apart.index_copy(0, places, tokens.float()).T[None]
        with torch.autocast(tokens.device.type, enabled=False):
            found = torch.cat([convolve(row) for convolve in self], dim=1)
        return torch.relu(found[0].T[places])


class IsBert(Method):
    """The filters."""

    lr = 2e-5
    encoder: ClassVar[dict[str, Any]] = {"pooling": "avg"}

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.ngrams = NGrams(_WIDTHS, encoder.model.token_dim)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        local, owners = self._local(model, batch)
        return {"loss": information_loss(local, mean(local, owners), owners, batch.texts)}

    def save(self, folder: Path) -> None:
        """Write the filters beside the model."""
        from safetensors.torch import save_file

        save_file(
            {name: weight.contiguous() for name, weight in self.ngrams.state_dict().items()}, folder / _FILE
        )

    def reader(self, encoder: Encoder, folder: Path | None) -> Encode:
        """See `Method`."""
        from safetensors.torch import load_file

        self.begin(encoder, "single")
        if folder is not None:
            self.ngrams.load_state_dict(load_file(folder / _FILE))
        self.to(encoder.device)

        @torch.inference_mode()
        def encode(texts: list[str]) -> np.ndarray:
            found = np.empty((len(texts), encoder.model.token_dim), np.float32)
            for places, batch in encoder.token_batches(texts):
                found[places] = mean(*self._local(encoder.model, batch)).cpu().numpy()
            return found

        return encode

    def _local(self, model: Any, batch: TextBatch) -> tuple[Tensor, Tensor]:
        """Each token's features, and its text."""
        states = batch.states(model)
        owners = torch.from_numpy(np.repeat(np.arange(len(batch.lengths)), batch.lengths)).to(states.device)
        return self.ngrams(states, owners), owners


def mean(local: Float[Tensor, "token dim"], owners: Int[Tensor, " token"]) -> Float[Tensor, "text dim"]:
    """The mean of each text's features."""
    sums = local.new_zeros(int(owners[-1]) + 1, local.shape[1]).index_add(0, owners, local)
    return sums / torch.bincount(owners)[:, None]


def information_loss(
    local: Float[Tensor, "token dim"],
    vectors: Float[Tensor, "text dim"],
    owners: Int[Tensor, " token"],
    numbers: Int[Tensor, " text"],
) -> Float[Tensor, ""]:
    """The negative of the estimate."""
    scores = local @ vectors.T
    own = one_hot(owners, len(vectors)).bool()
    others = numbers[owners][:, None] != numbers
    positive = softplus(-scores).masked_fill(~own, 0).sum() / len(local)
    return positive + softplus(scores).masked_fill(~others, 0).sum() / others.sum().clamp_min(1)
