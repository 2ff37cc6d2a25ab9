"""The parts that `test_split` does not see: filling by arrays beside filling one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.split import _filling


@given(st.lists(st.integers(1, 9), max_size=40), st.integers(0, 60))
def test_each_thing_that_still_fits_is_taken(weights: list[int], room: int) -> None:
    expected, left = [], room
    for weight in weights:
        expected.append(weight <= left)
        left -= weight if weight <= left else 0
    assert _filling(np.array(weights, np.int64), room).tolist() == expected
