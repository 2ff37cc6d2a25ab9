"""Union-find: groups from pairs, for names or for many millions of numbers in arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.signedinteger[Any]]


class _Orderable(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=_Orderable)


class Groups(Generic[T]):
    """Disjoint groups, each named after its smallest member, independent of the order of joins."""

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._parent: dict[T, T] = {member: member for member in members}

    def find(self, member: T) -> T:
        """The smallest member of `member`'s group; an unknown member is its own group."""
        parent = self._parent
        root = member
        while (above := parent.get(root, root)) != root:
            root = above
        while (above := parent.get(member, root)) != root:
            parent[member] = root
            member = above
        return root

    def join(self, first: T, second: T) -> None:
        """Join two groups."""
        self._parent.setdefault(first, first)
        self._parent.setdefault(second, second)
        low, high = sorted([self.find(first), self.find(second)])
        self._parent[high] = low

    def all(self) -> dict[T, list[T]]:
        """All groups by name, with groups and members sorted."""
        groups: dict[T, list[T]] = {}
        for member in sorted(self._parent):
            groups.setdefault(self.find(member), []).append(member)
        return groups


def singletons(count: int) -> Indices:
    """Groups of one member each, in int32 if possible."""
    dtype = np.int32 if count < 1 << 31 else np.int64
    return np.arange(count, dtype=dtype)


class NumberedGroups:
    """Disjoint groups of many numbers, each named after its smallest member."""

    def __init__(self, names: Indices) -> None:
        # Of each number, a smaller member of its group; its own if it is first.
        self._parents = names.copy()

    def names(self, members: Indices | slice = slice(None)) -> Indices:
        """The group of each of these numbers."""
        while True:
            parents = self._parents[members]
            grandparents = self._parents[parents]
            if np.array_equal(parents, grandparents):
                return parents
            self._parents[members] = grandparents

    def join(self, first: Indices, second: Indices) -> None:
        """Join the groups of each pair."""
        while len(first):
            if len(first) > len(self._parents) // 8:
                self.names()  # shortens all paths at once
            first = self.names(first)
            second = self.names(second)
            is_apart = first != second
            first = first[is_apart]
            second = second[is_apart]
            low = np.minimum(first, second)
            high = np.maximum(first, second)
            # A group of several pairs keeps one parent; the next round joins it with the others.
            np.minimum.at(self._parents, high, low)


def connected(groups: Indices, first: Indices, second: Indices) -> Indices:
    """The group (smallest index) of each item after joining further pairs."""
    joined = NumberedGroups(groups)
    joined.join(first, second)
    return joined.names()


def shared(groups: Indices) -> Iterator[Indices]:
    """The sorted members of each group of two or more, in the order of their smallest members."""
    counts = np.bincount(groups, minlength=len(groups))
    members = np.flatnonzero(counts[groups] > 1)
    del counts
    by_group = np.argsort(groups[members], kind="stable")
    members = members[by_group]
    ends = np.flatnonzero(np.diff(groups[members])) + 1
    start = 0
    for end in [*ends.tolist(), len(members)]:
        if end > start:
            yield members[start:end]
        start = end
