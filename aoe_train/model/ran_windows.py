"""The windows of packed sequences, which a Recurrent Attention Network reads one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn.utils.rnn import pad_sequence

from aoe_train.model.device import upload

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    Rows = Int[Tensor, " row"]
    OfText = Int[Tensor, " text"]
    TokenIndices = Int[Tensor, " token"]
    SlotIndices = Int[Tensor, " slot"]
    Slots = Float[Tensor, "slot dim"]
    Grid = Float[Tensor, "row slot dim"]
    IsFilled = Bool[Tensor, "row 1 1 slot"] | None


@dataclass(frozen=True)
class Step:
    """The t-th window of each sequence that has one, with a slot for the memory at the start."""

    rows: int
    width: int
    index: SlotIndices
    visible: IsFilled

    def grid(self, packed: Slots) -> Grid:
        """Arrange packed rows as a grid: memories and tokens, or only tokens."""
        slots = self._last(len(packed))
        empty = packed.new_zeros(self.rows * self.width, packed.shape[1])
        filled = empty.index_copy(0, slots, packed)
        return filled.view(self.rows, self.width, -1)

    def packed(
        self,
        grid: Grid,
        *,
        tokens: int,
    ) -> Slots:
        """Select the last `tokens` of `index` from the grid."""
        return grid.flatten(0, 1).index_select(0, self._last(tokens))

    def _last(self, count: int) -> SlotIndices:
        return self.index[len(self.index) - count :]


@dataclass(frozen=True)
class WindowLayout:
    """All steps of a batch. The model orders tokens by step, so that each step is a slice."""

    steps: list[Step]
    sizes: list[int]
    order: TokenIndices
    rank: OfText
    windows: OfText
    seen: Bool[Tensor, "text 1 1 window"] | None

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        window_size: int,
        min_window_size: int,
        device: torch.device,
    ) -> WindowLayout:
        """Plan on the host, then copy to the device."""
        tokens = torch.tensor(lengths, dtype=torch.long)
        begins = tokens.cumsum(0) - tokens
        rank = tokens.argsort(descending=True, stable=True)
        tokens = tokens[rank]
        begins = begins[rank]

        # Each text has at least one window; a tail below `min_window_size` is part of the window before it.
        has_tail = tokens % window_size >= min_window_size
        windows = (tokens // window_size + has_tail).clamp_min(1)

        steps = []
        order = []
        for number in range(int(windows.max())):
            start = number * window_size
            rows = int((windows > number).sum())
            is_last = windows[:rows] == number + 1
            sizes = torch.where(is_last, tokens[:rows] - start, window_size)
            steps.append(_step(sizes, device))
            order.append(_ranges(begins[:rows] + start, sizes))
        return cls(
            steps=steps,
            sizes=[len(source) for source in order],
            order=upload(torch.cat(order), device),
            rank=upload(rank, device),
            windows=upload(windows, device),
            seen=_filled(windows, device),
        )

    def by_row(
        self, cells: Float[Tensor, "cell dim"]
    ) -> Float[Tensor, "text window dim"]:
        """Arrange the steps' cells by row, padded with zeros."""
        by_step = cells.split([step.rows for step in self.steps])  # type: ignore[no-untyped-call]
        return pad_sequence(by_step)


def _step(sizes: Rows, device: torch.device) -> Step:
    """The windows of these sizes; each row begins with its memory."""
    rows = len(sizes)
    width = 1 + int(sizes.max())
    row_starts = torch.arange(rows) * width
    slots = torch.cat([row_starts, _ranges(row_starts + 1, sizes)])
    return Step(rows, width, upload(slots, device), _filled(sizes + 1, device))


def _ranges(begins: Rows, sizes: Rows) -> TokenIndices:
    """The numbers from `begins[i]` to `begins[i] + sizes[i] - 1`, for each i in turn."""
    shift = begins - (sizes.cumsum(0) - sizes)
    shifts = shift.repeat_interleave(sizes)
    return shifts + torch.arange(len(shifts))


def _filled(
    counts: Rows,
    device: torch.device,
) -> IsFilled:
    """A mask of the first `counts` slots of each row; None if no row has padding."""
    if bool((counts == counts[0]).all()):
        return None
    is_filled = torch.arange(int(counts.max())) < counts[:, None]
    return upload(is_filled[:, None, None, :], device)
