"""Union-find: from ties between two things to groups, of names or, in arrays, of many millions of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt


class _Orderable(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=_Orderable)


class Groups(Generic[T]):
    """Disjoint groups; each is named after its smallest member, whatever order the ties came in."""

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._parent: dict[T, T] = {member: member for member in members}

    def add(self, member: T) -> None:
        """Make `member` a group of its own unless it is known already."""
        self._parent.setdefault(member, member)

    def find(self, member: T) -> T:
        """The smallest member of `member`'s group; a thing never seen is its own group."""
        parent = self._parent
        root = member
        while (above := parent.get(root, root)) != root:
            root = above
        while (above := parent.get(member, root)) != root:
            parent[member] = root
            member = above
        return root

    def join(self, one: T, other: T) -> bool:
        """Make one group of two; False if they were one already."""
        self.add(one)
        self.add(other)
        low, high = self.find(one), self.find(other)
        if low == high:
            return False
        if high < low:
            low, high = high, low
        self._parent[high] = low
        return True

    def all(self) -> dict[T, list[T]]:
        """Every group by its name, members and groups ascending."""
        found: dict[T, list[T]] = {}
        for member in sorted(self._parent):
            found.setdefault(self.find(member), []).append(member)
        return found


Places = npt.NDArray[np.signedinteger[Any]]


def alone(count: int) -> Places:
    """The group of each of so many things where none is tied; in 4 bytes each where that is enough."""
    return np.arange(count, dtype=np.int32 if count < 1 << 31 else np.int64)


def connected(groups: Places, one: Places, other: Places) -> Places:
    """The group of each thing, which is the least thing in it, where further pairs of things are tied."""
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
