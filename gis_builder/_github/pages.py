"""That a list comes to an end: a server may lead in a circle, or give the same page for ever."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gis_builder._decoding import MOST_NUMBER
from pairkit.errors import BadReply

_MOST_IDLE = 10  # pages in a row with nothing new: a page may hold only what moved meanwhile, or what failed
MOST_ITEMS = MOST_NUMBER
MOST_OF_THREAD = 100_000  # GitHub itself takes no more than 2,500 comments
LEAST_ITEMS = 3  # a page of up to 100, on average: what is hidden from a list leaves its pages short
_TRIED_PAGES = 100  # so many are turned before it is asked how much they bring
_GROWTH = 10_000  # items by which a list may grow while it is read, beside twice what it had


def most_of(known: int) -> int:
    """How many items a list may have that had so many; what changes while it is read counts twice."""
    return min(2 * known + _GROWTH, MOST_ITEMS)


class Pages:
    """The pages of one list, as they are turned.

    Args:
        what: The list, for messages.
        first: The cursor that it is begun with or gone on from.
        most: How many items it may have.
        least: New items a page, on average over many; for lists that are asked for in pages of a fixed size.
    """

    def __init__(
        self, what: str, first: str | None = None, *, most: int = MOST_ITEMS, least: int = 0
    ) -> None:
        self._what, self._most, self._least = what, most, least
        self._cursors: set[str | None] = {first}
        self._items: set[Hashable] = set()
        self._idle = 0

    def turn(self, items: Iterable[Hashable], cursor: str | None) -> None:
        """Note what a page brought, and where the next one is.

        Args:
            items: What tells its items from all others of the list, in whatever state.
            cursor: Of the next page.

        Raises:
            BadReply: the list does not get on.
        """
        before = len(self._items)
        self._items.update(items)
        self._idle = 0 if len(self._items) > before else self._idle + 1
        if cursor is None or cursor in self._cursors:
            raise self._stuck(f"leads back to a page that it gave ({str(cursor)[:60]!r})")
        if self._idle > _MOST_IDLE:
            raise self._stuck(f"gave {self._idle} pages without anything new")
        turned = len(self._cursors)
        if turned >= _TRIED_PAGES and len(self._items) < self._least * turned:
            raise self._stuck(f"gave no more than {len(self._items):,} items on {turned:,} pages")
        if len(self._items) > self._most:
            raise self._stuck(f"gave more than {self._most:,} items")
        self._cursors.add(cursor)

    def _stuck(self, why: str) -> BadReply:
        return BadReply(f"{self._what}: the server {why}; run the same command again to continue")
