"""Union-find: from ties between two things to groups of things."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar


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

    def together(self, one: T, other: T) -> bool:
        """Whether both stand in one group."""
        return self.find(one) == self.find(other)

    def all(self) -> dict[T, list[T]]:
        """Every group by its name, members and groups ascending."""
        found: dict[T, list[T]] = {}
        for member in sorted(self._parent):
            found.setdefault(self.find(member), []).append(member)
        return found
