from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pairkit.base.system.seeded import drawn, in_proportion, in_turns, keyed_hash


def test_keyed_hash() -> None:
    assert keyed_hash(0, "split", "o/n#1") == 8697922999653496411
    assert keyed_hash(0, "a", "b") != keyed_hash(0, "ab")
    assert keyed_hash(0, "a") != keyed_hash(1, "a")


SIZES = st.dictionaries(st.text(max_size=3), st.integers(0, 30), max_size=14)


@given(SIZES, st.integers(0, 40))
def test_in_turns(sizes: dict[str, int], total: int) -> None:
    dealt = in_turns(sizes, total)
    filled = {kind: size for kind, size in sizes.items() if size}
    assert set(dealt) == set(filled)
    assert sum(dealt.values()) == min(total, sum(filled.values()))
    unfilled = [places for kind, places in dealt.items() if places < filled[kind]]
    assert max(dealt.values(), default=0) <= min(unfilled, default=99) + 1


@given(SIZES, st.integers(0, 400), st.integers(0, 3))
def test_any_proportions(sizes: dict[str, int], total: int, least: int) -> None:
    dealt = in_proportion(sizes, total, least)
    assert dealt.keys() == sizes.keys()
    assert sum(dealt.values()) == min(total, sum(sizes.values()))
    assert all(0 <= dealt[kind] <= size for kind, size in sizes.items())
    if total >= least * len(sizes):
        assert all(dealt[kind] >= min(least, size) for kind, size in sizes.items())


def test_largest_remainders() -> None:
    # 10 of 100: 5.5, 3.3, 1.2 -> 5, 3, 1, and one for the largest remainder
    assert in_proportion({"a": 55, "b": 33, "c": 12}, 10) == {"a": 6, "b": 3, "c": 1}
    # two each; the other 4 by 53, 31 and 10 of 94: 2.26, 1.32, 0.43
    assert in_proportion({"a": 55, "b": 33, "c": 12}, 10, least=2) == {"a": 4, "b": 3, "c": 3}


def test_drawn() -> None:
    rows = pl.DataFrame({"kind": ["x", "x", "y", "x", "z"], "key": [5, 1, 4, 3, 2]})
    found = drawn(rows, {"x": 2, "y": 1}, stratum="kind", key="key")
    assert found["key"].to_list() == [1, 3, 4]
