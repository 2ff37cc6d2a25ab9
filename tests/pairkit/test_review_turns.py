"""Who sees which pair, and when: from names and the seed alone."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit._review.turns import Turn, turns_of

PAIRS = [f"pair {number}" for number in range(200)]
NAMES = st.lists(st.sampled_from(["ann", "bob", "cid", "dora"]), min_size=1, max_size=4, unique=True)


@settings(max_examples=20)
@given(NAMES, st.integers(1, 5), st.integers(0, 3))
def test_each_pair_goes_to_as_many_people_as_it_should(people: list[str], each: int, seed: int) -> None:
    seen = Counter(
        turn.pair_id for name in people for turn in turns_of(name, PAIRS, people, seed=seed, each=each)
    )
    assert set(seen.values()) == {min(each, len(people))}
    assert seen.keys() == {*PAIRS}


def test_a_person_more_moves_no_pair_between_the_others() -> None:
    two = {name: {*turns_of(name, PAIRS, ["ann", "bob"], seed=1, each=1)} for name in ("ann", "bob")}
    three = {
        name: {*turns_of(name, PAIRS, ["ann", "bob", "cid"], seed=1, each=1)}
        for name in ("ann", "bob", "cid")
    }
    assert three["ann"] < two["ann"]
    assert three["bob"] < two["bob"]
    assert 40 < len(three["cid"]) < 95


def test_everybody_has_an_order_of_their_own_that_stays() -> None:
    people = ["ann", "bob"]
    orders = [turns_of(name, PAIRS, people, seed=1) for name in people]
    assert {*orders[0]} == {*orders[1]}
    assert orders[0] != orders[1]
    assert orders[0] == turns_of("ann", PAIRS[::-1], people[::-1], seed=1)
    assert orders[0] != turns_of("ann", PAIRS, people, seed=2)


@given(st.integers(0, 40), st.floats(0, 1))
def test_repeats_come_later_and_once(number: int, share: float) -> None:
    turns = turns_of("ann", PAIRS[:number], ["ann"], seed=3, again=share)
    first = [turn for turn in turns if turn.number == 0]
    again = [turn for turn in turns if turn.number == 1]
    assert len(first) == number
    assert len({*turns}) == len(turns)
    assert len(again) == math.floor(share * number)
    for turn in again:
        apart = turns.index(turn) - turns.index(Turn(turn.pair_id, 0))
        assert apart >= 10 or all(after.number for after in turns[turns.index(turn) :])
