"""A backbone and a pooling: packed tokens in, one vector a text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from aoe_train.packing.run import run_packed
from aoe_train.pooling import mean, pool

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor
    from transformers import PreTrainedModel


class TextModel(nn.Module):
    """What training optimises and encoding runs.

    Args:
        backbone: A transformers model without a head.
        pooling: See `aoe_train.pooling.pool`; also `cells`, RAN's own document vector.
        packed: Whether to run without padding, which needs `packing.run.can_pack(backbone)`.
    """

    def __init__(self, backbone: PreTrainedModel, pooling: str, *, packed: bool) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.packed = packed

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.backbone.config.hidden_size)

    def forward(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[Tensor, " piece"],
        pieces: Int[Tensor, " text"],
    ) -> Float[Tensor, "text dim"]:
        """Vectors of texts, float32; see `records.TokenBatch` for the arguments."""
        if hasattr(self.backbone, "forward_packed"):
            return self._recurrent(input_ids, lengths, pieces)
        sizes = lengths.tolist()
        if self.packed and sizes != sorted(sizes):
            ordered, order = _sorted(input_ids, lengths)
            states = run_packed(self.backbone, ordered, sorted(sizes), layers=self._all_layers)
            back = torch.argsort(order)
            states = tuple(state[back] for state in states)
        elif self.packed:
            states = run_packed(self.backbone, input_ids, sizes, layers=self._all_layers)
        else:
            states = self._padded(input_ids, sizes)
        return pool(states, lengths, pieces, self.pooling)

    @property
    def _all_layers(self) -> bool:
        return self.pooling == "first-last-avg"

    def _recurrent(self, input_ids: Tensor, lengths: Tensor, pieces: Tensor) -> Tensor:
        found = cast("Any", self.backbone).forward_packed(input_ids, lengths)
        if self.pooling == "cells":
            return mean(found.cells.float(), pieces)
        return pool((found.hidden,), lengths, pieces, self.pooling)

    def _padded(self, input_ids: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
        parts = torch.split(input_ids, sizes)
        mask = pad_sequence([torch.ones_like(part) for part in parts], batch_first=True)
        found = self.backbone(
            input_ids=pad_sequence(list(parts), batch_first=True, padding_value=self._padding),
            attention_mask=mask,
            output_hidden_states=self._all_layers,
        )
        states = found.hidden_states if self._all_layers else (found.last_hidden_state,)
        return tuple(state[mask.bool()] for state in states)

    @property
    def _padding(self) -> int:
        # The mask hides it, so any token would do, but some models tell positions by the padding's number.
        return int(getattr(self.backbone.config, "pad_token_id", None) or 0)


def _sorted(
    input_ids: Int[Tensor, " token"], lengths: Int[Tensor, " piece"]
) -> tuple[Int[Tensor, " token"], Int[Tensor, " token"]]:
    """Tokens with their pieces ascending by length, and where each of them stood before."""
    new = torch.argsort(lengths, stable=True)
    starts = torch.cumsum(lengths, 0) - lengths
    sizes = lengths[new]
    shift = starts[new] - (torch.cumsum(sizes, 0) - sizes)
    order = torch.arange(len(input_ids), device=input_ids.device) + torch.repeat_interleave(shift, sizes)
    return input_ids[order], order
