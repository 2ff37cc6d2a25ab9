"""Where sequences are in a packed row, and which of them attention takes together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from aoe_train.model.device import uncompiled, upload
from aoe_train.model.packing.flash import has_flash

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


# Scores (sequence x length x length, one head) that cost as much time as starting one more bucket does.
_BUCKET_COST = 6_000
# Most scores of a bucket and head: all heads' then stay within the last-level cache, and below the size from
# which the C library asks the kernel for fresh, zeroed pages at every allocation.
_BUCKET_LIMIT = 262_144
# An accelerator's kernels copy a mask whose rows don't begin at multiples of this, in every layer.
_ALIGNED = 16
# On an accelerator a kernel's start costs far more, and nothing has to stay in a cache.
_ACCELERATOR_COST, _ACCELERATOR_LIMIT = 4_000_000, 1 << 26


@dataclass(frozen=True)
class _HeadPlaces:
    """Where a bucket's rows stand, each the numbers of one head of one token."""

    tokens: Int[Tensor, " row"]
    padding: Int[Tensor, " row"]
    grid: Int[Tensor, " row"]


@dataclass(frozen=True)
class Bucket:
    """Neighbouring sequences that attention pads to one length."""

    first: int
    tokens: int
    lengths: tuple[int, ...]
    sizes: Int[Tensor, " sequence"]
    _biases: dict[tuple[bool, int | None, torch.dtype], Tensor | None] = field(
        default_factory=dict, repr=False
    )
    _places: dict[int, _HeadPlaces] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> torch.device:
        """Where the tokens are."""
        return self.sizes.device

    @property
    def size(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    @property
    def length(self) -> int:
        """The longest sequence's tokens."""
        return self.lengths[-1]

    @property
    def even(self) -> bool:
        """Whether all sequences have the same length, so that no padding is needed at all."""
        return self.lengths[0] == self.lengths[-1]

    @cached_property
    def slots(self) -> Int[Tensor, " token"]:
        """Each token's place in the padded (sequence, position) grid, flattened."""
        starts = torch.cumsum(self.sizes, 0) - self.sizes
        shift = torch.arange(self.size, device=self.device) * self.length - starts
        return _from_starts(shift, self.sizes, self.tokens)

    def grid(self, packed: Float[Tensor, "token head dim"]) -> Float[Tensor, "sequence position head dim"]:
        """This bucket's tokens, padded with zeros."""
        own = packed[self.first : self.first + self.tokens]
        shape = (self.size, self.length, *packed.shape[1:])
        if self.even:
            return own.view(shape)
        padded = own.new_zeros(self.size * self.length, *packed.shape[1:])
        return padded.index_copy_(0, self.slots, own).view(shape)

    def heads(
        self, packed: Float[Tensor, "token head dim"], *, zeros: bool = False
    ) -> Float[Tensor, "sequence_head position dim"]:
        """The same head by head, in one pass; the padding repeats a token, or is zeros."""
        _, count, dim = packed.shape
        if self.even:
            return self.grid(packed).transpose(1, 2).reshape(-1, self.length, dim)
        own = packed[self.first : self.first + self.tokens].reshape(-1, dim)
        places = self._head_places(count)
        rows = own.index_select(0, places.tokens)
        if zeros:
            rows.index_fill_(0, places.padding, 0)
        return rows.view(-1, self.length, dim)

    def put_heads(
        self, heads: Float[Tensor, "sequence_head position dim"], packed: Float[Tensor, "token head dim"]
    ) -> None:
        """Write what stands in the grid to this bucket's tokens."""
        own = packed[self.first : self.first + self.tokens]
        count, dim = own.shape[1:]
        if self.even:
            grid = heads.view(self.size, count, self.length, dim).transpose(1, 2)
            own.view(grid.shape).copy_(grid)
        else:
            places = self._head_places(count).grid
            torch.index_select(heads.view(-1, dim), 0, places, out=own.view(-1, dim))

    def _head_places(self, count: int) -> _HeadPlaces:
        if count not in self._places:
            self._places[count] = self._find_head_places(count)
        return self._places[count]

    def _find_head_places(self, count: int) -> _HeadPlaces:
        head = torch.arange(count)
        at = torch.arange(self.length)
        sizes = self.sizes
        starts = torch.cumsum(sizes, 0) - sizes
        tokens = starts[:, None] + torch.minimum(at[None, :], sizes[:, None] - 1)
        padded = (at[None, None, :] >= sizes[:, None, None]).expand(-1, count, -1)
        sequence, position = self.slots // self.length, self.slots % self.length
        grid = (sequence[:, None] * count + head) * self.length + position[:, None]
        return _HeadPlaces(
            tokens=(tokens[:, None, :] * count + head[:, None]).flatten(),
            padding=padded.flatten().nonzero().squeeze(1),
            grid=grid.flatten(),
        )

    def bias(
        self, *, causal: bool, window: int | None, dtype: torch.dtype
    ) -> Float[Tensor, "sequence 1 position position"] | None:
        """What to add to the scores: -inf where a key is padding, later (causal), or `window` or more away.

        The padding's own queries may see all there is, so that no row is without a key.
        """
        key = (causal, window, dtype)
        if key not in self._biases:
            self._biases[key] = self._bias(causal=causal, window=window, dtype=dtype)
        return self._biases[key]

    def _bias(self, *, causal: bool, window: int | None, dtype: torch.dtype) -> Tensor | None:
        if self.even and not causal and (window is None or self.length <= window):
            return None
        at = torch.arange(self.length, device=self.device)
        sizes = self.sizes[:, None, None]
        distance = at[:, None] - at[None, :]
        seen = at[None, None, :] < sizes
        if causal:
            seen = seen & (distance >= 0)
        if window is not None:
            seen = seen & (distance.abs() < window)
        seen = seen | (at[None, :, None] >= sizes)
        width = self.length if self.device.type == "cpu" else -(-self.length // _ALIGNED) * _ALIGNED
        bias = torch.zeros(*seen.shape[:-1], width, dtype=dtype, device=self.device)[..., : self.length]
        return bias.masked_fill_(~seen, -torch.inf)[:, None]


class Sequences:
    """The sequences of one packed row, ascending by length."""

    @uncompiled
    def __init__(self, lengths: list[int], device: torch.device) -> None:
        self.lengths = lengths
        self.device = device
        self.sizes: Int[Tensor, " sequence"] = upload(torch.tensor(lengths), device)
        ends = torch.cumsum(self.sizes, 0)
        self.positions: Int[Tensor, " token"] = _from_starts(self.sizes - ends, self.sizes, sum(lengths))
        # Attributes and not properties: torch.compile reads them anew for every batch.
        self.bounds: Int[Tensor, " sequence+1"] = torch.nn.functional.pad(ends, (1, 0)).to(torch.int32)
        self.longest = lengths[-1]
        self.flash = has_flash(device)

    @cached_property
    def buckets(self) -> list[Bucket]:
        """Neighbours that attention takes together: the cheapest cut."""
        found, first, token = [], 0, 0
        cost, limit = (
            (_BUCKET_COST, _BUCKET_LIMIT)
            if self.device.type == "cpu"
            else (_ACCELERATOR_COST, _ACCELERATOR_LIMIT)
        )
        for last in best_cuts(self.lengths, cost, limit):
            own = tuple(self.lengths[first:last])
            found.append(Bucket(token, sum(own), own, self.sizes[first:last]))
            first, token = last, token + sum(own)
        return found


def _from_starts(
    shift: Int[Tensor, " sequence"], sizes: Int[Tensor, " sequence"], tokens: int
) -> Int[Tensor, " token"]:
    """Each token's number, plus its sequence's shift; nothing is asked of the device."""
    return torch.arange(tokens, device=sizes.device) + torch.repeat_interleave(
        shift, sizes, output_size=tokens
    )


def best_cuts(lengths: list[int], start_cost: int = _BUCKET_COST, limit: int = _BUCKET_LIMIT) -> list[int]:
    """The ends of the buckets that cost the least time, for ascending lengths.

    A bucket costs a fixed amount, and the square of its longest sequence for each of its sequences (dynamic
    programming over the distinct lengths, as equal lengths never cost anything to take together). Where the
    limit parts a run of equal lengths, it is cut from its beginning on, which may cost
    a little more than the least; trying every place would take longer than that saves.
    """
    ends = [i + 1 for i in range(len(lengths)) if i + 1 == len(lengths) or lengths[i] != lengths[i + 1]]
    ends = _within_limit(lengths, ends, limit)
    best, cut = [0.0], [0]
    for number, end in enumerate(ends):
        square = lengths[end - 1] ** 2
        options = (
            (best[before] + start_cost + (end - start) * square, before)
            for before in range(number, -1, -1)
            for start in [ends[before - 1] if before else 0]
            if before == number or (end - start) * square <= limit
        )
        cost, before = min(options)
        best.append(cost)
        cut.append(before)
    found, number = [], len(ends)
    while number:
        found.append(ends[number - 1])
        number = cut[number]
    return found[::-1]


def _within_limit(lengths: list[int], ends: list[int], limit: int) -> list[int]:
    """Further possible ends within long runs of one length, so that no bucket must exceed the limit."""
    found, start = [], 0
    for end in ends:
        step = max(1, limit // lengths[end - 1] ** 2)
        found += [*range(start + step, end, step), end]
        start = end
    return found
