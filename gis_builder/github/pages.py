"""That a list comes to an end: a server may lead in a circle, or give the same page for ever."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pairkit.errors import BadReply

_MOST_IDLE = 10  # pages in a row with nothing new: a page may hold only what moved meanwhile, or what failed
_MOST_ITEMS = 10_000_000  # ten times the largest list of any tracker


class Pages:
    """The pages of one list, as they are turned.

    Args:
        what: The list, for messages.
        first: The cursor that it is begun with or gone on from.
        most: How many items it may have.
    """

    def __init__(self, what: str, first: str | None = None, *, most: int = _MOST_ITEMS) -> None:
        self._what, self._most = what, most
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
        if len(self._items) > self._most:
            raise self._stuck(f"gave more than {self._most:,} items")
        self._cursors.add(cursor)

    def _stuck(self, why: str) -> BadReply:
        return BadReply(f"{self._what}: the server {why}; run the same command again to go on")
