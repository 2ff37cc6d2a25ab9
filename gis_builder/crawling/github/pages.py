"""That a list comes to an end: a server may lead in a circle, or give the same page for ever."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gis_builder.store.decoding import MOST_NUMBER
from pairkit.app.errors import BadReply

_MOST_IDLE = 10  # pages in a row with nothing new: a page may hold only what moved meanwhile, or what failed
MOST_ITEMS = MOST_NUMBER
MOST_OF_THREAD = 100_000  # GitHub itself takes no more than 2,500 comments
_GROWTH = 10_000  # items by which a list may grow while it is read, beside twice what it had


def most_of(known: int) -> int:
    """How many items a list may have that had so many; what changes while it is read counts twice."""
    return min(2 * known + _GROWTH, MOST_ITEMS)


class Pages:
    """The pages of one list, as they are turned."""

    def __init__(self, what: str, first: str | None = None, *, most: int = MOST_ITEMS) -> None:
        self._what, self._most = what, most
        self._cursors: set[str | None] = {first}
        self._items: set[Hashable] = set()
        self._idle = 0

    def turn(self, items: Iterable[Hashable], cursor: str | None) -> None:
        """Note what a page brought, and where the next one is."""
        before = len(self._items)
        self._items.update(items)
        self._idle = 0 if len(self._items) > before else self._idle + 1
        if cursor is None or cursor in self._cursors:
            raise self._stuck(f"leads back to a page that it gave ({str(cursor)[:60]!r})")
        if self._idle > _MOST_IDLE:
            raise self._stuck(f"gave {self._idle} pages without anything new")
        if len(self._items) > self._most:
            raise self._stuck(f"gave more than {self._most:,} items")
        self._cursors.add(cursor)

    def _stuck(self, why: str) -> BadReply:
        return BadReply(f"{self._what}: the server {why}; run the same command again to continue")
