"""What the stages of a crawl share: workers, adaptive batch sizes, endless lists, and times."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from gis_builder.crawl_progress import Advanced, CrawlListener
from gis_builder.crawling.github.client import (
    Client,
    HttpReply,
    RequestRefused,
    TooHeavy,
)
from gis_builder.crawling.github.graphql_queries import (
    INTROSPECTION,
    GraphQuery,
    Queries,
    Server,
)
from gis_builder.settings.crawl_settings import CrawlSettings
from gis_builder.store import Page, Store
from gis_builder.store.decoding import MAX_NUMBER, stamp
from pairkit.base.errors import BadReply, RemoteError

_LOG = logging.getLogger(__name__)

# 2008-01-01 in epoch seconds; imported issues may be older than their repository.
GITHUB_START = 1199145600
# Consecutive pages without new items, which occur if items move while they are listed, or fail.
_MAX_IDLE = 10
MAX_ITEMS = MAX_NUMBER
MAX_THREAD_ITEMS = 100_000  # GitHub allows 2,500 comments

ItemT = TypeVar("ItemT")
T = TypeVar("T")


def iso(seconds: int) -> str:
    """Format epoch seconds like GitHub."""
    return stamp(datetime.fromtimestamp(seconds, UTC))


def epoch(text: str) -> int:
    """Parse a time of GitHub to epoch seconds; the start of GitHub if it is empty."""
    return int(datetime.fromisoformat(text).timestamp()) if text else GITHUB_START


class Pages:
    """Detects servers whose lists of pages never end."""

    def __init__(self, name: str, first: str | None, *, limit: int = MAX_ITEMS) -> None:
        self._name = name
        self._limit = limit
        self._cursors: set[str | None] = {first}
        self._items: set[Hashable] = set()
        self._idle = 0

    def advance(self, items: Iterable[Hashable], cursor: str | None) -> None:
        """Record the items of a page and the cursor of the next one."""
        before = len(self._items)
        self._items.update(items)
        self._idle = 0 if len(self._items) > before else self._idle + 1
        if cursor is None or cursor in self._cursors:
            raise self._error(f"repeated a cursor ({str(cursor)[:60]!r})")
        if self._idle > _MAX_IDLE:
            raise self._error(f"sent {self._idle} pages without new items")
        if len(self._items) > self._limit:
            raise self._error(f"sent more than {self._limit:,} items")
        self._cursors.add(cursor)

    def _error(self, fault: str) -> BadReply:
        return BadReply(f"{self._name}: the server {fault}")


@dataclass(frozen=True)
class Crawl:
    """A worker: the client of one token, and the objects that all workers share."""

    settings: CrawlSettings
    client: Client
    store: Store
    listener: CrawlListener

    @cached_property
    def queries(self) -> Queries:
        """The queries for the server's optional fields, which are looked up once for each store."""
        key = f"server {self.settings.api_url}"
        server = self.store.meta_json(key, Server)
        if server is None:
            server = self._probe()
            self.save("", Page(notes={key: json.dumps(asdict(server))}))
        return Queries(self.settings, server)

    def _probe(self) -> Server:
        """Query the server's schema; without introspection there are no optional fields."""
        try:
            reply, _ = self.ask_sized(BatchSize(1), lambda _: INTROSPECTION)
        except RequestRefused:
            return Server()
        return Server.of_schema(reply.data)

    def save(self, repo: str, page: Page) -> None:
        """Store a page with its cost, which is charged to the repository."""
        self.client.add_usage(page, repo)
        self.store.save(page)
        _LOG.info("%s: stored %s", repo or "all repositories", page)

    def ask(
        self,
        size: BatchSize,
        items: Sequence[ItemT],
        query: Callable[[Sequence[ItemT]], GraphQuery[T]],
    ) -> tuple[HttpReply[T], int]:
        """Query the first items, as many as the server allows; returns the reply and their number."""
        return self.ask_sized(size, lambda count: query(items[:count]))

    def ask_sized(
        self, size: BatchSize, query: Callable[[int], GraphQuery[T]]
    ) -> tuple[HttpReply[T], int]:
        """Query `size.now` items, or fewer if the query is too heavy; returns the reply and their number."""
        failures = 0
        while True:
            count = size.now
            try:
                reply = self.client.ask(query(count))
            except TooHeavy as error:
                failures += 1
                if failures >= self.settings.attempts and count == 1:
                    raise RemoteError(
                        f"{error}, even for a single item; run the same command again to continue"
                    ) from error
                self.client.back_off(failures, str(error))
                size.shrink()
                continue
            is_cut = any(error.is_heavy for error in reply.errors)
            if is_cut and count > 1:
                size.shrink()
                continue
            size.grow()
            return reply, count

    def report(self, repo: str, stage: str, done: int, total: int) -> None:
        """Send the progress of a stage to the listener."""
        self.listener(Advanced(repo, stage, done, total, self.client.points_left))


class BatchSize:
    """An adaptive batch size between 1 and `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.now = limit

    def shrink(self) -> None:
        """Halve the batch."""
        self.now = max(1, self.now // 2)

    def grow(self) -> None:
        """Increase the batch by a quarter."""
        self.now = min(self._limit, self.now + max(1, self.now // 4))
