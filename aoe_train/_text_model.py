"""A backbone, a pooling and perhaps layers around it: packed tokens in, one vector a text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from aoe_train._packing.compiling import only_callees_compiled, uncompiled
from aoe_train._packing.run import position_offset, run_packed
from aoe_train._packing.transfer import upload
from aoe_train._pooling import mean, pool, sums
from aoe_train._tokens import ranges

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor
    from transformers import PreTrainedModel

    from aoe_train._flow import Flow
    from aoe_train._heads import Heads
    from aoe_train._ngrams import NGrams


class TextModel(nn.Module):
    """What training optimises and encoding runs.

    Args:
        backbone: A transformers model without a head.
        pooling: See `aoe_train._pooling.pool`; also `cells`, RAN's own document vector.
        packed: Whether to run without padding, which needs `packing.run.can_pack(backbone)`.
        heads: Dense layers behind the pooling.
        flow: An invertible map behind these.
        ngrams: Filters before the pooling.
        mask: The number of [MASK], for the pooling of its name, which takes the last one of each piece.
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        pooling: str,
        *,
        packed: bool,
        heads: Heads | None = None,
        flow: Flow | None = None,
        ngrams: NGrams | None = None,
        mask: int | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.packed = packed
        self.heads = heads
        self.flow = flow
        self.ngrams = ngrams
        self.mask = mask
        self._after: tuple[nn.Module, ...] = ()

    def learn_layers(self, after: nn.Module | None) -> None:
        """Get ready to give the vectors of earlier layers too.

        Args:
            after: What the backbone does to the last layer's vectors, see `_backbones.depth`.
        """
        self._after = () if after is None else (after,)  # in a tuple, as its weights are the backbone's

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return self.token_dim if self.heads is None else self.heads.dim

    @property
    def token_dim(self) -> int:
        """Numbers in a token's vector."""
        return int(self.backbone.config.hidden_size)

    @only_callees_compiled  # plans by numbers that differ with each batch
    def forward(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " piece"],
        pieces: Int[np.ndarray, " text"],
        prompt_lengths: Int[np.ndarray, " piece"] | None = None,
        layers: tuple[int, ...] = (),
        positions: Int[Tensor, " token"] | None = None,
    ) -> Float[Tensor, "text *layer dim"]:
        """Vectors of texts, float32.

        Args:
            input_ids: See `records.TokenBatch`, as for the others.
            lengths: Tokens.
            pieces: Of each text.
            prompt_lengths: Tokens that pooling leaves out.
            layers: Numbers of earlier layers, from 1: gives vectors (text, layer, dim) after each of them and
                after the last one, as models that end there would.
            positions: Of tokens, where they are not 0, 1, 2 and so on in each piece.
        """
        if self.pooling == "cells":
            found = cast("Any", self.backbone).forward_packed(input_ids, lengths)
            vectors = mean(found.cells.float(), _upload(pieces, input_ids.device))
            return self._behind(vectors)
        if hasattr(self.backbone, "pooled"):  # a static model, which has no states of tokens in a text
            tokens = sums(*(_upload(counts, input_ids.device) for counts in (lengths, pieces)))
            return self._behind(cast("Any", self.backbone).pooled(input_ids, tokens))
        states = self.states(input_ids, lengths, every=bool(layers), positions=positions)
        if self.mask is not None:
            place = _last_of(input_ids.eq(self.mask), _upload(lengths, input_ids.device))
            states = tuple(state[place] for state in states)
            return self.vectors(states, np.ones_like(lengths), pieces, layers=layers)
        return self.vectors(states, lengths, pieces, prompt_lengths, layers)

    @only_callees_compiled
    def states(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " piece"],
        *,
        every: bool = False,
        positions: Int[Tensor, " token"] | None = None,
    ) -> tuple[Float[Tensor, "token dim"], ...]:
        """Hidden states that pooling reads: the last layer's, or all where it or `every` wants them."""
        states: tuple[Tensor, ...]
        if hasattr(self.backbone, "forward_packed"):
            states = (cast("Any", self.backbone).forward_packed(input_ids, lengths).hidden,)
        else:
            states = self._states(input_ids, lengths, positions, every=self._all_layers or every)
        if self.ngrams is None:
            return states
        sizes = _upload(lengths, input_ids.device)
        return (*states[:-1], self.ngrams(states[-1], sizes))

    @only_callees_compiled
    def vectors(
        self,
        states: tuple[Float[Tensor, "token dim"], ...],
        lengths: Int[np.ndarray, " piece"],
        pieces: Int[np.ndarray, " text"],
        prompt_lengths: Int[np.ndarray, " piece"] | None = None,
        layers: tuple[int, ...] = (),
    ) -> Float[Tensor, "text *layer dim"]:
        """Vectors of texts from the states of their tokens; the arguments are those of `forward`."""
        device, skipped = states[-1].device, None
        if prompt_lengths is not None:
            left_out = np.minimum(prompt_lengths, lengths - 1)  # something has to be left
            kept = ranges(np.cumsum(lengths) - lengths + left_out, lengths - left_out)
            place = _upload(kept, device)
            states, lengths = tuple(state[place] for state in states), lengths - left_out
            skipped = _upload(left_out, device)
        sizes, counts = _upload(lengths, device), _upload(pieces, device)
        if layers:
            depths = [*((*states[:n], self._finished(states[n])) for n in layers), states]
            found = torch.stack(
                [pool(depth, sizes, counts, self.pooling, skipped) for depth in depths], dim=1
            )
        else:
            found = pool(states, sizes, counts, self.pooling, skipped)
        return self._behind(found)

    def _behind(self, pooled: Tensor) -> Tensor:
        for part in (self.heads, self.flow):
            pooled = pooled if part is None else part(pooled)
        return pooled

    @only_callees_compiled
    def _states(
        self, input_ids: Tensor, lengths: np.ndarray, positions: Tensor | None, *, every: bool
    ) -> tuple[Tensor, ...]:
        if not self.packed:
            return self._padded(input_ids, lengths, positions, every=every)
        if (np.diff(lengths) >= 0).all():
            return run_packed(self.backbone, input_ids, lengths.tolist(), positions, layers=every)
        ascending = np.argsort(lengths, kind="stable")
        order = ranges((np.cumsum(lengths) - lengths)[ascending], lengths[ascending])
        there, back = (_upload(places, input_ids.device) for places in (order, np.argsort(order)))
        placed = None if positions is None else positions[there]
        states = self._states(input_ids[there], lengths[ascending], placed, every=every)
        return tuple(state[back] for state in states)

    def _finished(self, state: Tensor) -> Tensor:
        for part in self._after:
            state = part(state)
        return state

    @property
    def _all_layers(self) -> bool:
        return self.pooling == "first-last-avg"

    @only_callees_compiled
    def _padded(
        self, input_ids: Tensor, lengths: np.ndarray, positions: Tensor | None, *, every: bool
    ) -> tuple[Tensor, ...]:
        shape = len(lengths), int(lengths.max())
        slots = _upload(np.flatnonzero(np.arange(shape[1]) < lengths[:, None]), input_ids.device)
        ids = input_ids.new_full(shape, self._padding)
        ids.view(-1).index_copy_(0, slots, input_ids)
        mask = input_ids.new_zeros(shape)
        mask.view(-1).index_fill_(0, slots, 1)
        placed = {}
        if positions is not None:
            placed["position_ids"] = torch.zeros_like(ids)
            own = positions + position_offset(self.backbone)
            placed["position_ids"].view(-1).index_copy_(0, slots, own)
        found = self.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=every, **placed)
        states = found.hidden_states if every else (found.last_hidden_state,)
        return tuple(state.flatten(0, 1).index_select(0, slots) for state in states)

    @property
    def _padding(self) -> int:
        # The mask hides it, so any token would do, but some models tell positions by the padding's number.
        return int(getattr(self.backbone.config, "pad_token_id", None) or 0)


def _last_of(wanted: Bool[Tensor, " token"], lengths: Int[Tensor, " piece"]) -> Int[Tensor, " piece"]:
    """The place of the last wanted token of each piece, which has one."""
    pieces = torch.arange(len(lengths), device=wanted.device)
    owners = torch.repeat_interleave(pieces, lengths, output_size=len(wanted))
    places = torch.arange(len(wanted), device=wanted.device).masked_fill(~wanted, 0)
    return torch.zeros_like(lengths).scatter_reduce(0, owners, places, "amax")


@uncompiled
def _upload(numbers: np.ndarray, device: torch.device) -> Tensor:
    return upload(torch.from_numpy(numbers), device)
