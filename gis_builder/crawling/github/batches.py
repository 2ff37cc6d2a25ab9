"""The tools of a worker, and its batch sizes: halved if a query is too large, then increased again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from gis_builder.crawling.github.client import Client, HttpReply, TooHeavy
from gis_builder.crawling.github.queries import GraphQuery, Queries
from gis_builder.progress import Advanced, CrawlListener
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.store import Page, Store
from gis_builder.store.decoding import MOST_NUMBER
from pairkit.app.errors import BadReply, RemoteError

_MOST_PARTS = 16
# Parts are never equally full: aim below the limit, so that few of them have to be cut again.
_FILL = 0.7
# An update looks back a little further than it must: what changed within the same second is not lost.
_OVERLAP_S = 60
_GITHUB_BEGAN = 1199145600  # 2008-01-01; imported issues may be older than their repository


@dataclass(frozen=True, slots=True)
class Window:
    """Creation times from `start` to `end`, epoch seconds, both included; None leaves that side open."""

    start: int | None = None
    end: int | None = None

    @property
    def words(self) -> str:
        """The window as a search qualifier; empty where both sides are open."""
        if self.start is None and self.end is None:
            return ""
        if self.start is None:
            return f"created:<={iso(self.end or 0)}"
        if self.end is None:
            return f"created:>={iso(self.start)}"
        return f"created:{iso(self.start)}..{iso(self.end)}"


def cut(window: Window, count: int, limit: int, first: int, last: int) -> tuple[Window, ...]:
    """Cut a window that holds `count` results into adjoining ones; none where it is one second long."""
    start = window.start if window.start is not None else min(first, _begin_before(window.end, first))
    end = window.end if window.end is not None else max(last, start + 1)
    if end <= start:
        return ()
    parts = min(_MOST_PARTS, end - start + 1, max(2, round(count / (limit * _FILL)) + 1))
    edges = [start + (end - start + 1) * part // parts for part in range(1, parts)]
    starts = [window.start, *edges]
    ends = [*(edge - 1 for edge in edges), window.end]
    return tuple(Window(a, b) for a, b in zip(starts, ends, strict=True))


def _begin_before(end: int | None, first: int) -> int:
    return first if end is None or end > first else min(_GITHUB_BEGAN, end)


def iso(seconds: int) -> str:
    """Epoch seconds as GitHub writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(text: str) -> int:
    """Epoch seconds of a time as GitHub writes it; the start of GitHub if it is empty."""
    return int(datetime.fromisoformat(text).timestamp()) if text else _GITHUB_BEGAN


def look_back(as_of: str) -> str:
    """The time that an update asks from, where the crawl before it was of `as_of`."""
    return iso(epoch(as_of) - _OVERLAP_S)


_MOST_IDLE = 10  # pages in a row with nothing new: a page may hold only what moved meanwhile, or what failed
MOST_ITEMS = MOST_NUMBER
MOST_OF_THREAD = 100_000  # GitHub itself takes no more than 2,500 comments
_GROWTH = 10_000  # items by which a list may grow while it is read, beside twice what it had


def most_of(known: int) -> int:
    """Maximum length of a list, from its first count; items that change while it is read count twice."""
    return min(2 * known + _GROWTH, MOST_ITEMS)


class Pages:
    """Progress through the pages of one list."""

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


_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Crawl:
    """The tools that all stages of one worker share."""

    settings: CrawlSettings
    client: Client
    store: Store
    listener: CrawlListener
    queries: Queries

    def save(self, repo: str, page: Page) -> None:
        """Store a page together with what was spent on it, under the repository's account."""
        self.client.book(page, repo)
        self.store.save(page)
        _LOG.info("%s: stored %s", repo or "all repositories", page)

    def tell(self, repo: str, stage: str, done: int, total: int) -> None:
        """Report the progress of a stage to the listener."""
        self.listener(Advanced(repo, stage, done, total, self.client.points_left))


class BatchSize:
    """The present size of a batch, between 1 and `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.now = limit

    def shrink(self) -> None:
        """Halve the batch."""
        self.now = max(1, self.now // 2)

    def grow(self) -> None:
        """Increase the batch by a quarter."""
        self.now = min(self._limit, self.now + max(1, self.now // 4))


def ask_sized(
    client: Client, size: BatchSize, build: Callable[[int], GraphQuery[T]], attempts: int
) -> tuple[HttpReply[T], int]:
    """Ask for `size.now` things, or fewer until the server manages; a reply cut at size 1 is returned."""
    failures = 0
    while True:
        asked = size.now
        try:
            reply = client.ask(build(asked))
        except TooHeavy as error:
            failures += 1
            if failures >= attempts and asked == 1:
                raise RemoteError(
                    f"{error}, even for one at a time; run the same command again to continue"
                ) from error
            client.back_off(failures, str(error))
            size.shrink()
            continue
        if reply.is_cut and asked > 1:
            size.shrink()
            continue
        size.grow()
        return reply, asked
