"""Union-find by arrays alone: from ties between many millions of numbered things to their groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.signedinteger[Any]]


def alone(count: int) -> Places:
    """The group of each of so many things where none is tied; in 4 bytes each where that is enough."""
    return np.arange(count, dtype=np.int32 if count < 1 << 31 else np.int64)


def connected(groups: Places, one: Places, other: Places) -> Places:
    """The group of each thing, which is the least thing in it, where further pairs of things are tied.

    Args:
        groups: The group of each before.
        one: The first of each pair.
        other: The second.
    """
    groups = groups.copy()
    while True:
        low, high = np.minimum(groups[one], groups[other]), np.maximum(groups[one], groups[other])
        apart = low != high
        if not apart.any():
            return groups
        one, other = one[apart], other[apart]
        np.minimum.at(groups, high[apart], low[apart])
        while not np.array_equal(further := groups[groups], groups):
            groups = further


def shared(groups: Places) -> Iterator[Places]:
    """The things of each group of two or more, ascending; groups by their least thing."""
    counts = np.bincount(groups, minlength=len(groups))
    members = np.flatnonzero(counts[groups] > 1)
    del counts
    members = members[np.argsort(groups[members], kind="stable")]
    ends = np.append(np.flatnonzero(np.diff(groups[members])) + 1, len(members))
    start = 0
    for end in ends.tolist() if len(members) else ():
        yield members[start:end]
        start = end
