"""Boundaries of sequences in a packed row, and the buckets in which attention processes them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch

from aoe_train.model.device import uncompiled, upload
from aoe_train.model.packing.attention import has_flash

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train.model.packing.attention import Heads

    HeadGrid = Float[Tensor, "sequence_head position dim"]
    Lengths = Int[Tensor, " sequence"]
    TokenIndices = Int[Tensor, " token"]


# A bucket's overhead, as the number of scores (sequences x length x length, one head) that take as long.
_BUCKET_COST = 6_000
# Maximum scores per bucket and head: all heads then fit into the last-level cache, and stay below the size
# from which the C library requests fresh, zeroed pages for each allocation.
_BUCKET_LIMIT = 262_144
# An accelerator's kernels copy a mask in every layer if its rows don't begin at multiples of this.
_ALIGNED = 16
# On an accelerator, starting a kernel costs far more, and the cache doesn't matter.
_ACCELERATOR_COST = 4_000_000
_ACCELERATOR_LIMIT = 1 << 26


class _HeadIndices(NamedTuple):
    """Indices of a bucket's rows, each of which is one head of one token."""

    tokens: Tensor
    padding: Tensor
    grid: Tensor


class Bucket:
    """Neighbouring sequences that attention pads to one length.

    Attributes:
        size: Number of sequences.
        length: Length of the longest sequence.
        even: Whether all sequences have the same length, so no padding is needed.
    """

    def __init__(self, first: int, lengths: list[int], sizes: Lengths) -> None:
        """`first` is the index of the first token; `sizes` are the lengths on the tokens' device."""
        self.size = len(lengths)
        self.length = lengths[-1]
        self.even = lengths[0] == lengths[-1]
        self._sizes = sizes
        self._device = sizes.device
        self._count = sum(lengths)
        self._tokens = slice(first, first + self._count)
        self._biases: dict[tuple[bool, int | None, torch.dtype], Tensor | None] = {}
        self._indices: dict[int, _HeadIndices] = {}

    @cached_property
    def slots(self) -> TokenIndices:
        """Each token's index in the flattened, padded (sequence, position) grid."""
        starts = torch.cumsum(self._sizes, 0) - self._sizes
        rows = torch.arange(self.size, device=self._device)
        return _from_starts(rows * self.length - starts, self._sizes, self._count)

    def grid(self, packed: Heads) -> Float[Tensor, "sequence position head dim"]:
        """This bucket's tokens, padded with zeros."""
        tokens = packed[self._tokens]
        shape = (self.size, self.length, *packed.shape[1:])
        if self.even:
            return tokens.view(shape)
        padded = tokens.new_zeros(self.size * self.length, *packed.shape[1:])
        padded.index_copy_(0, self.slots, tokens)
        return padded.view(shape)

    def heads(self, packed: Heads, *, zeros: bool = False) -> HeadGrid:
        """The same for each head, in one pass; padding is zeros or repeats a token."""
        _, count, dim = packed.shape
        if self.even:
            by_head = self.grid(packed).transpose(1, 2)
            return by_head.reshape(-1, self.length, dim)
        tokens = packed[self._tokens].reshape(-1, dim)
        indices = self._head_indices(count)
        rows = tokens.index_select(0, indices.tokens)
        if zeros:
            rows.index_fill_(0, indices.padding, 0)
        return rows.view(-1, self.length, dim)

    def put_heads(self, grid: HeadGrid, packed: Heads) -> None:
        """Write the grid back to this bucket's tokens."""
        tokens = packed[self._tokens]
        count, dim = tokens.shape[1:]
        if self.even:
            by_position = grid.view(self.size, count, self.length, dim).transpose(1, 2)
            tokens.view(by_position.shape).copy_(by_position)
        else:
            indices = self._head_indices(count).grid
            torch.index_select(grid.view(-1, dim), 0, indices, out=tokens.view(-1, dim))

    def _head_indices(self, count: int) -> _HeadIndices:
        """The indices for this many heads, which all layers share."""
        if count in self._indices:
            return self._indices[count]
        head = torch.arange(count)
        at = torch.arange(self.length)
        sizes = self._sizes[:, None]
        starts = torch.cumsum(self._sizes, 0)[:, None] - sizes
        tokens = starts + torch.minimum(at, sizes - 1)
        is_padding = (at >= sizes)[:, None, :].expand(-1, count, -1)

        sequence = self.slots[:, None] // self.length
        position = self.slots[:, None] % self.length
        grid = (sequence * count + head) * self.length + position
        self._indices[count] = _HeadIndices(
            tokens=(tokens[:, None, :] * count + head[:, None]).flatten(),
            padding=is_padding.flatten().nonzero().squeeze(1),
            grid=grid.flatten(),
        )
        return self._indices[count]

    def bias(
        self, *, causal: bool, window: int | None, dtype: torch.dtype
    ) -> Float[Tensor, "sequence 1 position position"] | None:
        """Added to scores: -inf for hidden keys, except in rows of padding, which would become NaN.

        None if each query sees all keys.
        """
        key = (causal, window, dtype)
        if key in self._biases:
            return self._biases[key]
        self._biases[key] = None
        if self.even and not causal and (window is None or self.length <= window):
            return None
        at = torch.arange(self.length, device=self._device)
        sizes = self._sizes[:, None, None]
        query = at[:, None]
        distance = query - at
        visible = at < sizes
        if causal:
            visible = visible & (distance >= 0)
        if window is not None:
            visible = visible & (distance.abs() < window)
        visible = visible | (query >= sizes)

        width = self.length
        if self._device.type != "cpu":
            width = -(-self.length // _ALIGNED) * _ALIGNED
        shape = (self.size, self.length, width)
        zeros = torch.zeros(shape, dtype=dtype, device=self._device)[..., : self.length]
        bias = zeros.masked_fill_(~visible, -torch.inf)[:, None]
        self._biases[key] = bias
        return bias


class Sequences:
    """The sequences of one packed row, ascending by length."""

    @uncompiled
    def __init__(self, lengths: list[int], device: torch.device) -> None:
        self.lengths = lengths
        self._set(upload(torch.tensor(lengths), device), sum(lengths), lengths[-1])

    @classmethod
    def on_device(cls, sizes: Lengths, tokens: int, longest: int) -> Sequences:
        """Sequences in any order whose lengths only the device knows; they need FlashAttention."""
        sequences = cls.__new__(cls)
        sequences._set(sizes, tokens, longest)
        return sequences

    def _set(self, sizes: Lengths, tokens: int, longest: int) -> None:
        self.sizes = sizes
        self.device = sizes.device
        ends = torch.cumsum(sizes, 0)
        self.positions = _from_starts(sizes - ends, sizes, tokens)
        # Attributes, not properties, so that torch.compile treats them as inputs that change with each batch.
        bounds = torch.nn.functional.pad(ends, (1, 0))
        self.bounds: Int[Tensor, " sequence+1"] = bounds.to(torch.int32)
        self.longest = longest
        self.flash = has_flash(self.device)

    @cached_property
    def buckets(self) -> list[Bucket]:
        """Consecutive sequences that attention processes together, divided at the lowest cost."""
        buckets = []
        first = 0
        token = 0
        cost = _ACCELERATOR_COST
        limit = _ACCELERATOR_LIMIT
        if self.device.type == "cpu":
            cost = _BUCKET_COST
            limit = _BUCKET_LIMIT
        for last in best_cuts(self.lengths, cost, limit):
            lengths = self.lengths[first:last]
            buckets.append(Bucket(token, lengths, self.sizes[first:last]))
            first = last
            token += sum(lengths)
        return buckets


def _from_starts(
    shift: Lengths,
    sizes: Lengths,
    total: int,
) -> TokenIndices:
    """Each token's index plus its sequence's shift, without waiting for the device."""
    indices = torch.arange(total, device=sizes.device)
    return indices + torch.repeat_interleave(shift, sizes, output_size=total)


def best_cuts(lengths: list[int], start_cost: int, limit: int) -> list[int]:
    """The ends of the buckets with the lowest total cost, for ascending lengths.

    A bucket costs a fixed amount, plus the square of its longest length per sequence. Dynamic programming
    over the distinct lengths finds the minimum, as putting equal lengths together is free. If the limit
    divides a run of equal lengths, it does so from the start of the run, which may cost slightly more;
    trying all divisions would take longer than it saves.
    """
    bounds = [0]  # of runs of equal lengths, or parts of these
    for end, length in enumerate(lengths, 1):
        if end == len(lengths) or length != lengths[end]:
            step = max(1, limit // length**2)
            bounds += [*range(bounds[-1] + step, end, step), end]

    costs = [0.0]  # the lowest up to each bound
    cut = [0]  # the bound at which the last of these buckets begins
    for number, end in enumerate(bounds[1:]):
        square = lengths[end - 1] ** 2
        options = []
        for before in range(number, -1, -1):
            scores = (end - bounds[before]) * square
            if scores > limit and before < number:
                break
            options.append((costs[before] + start_cost + scores, before))
        cost, before = min(options)
        costs.append(cost)
        cut.append(before)

    chosen = []
    number = len(bounds) - 1
    while number:
        chosen.append(bounds[number])
        number = cut[number]
    return chosen[::-1]
