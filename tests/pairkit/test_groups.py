from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.similarity.groups import Groups, connected, shared, singletons

TIES = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=25)


def test_group_names() -> None:
    groups = Groups([5, 4, 3, 9])
    assert groups.join(5, 4)
    assert groups.join(4, 3)
    assert not groups.join(3, 5)
    assert groups.find(5) == 3
    assert groups.find(77) == 77
    assert groups.all() == {3: [3, 4, 5], 9: [9]}


@settings(max_examples=40)
@given(TIES)
def test_groups_are_connected_components(ties: list[tuple[int, int]]) -> None:
    groups: Groups[int] = Groups(range(16))
    near = {n: {n} for n in range(16)}
    for one, other in ties:
        groups.join(one, other)
        merged = near[one] | near[other]
        for member in merged:
            near[member] = merged
    for one in range(16):
        assert groups.find(one) == min(near[one])
        assert all((groups.find(one) == groups.find(other)) == (other in near[one]) for other in range(16))


PAIRS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30)


@settings(max_examples=40)
@given(PAIRS, PAIRS)
def test_connected_equals_union_find(some: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    expected, groups = Groups(range(20)), singletons(20)
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
