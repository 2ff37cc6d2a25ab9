"""What every strategy works with: the line to the server, the store, and somebody who watches."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from gis_builder._github.client import Client
from gis_builder._github.events import Advanced, Listener
from gis_builder._github.queries import Queries
from gis_builder._records import IssueRef
from gis_builder._settings.crawl import CrawlSettings
from gis_builder._store import Page, Store

_LOG = logging.getLogger(__name__)

AnyClient = TypeVar("AnyClient", bound=Client)


@dataclass(frozen=True, slots=True)
class Tools(Generic[AnyClient]):
    """One worker's tools, whichever way it asks."""

    settings: CrawlSettings
    client: AnyClient
    store: Store
    listener: Listener

    def save(self, repo: str, page: Page) -> None:
        """Store a page together with what was spent on it, under the repository's account."""
        self.client.book(page, repo)
        self.store.save(page)
        _LOG.info("%s: stored %s", repo or "all repositories", page)

    def tell(self, repo: str, stage: str, done: int, total: int) -> None:
        """Tell the listener how far a stage is."""
        self.listener(Advanced(repo, stage, done, total, self.client.points_left))


AnyTools: TypeAlias = Tools[Any]


class Resolver(Protocol):
    """Fetches issues by number, whichever way it asks."""

    def batch(self, *, with_thread: bool) -> int:
        """How many issues to resolve at once."""

    def resolve(self, refs: Sequence[IssueRef], *, with_thread: bool) -> Page:
        """A page with each as a thread, an issue, a pull request or an absence; it is not stored yet."""


@dataclass(frozen=True, slots=True)
class Crawl(Tools[Client]):
    """The tools of a worker that asks over GraphQL."""

    queries: Queries
