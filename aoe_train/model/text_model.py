"""A backbone, a pooling and perhaps layers around it: packed tokens in, one vector a text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import nn

from aoe_train.model.device import only_callees_compiled, uncompiled, upload
from aoe_train.model.packing.run import run_packed
from aoe_train.model.tokens.tokens import ranges

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor
    from transformers import PreTrainedModel

    from aoe_train.model.dense_layers import DenseLayers


def pool(
    states: tuple[Float[Tensor, "token dim"], ...],
    lengths: Int[Tensor, " piece"],
    pieces: Int[Tensor, " text"],
    pooling: str,
    left_out: Int[Tensor, " piece"] | None = None,
) -> Float[Tensor, "text dim"]:
    """One float32 vector a text."""
    ends = torch.cumsum(lengths, 0)
    last = states[-1].float()
    if pooling == "cls":
        return mean(last[ends - lengths], pieces)
    if pooling == "last":
        return mean(last[ends - 1], pieces)
    tokens = sums(lengths, pieces)
    if pooling == "max":
        return torch.segment_reduce(last, "max", lengths=tokens, unsafe=True)  # checks wait for the device
    if pooling == "avg":
        return mean(last, tokens)
    if pooling == "weighted-mean":
        return _weighted_mean(last, lengths, tokens, left_out)
    if pooling == "cls-avg":
        return (mean(last[ends - lengths], pieces) + mean(last, tokens)) / 2
    return mean((states[1].float() + last) / 2, tokens)


def _weighted_mean(
    rows: Float[Tensor, "token dim"],
    lengths: Int[Tensor, " piece"],
    tokens: Int[Tensor, " text"],
    left_out: Int[Tensor, " piece"] | None,
) -> Float[Tensor, "text dim"]:
    shift = torch.cumsum(lengths, 0) - lengths
    if left_out is not None:
        shift = shift - left_out
    places = torch.arange(1, len(rows) + 1, device=rows.device)
    weights = places - torch.repeat_interleave(shift, lengths, output_size=len(rows))
    weights = weights[:, None].to(rows.dtype)
    return mean(rows * weights, tokens) / mean(weights, tokens)


def mean(rows: Float[Tensor, "part dim"], counts: Int[Tensor, " text"]) -> Float[Tensor, "text dim"]:
    """The mean of each text's rows; `counts` says how many come first, then next."""
    owners = torch.repeat_interleave(
        torch.arange(len(counts), device=rows.device), counts, output_size=len(rows)
    )
    sums = rows.new_zeros(len(counts), rows.shape[1]).index_add(0, owners, rows)
    return sums / counts[:, None]


def sums(parts: Int[Tensor, " part"], counts: Int[Tensor, " text"]) -> Int[Tensor, " text"]:
    """The sum of each text's parts."""
    ends = torch.cumsum(parts, 0)[torch.cumsum(counts, 0) - 1]
    return torch.diff(ends, prepend=ends.new_zeros(1))


class TextBatch(NamedTuple):
    """The distinct texts of a batch as one row of tokens without padding, in ascending order of length.

    Attributes:
        input_ids: Tokens of all texts, special ones and prompts included.
        lengths: Tokens of each text; on the host.
        prompt_lengths: The first tokens of each text that pooling leaves out; None if it takes all.
        texts: A number for each text; equal numbers are equal texts.
        rows: (row, column), places of the rows' texts in the batch; -1 for a negative that a row lacks.
        labels: (row,), or None for rows without.
    """

    input_ids: Int[Tensor, " token"]
    lengths: Int[np.ndarray, " text"]
    prompt_lengths: Int[np.ndarray, " text"] | None
    texts: Int[Tensor, " text"]
    rows: Int[Tensor, "row column"]
    labels: Float[Tensor, " row"] | None = None

    def vectors(self, model: TextModel) -> Float[Tensor, "text dim"]:
        """The texts' vectors by `encoder.model`, or by a copy of it."""
        found: Tensor = model(self.input_ids, self.lengths, np.ones_like(self.lengths), self.prompt_lengths)
        return found

    def states(self, model: TextModel) -> Float[Tensor, "token hidden"]:
        """The last hidden state of each token, for a pooling of your own."""
        return model.states(self.input_ids, self.lengths)[-1]

    def sequences(self) -> list[Int[Tensor, " token"]]:
        """Each text's tokens."""
        return list(torch.split(self.input_ids, self.lengths.tolist()))

    def with_sequences(self, sequences: list[Int[Tensor, " token"]]) -> TextBatch:
        """The same batch with other tokens in the place of each text's."""
        lengths = np.array([len(tokens) for tokens in sequences])
        return self._replace(input_ids=torch.cat(sequences), lengths=lengths)


class TextModel(nn.Module):
    """What training optimises and encoding runs."""

    def __init__(
        self,
        backbone: PreTrainedModel,
        pooling: str,
        *,
        packed: bool,
        heads: DenseLayers | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.packed = packed
        self.heads = heads
        self._after: tuple[nn.Module, ...] = ()

    def learn_layers(self, after: nn.Module | None) -> None:
        """Get ready to give the vectors of earlier layers too."""
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
    ) -> Float[Tensor, "text *layer dim"]:
        """Vectors of texts, float32."""
        if self.pooling == "cells":
            found = cast("Any", self.backbone).forward_packed(input_ids, lengths)
            vectors = mean(found.cells.float(), _upload(pieces, input_ids.device))
            return self._behind(vectors)
        if hasattr(self.backbone, "pooled"):  # a static model, which has no states of tokens in a text
            tokens = sums(*(_upload(counts, input_ids.device) for counts in (lengths, pieces)))
            return self._behind(cast("Any", self.backbone).pooled(input_ids, tokens))
        states = self.states(input_ids, lengths, every=bool(layers))
        return self.vectors(states, lengths, pieces, prompt_lengths, layers)

    @only_callees_compiled
    def states(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " piece"],
        *,
        every: bool = False,
    ) -> tuple[Float[Tensor, "token dim"], ...]:
        """Hidden states that pooling reads: the last layer's, or all where it or `every` wants them."""
        if hasattr(self.backbone, "forward_packed"):
            return (cast("Any", self.backbone).forward_packed(input_ids, lengths).hidden,)
        return self._states(input_ids, lengths, every=self._all_layers or every)

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
        return pooled if self.heads is None else self.heads(pooled)

    @only_callees_compiled
    def _states(self, input_ids: Tensor, lengths: np.ndarray, *, every: bool) -> tuple[Tensor, ...]:
        if not self.packed:
            return self._padded(input_ids, lengths, every=every)
        if (np.diff(lengths) >= 0).all():
            return run_packed(self.backbone, input_ids, lengths.tolist(), layers=every)
        ascending = np.argsort(lengths, kind="stable")
        order = ranges((np.cumsum(lengths) - lengths)[ascending], lengths[ascending])
        there, back = (_upload(places, input_ids.device) for places in (order, np.argsort(order)))
        states = self._states(input_ids[there], lengths[ascending], every=every)
        return tuple(state[back] for state in states)

    def _finished(self, state: Tensor) -> Tensor:
        for part in self._after:
            state = part(state)
        return state

    @property
    def _all_layers(self) -> bool:
        return self.pooling == "first-last-avg"

    @only_callees_compiled
    def _padded(self, input_ids: Tensor, lengths: np.ndarray, *, every: bool) -> tuple[Tensor, ...]:
        shape = len(lengths), int(lengths.max())
        slots = _upload(np.flatnonzero(np.arange(shape[1]) < lengths[:, None]), input_ids.device)
        ids = input_ids.new_full(shape, self._padding)
        ids.view(-1).index_copy_(0, slots, input_ids)
        mask = input_ids.new_zeros(shape)
        mask.view(-1).index_fill_(0, slots, 1)
        found = self.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=every)
        states = found.hidden_states if every else (found.last_hidden_state,)
        return tuple(state.flatten(0, 1).index_select(0, slots) for state in states)

    @property
    def _padding(self) -> int:
        # The mask hides it, so any token would do, but some models tell positions by the padding's number.
        return int(getattr(self.backbone.config, "pad_token_id", None) or 0)


@uncompiled
def _upload(numbers: np.ndarray, device: torch.device) -> Tensor:
    return upload(torch.from_numpy(numbers), device)
