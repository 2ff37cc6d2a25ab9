"""One worker of a crawl: a token's connection, and each stage of the crawl over it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict

from msgspec.json import Decoder

from gis_builder.crawling.github import check, pool, search, sweep
from gis_builder.crawling.github.batches import BatchSize, Crawl, ask_sized
from gis_builder.crawling.github.client import Client, Refused
from gis_builder.crawling.github.fetch import Fetcher, fetch
from gis_builder.crawling.github.nodes import TypeNode
from gis_builder.crawling.github.queries import INTROSPECTION, Queries, Server
from gis_builder.crawling.github.tokens import Token
from gis_builder.crawling.github.topup import top_up
from gis_builder.progress.events import Listener
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.store import Page, RepoRow, Store, Usage
from gis_builder.store.records import IssueRef

_SERVER = Decoder(Server)


class Worker:
    """One token's worker. Each method stores what it fetches and goes on where it was stopped."""

    def __init__(
        self,
        settings: CrawlSettings,
        token: Token,
        store: Store,
        stop: threading.Event,
        listener: Listener,
    ) -> None:
        self._settings, self._store, self._listener = settings, store, listener
        self._client = Client(settings, token, stop, listener)
        self._made: Crawl | None = None

    def check(self, names: Sequence[str], *, listed: bool = True) -> None:
        """Store what each repository is."""
        check.check(self._crawl(), names, listed=listed)

    def search(self, row: RepoRow) -> None:
        """Fetch the threads that may be duplicates."""
        search.search(self._crawl(), row)

    def sweep(self, row: RepoRow) -> None:
        """Fetch every thread."""
        sweep.sweep(self._crawl(), row)

    def update(self, row: RepoRow) -> None:
        """Fetch the threads that changed since the last crawl or update."""
        sweep.update(self._crawl(), row)

    def fetch(self, refs: Sequence[IssueRef], *, with_thread: bool) -> None:
        """Fetch issues by number; their repositories were checked."""
        crawl = self._crawl()
        fetch(crawl, Fetcher(crawl), refs, with_thread=with_thread)
        if with_thread:
            for repo in sorted({ref.repo for ref in refs}):
                top_up(crawl, repo)

    def pool(self, row: RepoRow, count: int, seed: int) -> list[int]:
        """Fetch a sample of issues and return its numbers."""
        crawl = self._crawl()
        return pool.pool(crawl, Fetcher(crawl), row, count, seed)

    def take_usage(self) -> Usage:
        """What was spent and not stored yet."""
        return self._client.take_usage()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _crawl(self) -> Crawl:
        """The tools, made when first used: which fields the server has must be known for the queries."""
        if self._made is None:
            queries = Queries(self._settings, self._server())
            self._made = Crawl(self._settings, self._client, self._store, self._listener, queries)
        return self._made

    def _server(self) -> Server:
        """What the server has, asked once for a store, so that all of a crawl is of one piece."""
        key = f"server {self._settings.api_url}"
        known = self._store.meta_json(key, _SERVER)
        if known is None:
            server = _probe(self._client, self._settings.attempts)
            self._store.save(Page(usage={"": self._client.take_usage()}))
            self._store.set_meta(key, json.dumps(asdict(server)))
            return server
        return known


def _probe(client: Client, attempts: int) -> Server:
    """Look the newer fields up in the server's schema; one that hides it is taken to have none."""
    try:
        data = ask_sized(client, BatchSize(1), lambda _: INTROSPECTION, attempts)[0].data
    except Refused:
        return Server()
    issue, closed = (_fields(data.get(name)) for name in ("issue", "closed"))
    return Server(
        duplicate_of="duplicateOf" in issue,
        closed_duplicate_of="duplicateOf" in closed,
        enable_duplicate="enableDuplicate" in issue.get("stateReason", ()),
    )


def _fields(kind: TypeNode | None) -> dict[str, list[str]]:
    """A type's fields and their arguments."""
    fields = (kind.fields or ()) if kind else ()
    return {field.name: [argument.name for argument in field.args or ()] for field in fields}
