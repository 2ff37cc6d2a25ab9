from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairkit.connected import alone, connected, shared
from pairkit.groups import Groups

PAIRS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30)


@given(PAIRS, PAIRS)
def test_groups_are_those_of_union_find(some: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    expected, groups = Groups(range(20)), alone(20)
    for pairs in (some, more):
        for one, other in pairs:
            expected.join(one, other)
        before = groups.copy()
        ends = np.array(pairs, np.int64).reshape(-1, 2)
        found = connected(groups, ends[:, 0], ends[:, 1])
        assert np.array_equal(groups, before)
        groups = found
    assert groups.tolist() == [expected.find(place) for place in range(20)]
    assert [members.tolist() for members in shared(groups)] == [
        members for members in expected.all().values() if len(members) > 1
    ]


def test_a_long_chain() -> None:
    places = np.random.default_rng(1).permutation(100_000)
    assert not connected(alone(len(places)), places[1:], places[:-1]).any()


def test_few_things_take_four_bytes_each() -> None:
    assert alone(5).itemsize == 4
    assert [*shared(alone(0))] == []
