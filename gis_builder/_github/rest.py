"""The route for servers without GraphQL: REST.

REST gives a hundred issues, comments or events a request and nests none of them, so it can't fetch the
threads of a hundred chosen issues at once. What it does well is to read whole lists; all else follows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from gis_builder._github import pool, rest_check, rest_threads
from gis_builder._github.events import Listener
from gis_builder._github.fetch import fetch, fetch_threads
from gis_builder._github.rest_client import RestClient, RestCrawl
from gis_builder._github.rest_fetch import RestResolver
from gis_builder._github.rest_lists import Lists, counts_kind
from gis_builder._github.tokens import Token
from gis_builder._github.windows import look_back
from gis_builder._records import IssueRef
from gis_builder._settings.crawl import CrawlSettings
from gis_builder._store import Page, RepoOutcome, RepoRow, Store, Task, Usage

_SWEEP, _UPDATE = "rest sweep", "rest update"
_WHOLE = "whole"  # the task that is done when all threads are


class RestRoute:
    """One worker's way to a server over REST. A request counts as a point.

    Marks as a duplicate are fetched, but REST does not say of which issue; comments do, where there are any.
    """

    def __init__(
        self,
        settings: CrawlSettings,
        token: Token,
        store: Store,
        stop: threading.Event,
        listener: Listener,
    ) -> None:
        self._client = RestClient(settings, token, stop, listener)
        self._crawl = RestCrawl(settings, self._client, store, listener)
        self._resolver = RestResolver(self._crawl)

    def check(self, names: Sequence[str], *, listed: bool = True) -> None:
        """Store what each repository is: three requests for one that is there."""
        rest_check.check(self._crawl, names, listed=listed)

    def search(self, row: RepoRow) -> None:
        """Sweep the repository, and say so once in the store's warnings.

        A search over REST finds numbers, whose threads would then cost two requests and more each; a sweep
        has them for less.
        """
        if not self._is_swept(row):
            words = "a search over REST is a sweep: every issue was fetched, not only likely duplicates"
            self._crawl.save(row.full_name, Page(warnings=[(row.full_name, words)]))
        self.sweep(row)

    def sweep(self, row: RepoRow) -> None:
        """Fetch every issue with its thread, from three lists; pull requests by number and title only."""
        if self._is_swept(row):
            return
        Lists(self._crawl, row, _SWEEP, since=None).read()
        rest_threads.complete(self._crawl, row.full_name, _SWEEP, may_hold_deleted=False)
        whole = Task(row.full_name, _SWEEP, _WHOLE, done=True)
        self._crawl.save(row.full_name, Page(repos=self._counted(row), tasks=[whole]))

    def update(self, row: RepoRow) -> None:
        """Fetch every issue that changed since the crawl or the last update began, and what is new in it."""
        if self._crawl.store.tasks(row.full_name, _SWEEP):
            self.sweep(row)  # what a stopped sweep began can't be told from what changed
        task = self._open_update(row)
        Lists(self._crawl, row, _UPDATE, since=task.state["since"]).read()
        rest_threads.complete(self._crawl, row.full_name, _UPDATE, may_hold_deleted=True)
        fetch_threads(self._crawl, self._resolver, row.full_name)
        count = self._count(row) if self._is_swept(row) else row.issue_count
        fresh = replace(row, **task.state["row"], issue_count=count)
        dropped = [(row.full_name, kind) for kind in (_UPDATE, counts_kind(_UPDATE))]
        self._crawl.save(row.full_name, Page(repos=[fresh], dropped=dropped))

    def fetch(self, refs: Sequence[IssueRef], *, with_thread: bool) -> None:
        """Fetch issues by number, one request each and at least one more for a thread."""
        fetch(self._crawl, self._resolver, refs, with_thread=with_thread)

    def pool(self, row: RepoRow, count: int, seed: int) -> list[int]:
        """Fetch a sample of issues, the same as over GraphQL, and return its numbers; free after a sweep."""
        is_swept = self._is_swept(row)
        return pool.pool(self._crawl, self._resolver, row, count, seed, is_swept=is_swept)

    def take_usage(self) -> Usage:
        """What was spent and not stored yet."""
        return self._client.take_usage()

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _is_swept(self, row: RepoRow) -> bool:
        tasks = self._crawl.store.tasks(row.full_name, _SWEEP)
        return any(task.key == _WHOLE and task.done for task in tasks)

    def _count(self, row: RepoRow) -> int:
        """How many issues are stored, which after a sweep is how many there are."""
        return self._crawl.store.count_threads(row.full_name)

    def _counted(self, row: RepoRow) -> list[RepoRow]:
        """The rows of a swept repository, one for each name of it, with its true number of issues."""
        count = self._count(row)
        rows = [found for found in self._crawl.store.all_repos() if found.full_name == row.full_name]
        counted = [replace(found, issue_count=count) for found in rows]
        if count:
            return counted
        words = "it has pull requests but no issues"
        return [replace(found, outcome=RepoOutcome.EMPTY, detail=words) for found in counted]

    def _open_update(self, row: RepoRow) -> Task:
        """The update that was stopped, or a new one: where it begins and what holds once it is done."""
        tasks = [task for task in self._crawl.store.tasks(row.full_name, _UPDATE) if task.key == ""]
        if tasks:
            return tasks[0]
        now = rest_check.look_up(self._crawl, row.full_name)
        after = {"as_of": now.as_of, "max_number": now.max_number, "newest_at": now.newest_at}
        since = look_back(row.as_of)
        task = Task(row.full_name, _UPDATE, state={"since": since, "row": after})
        self._crawl.save(row.full_name, Page(tasks=[task]))
        return task
