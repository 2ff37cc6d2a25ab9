from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.model.backbones.ran.windows import Layout, count_windows


@pytest.mark.parametrize(
    ("length", "windows"),
    [(0, 1), (1, 1), (256, 1), (271, 1), (272, 2), (512, 2), (527, 2), (528, 3), (16384, 64)],
)
def test_a_short_tail_joins_the_window_before_it(length: int, windows: int):
    assert count_windows(length, 256, 16) == windows


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_every_token_is_read_once_in_its_own_sequences_windows(lengths: list[int]):
    layout = Layout.of(lengths, 8, 3, torch.device("cpu"))
    assert sorted(layout.order.tolist()) == list(range(sum(lengths)))
    assert sorted(layout.rank.tolist()) == list(range(len(lengths)))
    assert layout.windows.tolist() == [count_windows(lengths[row], 8, 3) for row in layout.rank.tolist()]
    owner = [row for row, length in enumerate(lengths) for _ in range(length)]
    begin = [sum(lengths[:row]) for row in range(len(lengths))]
    read = [begin[row] for row in layout.rank.tolist()]
    for number, (step, order) in enumerate(zip(layout.steps, layout.order.split(layout.sizes), strict=True)):
        assert step.rows == sum(count_windows(length, 8, 3) > number for length in lengths)
        assert step.width <= 1 + 8 + 2
        sizes = [0] * step.rows
        for token, place in zip(order.tolist(), step.place[step.rows :].tolist(), strict=True):
            row, slot = divmod(place, step.width)
            assert owner[token] == layout.rank[row]
            assert token == read[row]
            read[row] += 1
            sizes[row] += 1
            assert slot == sizes[row]
        assert step.place[: step.rows].tolist() == [row * step.width for row in range(step.rows)]
        full = torch.arange(step.width) <= torch.tensor(sizes)[:, None]
        shown = full if step.visible is None else step.visible[:, 0, 0]
        assert torch.equal(shown, full)


def test_the_grid_gives_back_what_was_put_in():
    step = Layout.of([3, 5], 8, 3, torch.device("cpu")).steps[0]
    slots = torch.randn(2 + 8, 4)
    assert torch.equal(step.packed(step.grid(slots), tokens=10), slots)
    assert torch.equal(step.packed(step.grid(slots[2:]), tokens=8), slots[2:])
    assert step.grid(slots).shape == (2, 6, 4)
