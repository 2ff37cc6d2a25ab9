"""The windows of packed sequences, which a Recurrent Attention Network reads one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from aoe_train.model.device import upload
from aoe_train.model.tokenised import ranges

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

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
        tokens = np.array(lengths)
        begins = tokens.cumsum() - tokens
        rank = np.argsort(-tokens, kind="stable")
        tokens = tokens[rank]
        begins = begins[rank]

        # Each text has at least one window; a tail below `min_window_size` is part of the window before it.
        has_tail = tokens % window_size >= min_window_size
        windows = np.maximum(tokens // window_size + has_tail, 1)

        steps = []
        order = []
        for number in range(int(windows.max())):
            start = number * window_size
            rows = int((windows > number).sum())
            is_last = windows[:rows] == number + 1
            sizes = np.where(is_last, tokens[:rows] - start, window_size)
            order.append(ranges(begins[:rows] + start, sizes))
            # Each row begins with its memory.
            width = 1 + int(sizes.max())
            row_starts = np.arange(rows) * width
            slots = np.concatenate([row_starts, ranges(row_starts + 1, sizes)])
            visible = _filled(sizes + 1, device)
            steps.append(Step(rows, width, upload(slots, device), visible))
        return cls(
            steps=steps,
            sizes=[len(source) for source in order],
            order=upload(np.concatenate(order), device),
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


def _filled(counts: Int[np.ndarray, " row"], device: torch.device) -> IsFilled:
    """A mask of the first `counts` slots of each row; None if no row has padding."""
    if (counts == counts[0]).all():
        return None
    is_filled = np.arange(counts.max()) < counts[:, None]
    return upload(is_filled[:, None, None, :], device)
