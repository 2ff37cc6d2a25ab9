"""Packed sequences: their boundaries, the buckets in which attention processes them, and a backbone's run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from aoe_train.model.device import (
    evaluation_mode,
    one_thread,
    only_callees_compiled,
    uncompiled,
    upload,
)
from aoe_train.model.packing.attention import NAME, has_flash, register
from aoe_train.model.packing.layers import FastDropout, FastLinear

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.model.packing.attention import Heads

    HeadGrid = Float[Tensor, "sequence_head position dim"]
    Lengths = Int[Tensor, " sequence"]
    TokenIds = Int[Tensor, " token"]
    TokenIndices = Int[Tensor, " token"]
    TokenVectors = Float[Tensor, "token dim"]


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
# Largest relative difference between a token's packed and single vectors that rounding explains: in float32,
# and in half precision. The latter also accepts _TIMES the difference between two attention implementations.
_TOLERANCE = 1e-3
_HALF_TOLERANCE = 5e-2
_TIMES = 3
# Tokens; longer sliding windows are not tested.
_MAX_PROBE = 1_024


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
        return shifted_indices(rows * self.length - starts, self._sizes, self._count)

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
        self.positions = shifted_indices(sizes - ends, sizes, tokens)
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


def shifted_indices(
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


def use_fast_layers(module: nn.Module) -> None:
    """Replace plain linear and dropout layers by faster ones, in place; parameters and names stay."""
    for layer in module.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = FastLinear
        elif type(layer) is nn.Dropout:
            layer.__class__ = FastDropout


def position_offset(backbone: object) -> int:
    """The first token's position: RoBERTa and related models start after the padding token's id."""
    positions: Any = getattr(
        getattr(backbone, "embeddings", None), "position_embeddings", None
    )
    padding = getattr(positions, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


@contextmanager
def _attention(config: Any, name: str) -> Iterator[None]:
    """Set the attention implementation for the duration of a call."""
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before


@only_callees_compiled
def run_packed(
    backbone: Any,
    input_ids: TokenIds,
    packed: Sequences,
    *,
    layers: bool = False,
) -> tuple[TokenVectors, ...]:
    """Hidden states of packed sequences, ascending by length: the last layer's, or (`layers`) all."""
    options: dict[str, bool] = {}
    if hasattr(backbone.config, "use_cache"):
        options["use_cache"] = False
    with _attention(backbone.config, NAME):
        output = backbone(
            input_ids=input_ids[None],
            position_ids=packed.positions[None] + position_offset(backbone),
            packed=packed,
            output_hidden_states=layers,
            **options,
        )
    states = output.hidden_states if layers else (output.last_hidden_state,)
    return tuple(state[0] for state in states)


@torch.no_grad()
def can_pack(backbone: Any) -> bool:
    """Whether packed and single vectors of random sequences agree, measured on the model itself."""
    register()
    try:
        generator = torch.Generator().manual_seed(0)
        lengths = sorted([3, 5, 5, 9, *_beyond_window(backbone.config)])
        size = backbone.config.vocab_size
        ids = [
            torch.randint(5, size, (length,), generator=generator) for length in lengths
        ]
        ids = [tokens.to(backbone.device) for tokens in ids]
        with evaluation_mode(backbone), one_thread():
            (packed,) = run_packed(
                backbone, torch.cat(ids), Sequences(lengths, backbone.device)
            )
            single = _single(backbone, ids)
            tolerance = _TOLERANCE
            if packed.dtype != torch.float32:
                tolerance = _rounding(backbone, ids, single)
    except Exception:  # noqa: BLE001 - of the backbone's code
        return False
    return _difference(packed, single) <= tolerance


def _single(backbone: Any, ids: list[TokenIds]) -> TokenVectors:
    """Token vectors, with each sequence in its own batch."""
    outputs = [backbone(input_ids=tokens[None]) for tokens in ids]
    return torch.cat([output.last_hidden_state[0] for output in outputs])


def _difference(
    vectors: TokenVectors,
    reference: TokenVectors,
) -> float:
    """The largest distance of a token's two vectors, relative to the length of its reference."""
    reference = reference.float()
    distances = (vectors.float() - reference).norm(dim=-1)
    return float((distances / reference.norm(dim=-1)).max())


def _rounding(
    backbone: Any,
    ids: list[TokenIds],
    single: TokenVectors,
) -> float:
    """The tolerance in half precision, where transformers' own implementations differ by some percent."""
    implementation = (
        "sdpa" if backbone.config._attn_implementation == "eager" else "eager"
    )
    with _attention(backbone.config, implementation):
        difference = _difference(_single(backbone, ids), single)
    return max(_HALF_TOLERANCE, _TIMES * difference)


def _beyond_window(config: object) -> list[int]:
    """A length beyond the backbone's sliding window, if it has one."""
    window = getattr(config, "sliding_window", None)
    if not window:
        return []
    positions = getattr(config, "max_position_embeddings", 0)
    length = window + 3
    return [length] if length <= min(positions, _MAX_PROBE) else []
