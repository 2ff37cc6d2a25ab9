"""The strategy `search`: find likely duplicates by phrases, then fetch only these.

One query contains several searches and returns only numbers, so it costs one point. Issues that several
searches find are fetched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil

from gis_builder.crawling.github.client import (
    GITHUB_START,
    BatchSize,
    Crawl,
    Pages,
    RequestRefused,
    epoch,
    iso,
)
from gis_builder.crawling.github.fetch import failure_of, fetch_threads, fetch_top_ups
from gis_builder.crawling.github.nodes import SearchPage
from gis_builder.crawling.github.repositories import sweep
from gis_builder.settings import CrawlSettings
from gis_builder.store import CrawlTask, IssueRef, Page, RepoRow
from pairkit.base.errors import BadReply, RemoteError

_KIND = "search"
_PROBE = "reason:duplicate"  # not supported by every server
_MAX_PARTS = 16
_FILL = 0.7  # target share of the limit: parts differ in size, and few should exceed it


def search(crawl: Crawl, row: RepoRow) -> None:
    """Find and fetch likely duplicates; continues where it was stopped."""
    if not crawl.store.tasks(row.full_name, _KIND):
        is_swept = crawl.store.tasks(row.full_name, "sweep")
        if is_swept or is_cheaper_swept(row, crawl.settings):
            sweep(crawl, row)
            return
        queries = search_queries(row, crawl.settings)
        tasks = [_task(row, query, Window()) for query in queries]
        crawl.save(row.full_name, Page(tasks=tasks))
    _Discovery(crawl, row).run()
    fetch_threads(crawl, row.full_name)
    fetch_top_ups(crawl, row.full_name)


def is_cheaper_swept(row: RepoRow, settings: CrawlSettings) -> bool:
    """Whether a sweep takes no more queries than the searches."""
    pages = ceil(row.issue_count / settings.thread_batch)
    searches = ceil(len(search_queries(row, settings)) / settings.search_batch)
    return settings.all_if_small and pages <= searches


def search_queries(row: RepoRow, settings: CrawlSettings) -> list[str]:
    """The searches of a repository: closed issues by reason, label, title, comments and body."""
    scope = f"repo:{row.full_name} is:issue is:closed"
    return [
        f"{scope} {_PROBE}",
        *(f'{scope} label:"{label}"' for label in row.labels),
        *(f'{scope} "{word}" in:title' for word in settings.title_words),
        *(f'{scope} "{phrase}" in:comments' for phrase in settings.phrases),
        *(f'{scope} "{phrase}" in:body' for phrase in settings.body_phrases),
    ]


@dataclass(frozen=True)
class Window:
    """Creation times from `start` to `end` inclusive, in epoch seconds; None is unbounded."""

    start: int | None = None
    end: int | None = None

    @property
    def qualifier(self) -> str:
        """The window in GitHub's search syntax; empty if unbounded."""
        if self.start is None:
            return "" if self.end is None else f"created:<={iso(self.end)}"
        if self.end is None:
            return f"created:>={iso(self.start)}"
        return f"created:{iso(self.start)}..{iso(self.end)}"


def split_window(
    window: Window, total: int, limit: int, first: int, last: int
) -> tuple[Window, ...]:
    """Split a window with `total` results into adjacent ones; returns none if it is only a second.

    The issues were created from `first` to `last`, except for imported ones, which may be older.
    """
    start = window.start
    end = window.end
    if start is None:
        start = first
        if end is not None and end <= first:
            start = min(GITHUB_START, end)
    if end is None:
        end = max(last, start + 1)
    if end <= start:
        return ()
    seconds = end - start + 1
    needed = round(total / (limit * _FILL)) + 1
    parts = min(_MAX_PARTS, seconds, max(2, needed))
    later_starts = [start + seconds * part // parts for part in range(1, parts)]
    starts = [window.start, *later_starts]
    ends = [*(later - 1 for later in later_starts), window.end]
    return tuple(map(Window, starts, ends))


def _task(row: RepoRow, query: str, window: Window) -> CrawlTask:
    state = {"words": query, "start": window.start, "end": window.end, "got": 0}
    return CrawlTask(
        row.full_name, _KIND, f"{query} {window.qualifier}".strip(), state=state
    )


class _Discovery:
    """Runs the open searches of a repository, and queues the issues that they find."""

    def __init__(self, crawl: Crawl, row: RepoRow) -> None:
        self._crawl = crawl
        self._row = row
        self._size = BatchSize(crawl.settings.search_batch)
        self._pages: dict[str, Pages] = {}  # by search

    def run(self) -> None:
        """Search until nothing is left; continues where it was stopped."""
        repo = self._row.full_name
        store = self._crawl.store
        known = store.tasks(repo, _KIND)
        while tasks := [task for task in known if not task.done]:
            probes = [task for task in tasks if _PROBE in task.key and not task.cursor]
            if probes:
                self._probe(probes[0])
            else:
                self._search(tasks, self._size)
            known = store.tasks(repo, _KIND)
            done = sum(task.done for task in known)
            self._crawl.report(repo, "search", done, len(known))

    def _probe(self, task: CrawlTask) -> None:
        """Send a search that the server may reject in a query of its own: a rejection fails the whole query."""
        try:
            self._search([task], BatchSize(1))
        except RequestRefused:
            self._crawl.save(task.repo, Page(tasks=[replace(task, done=True)]))

    def _search(self, tasks: Sequence[CrawlTask], size: BatchSize) -> None:
        """Run as many searches as one query has, and store their results; repeated if all fail."""
        page = Page()
        for attempt in count(1):
            reply, sent = self._crawl.ask(size, tasks, self._crawl.queries.searches)
            for index, task in enumerate(tasks[:sent]):
                alias = f"s{index}"
                failure = failure_of(reply.errors, alias)
                if not failure:
                    self._add_results(page, task, reply.data.get(alias))
            if page.tasks:
                break
            if attempt == self._crawl.settings.attempts:
                raise RemoteError(
                    f"every search failed ({failure}); run the same command again to continue"
                )
            size.shrink()
            self._crawl.back_off(attempt, "every search failed")
        self._crawl.save(self._row.full_name, page)

    def _add_results(
        self, page: Page, task: CrawlTask, results: SearchPage | None
    ) -> None:
        """Queue the issues of a page of results, and the next page."""
        if results is None:
            raise BadReply(f"search {task.key!r}: missing from the reply")
        repo = self._row.full_name
        total = results.issue_count
        if task.cursor is None and total > self._crawl.settings.search_limit:
            parts = self._split(page, task, total)
            if parts is not None:
                page.tasks += [replace(task, done=True), *parts]
                return
        numbers = [node.number for node in results.nodes if node and node.number]
        page.pending.extend(IssueRef(repo, number) for number in numbers)
        found = task.state["got"] + len(numbers)
        next_task = replace(task, state={**task.state, "got": found}, done=True)
        if results.page_info.has_next_page:
            cursor = results.page_info.end_cursor
            pages = self._pages.setdefault(
                task.key, Pages(f"search {task.key!r}", task.cursor)
            )
            pages.advance(numbers, cursor)
            next_task = replace(next_task, cursor=cursor, done=False)
        elif found < total:
            warning = f"search {task.key!r} counts {total} issues but returns {found}"
            page.warnings.append((repo, warning))
        page.tasks.append(next_task)

    def _split(self, page: Page, task: CrawlTask, total: int) -> list[CrawlTask] | None:
        """The searches that replace one with too many results; None if it can't be split."""
        row = self._row
        settings = self._crawl.settings
        is_phrase = task.key.endswith(("in:comments", "in:body"))  # without a window
        if is_phrase and total > settings.max_phrase_share * row.issue_count:
            warning = f"search {task.key!r} was skipped: {total} of {row.issue_count} issues match"
            page.warnings.append((row.full_name, warning))
            return []
        windows = split_window(
            Window(task.state["start"], task.state["end"]),
            total,
            settings.search_limit,
            first=epoch(row.created_at),
            last=epoch(row.newest_at),
        )
        return [_task(row, task.state["words"], window) for window in windows] or None
