"""Which pairs a person sees, in which order, and which twice: a function of names and the seed alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pairkit.keyed import keyed_hash

_APART = 10  # pairs between the first and the second look, at least, as far as there are so many


class Turn(NamedTuple):
    """A pair to be judged; `number` is 1 where the person has seen it before."""

    pair_id: str
    number: int


def turns_of(
    person: str,
    pair_ids: Iterable[str],
    people: Sequence[str],
    *,
    seed: int,
    each: int | None = None,
    again: float = 0.0,
) -> list[Turn]:
    """A person's turns, in an order of the person's own.

    Where a pair is judged by some people only, it goes to those whose hash with it is least (rendezvous
    hashing): one more person takes over a share of everybody's pairs and moves no others.

    Args:
        person: The name.
        pair_ids: The sample.
        people: All who review, this person among them.
        seed: The review's.
        each: How many people judge each pair; None: all of them.
        again: The share of pairs that are seen a second time, at least ten pairs later if there are so
            many.
    """
    mine = [
        pair_id for pair_id in pair_ids if each is None or person in _nearest(pair_id, people, each, seed)
    ]
    mine.sort(key=lambda pair_id: keyed_hash(seed, "turn", person, pair_id))
    number = math.floor(again * len(mine))
    twice = {*sorted(mine, key=lambda pair_id: keyed_hash(seed, "again", person, pair_id))[:number]}
    places = [(place, Turn(pair_id, 0)) for place, pair_id in enumerate(mine)]
    for place, pair_id in enumerate(mine):
        if pair_id in twice:
            later = place + _APART + keyed_hash(seed, "later", person, pair_id) % _APART
            places.append((later, Turn(pair_id, 1)))
    return [turn for _, turn in sorted(places, key=lambda one: (one[0], one[1].number, one[1].pair_id))]


def _nearest(pair_id: str, people: Sequence[str], each: int, seed: int) -> list[str]:
    return sorted(people, key=lambda name: keyed_hash(seed, "whose", pair_id, name))[:each]
