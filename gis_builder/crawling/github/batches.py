"""The tools of a worker, and how much it asks for at once: halved where that is too heavy, then grown."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gis_builder.crawling.github.client import Client, Reply, TooHeavy
from gis_builder.crawling.github.queries import Queries, Query
from gis_builder.progress.events import Advanced, Listener
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.store import Page, Store
from pairkit.app.errors import RemoteError

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Crawl:
    """What each stage of one worker works with."""

    settings: CrawlSettings
    client: Client
    store: Store
    listener: Listener
    queries: Queries

    def save(self, repo: str, page: Page) -> None:
        """Store a page together with what was spent on it, under the repository's account."""
        self.client.book(page, repo)
        self.store.save(page)
        _LOG.info("%s: stored %s", repo or "all repositories", page)

    def tell(self, repo: str, stage: str, done: int, total: int) -> None:
        """Tell the listener how far a stage is."""
        self.listener(Advanced(repo, stage, done, total, self.client.points_left))


class BatchSize:
    """The present size of a batch, between 1 and `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.now = limit

    def shrink(self) -> None:
        """Ask for half as much."""
        self.now = max(1, self.now // 2)

    def grow(self) -> None:
        """Ask for a quarter more."""
        self.now = min(self._limit, self.now + max(1, self.now // 4))


def ask_sized(
    client: Client, size: BatchSize, build: Callable[[int], Query[T]], attempts: int
) -> tuple[Reply[T], int]:
    """Ask for `size.now` things, or fewer until the server manages.

    Returns the reply and how many things were asked for. A reply that was cut for its weight is returned only
    at size 1, where less can't be asked for.
    """
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
