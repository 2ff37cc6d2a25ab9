from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pairkit.groups import Groups

TIES = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=25)


def test_a_group_is_named_after_its_smallest_member() -> None:
    groups = Groups([5, 4, 3, 9])
    assert groups.join(5, 4)
    assert groups.join(4, 3)
    assert not groups.join(3, 5)
    assert groups.find(5) == 3
    assert groups.find(77) == 77
    assert groups.all() == {3: [3, 4, 5], 9: [9]}


@given(TIES)
def test_groups_are_the_connected_parts(ties: list[tuple[int, int]]) -> None:
    groups: Groups[int] = Groups(range(16))
    near = {n: {n} for n in range(16)}
    for one, other in ties:
        groups.join(one, other)
        merged = near[one] | near[other]
        for member in merged:
            near[member] = merged
    for one in range(16):
        assert groups.find(one) == min(near[one])
        assert all(groups.together(one, other) == (other in near[one]) for other in range(16))


@given(TIES, st.randoms())
def test_the_order_of_ties_does_not_matter(ties: list[tuple[int, int]], random: object) -> None:
    one, other = Groups(range(16)), Groups(range(16))
    for tie in ties:
        one.join(*tie)
    for tie in reversed(ties):
        other.join(*tie[::-1])
    assert one.all() == other.all()
