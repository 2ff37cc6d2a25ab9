from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pairkit.keyed import keyed_hash, keyed_unit


def test_a_choice_is_the_same_for_ever() -> None:
    assert keyed_hash(0, "split", "o/n#1") == 8697922999653496411
    assert keyed_hash(0, "a", "b") != keyed_hash(0, "ab")
    assert keyed_hash(0, "a") != keyed_hash(1, "a")


@given(st.integers(), st.text())
def test_units_are_in_range(seed: int, about: str) -> None:
    assert 0 <= keyed_unit(seed, about.encode("utf-8", "replace")) < 1


def test_units_are_spread_evenly() -> None:
    low = sum(keyed_unit(3, n) < 0.25 for n in range(4000))
    assert 900 < low < 1100
