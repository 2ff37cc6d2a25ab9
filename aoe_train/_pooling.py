"""From token vectors to text vectors, over packed tokens: there is no padding that could take part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


def pool(
    states: tuple[Float[Tensor, "token dim"], ...],
    lengths: Int[Tensor, " piece"],
    pieces: Int[Tensor, " text"],
    pooling: str,
    left_out: Int[Tensor, " piece"] | None = None,
) -> Float[Tensor, "text dim"]:
    """One float32 vector a text.

    Args:
        states: Hidden states of the layers, of which the last is used; for `first-last-avg` the
            second too (the first layer's output).
        lengths: Tokens of each piece, in the tokens' order.
        pieces: Pieces of each text. Averages and maxima go over all tokens of a text; `cls`, `last` and
            `mask`, which are one of each piece's tokens, are averaged over the pieces.
        pooling: `cls` (first token), `last`, `mask` (of pieces of which [MASK] alone is left), `avg`, `max`,
            `cls-avg` (mean of the two; the papers' `cls-last-avg`), `first-last-avg` (average over both
            layers), or `weighted-mean`: each token counts as often as its place in its piece says, from 1 on
            (SGPT, Muennighoff 2022).
        left_out: Tokens of each piece that came before those that are here; `weighted-mean` counts them.
    """
    ends = torch.cumsum(lengths, 0)
    last = states[-1].float()
    if pooling in ("cls", "mask"):
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
