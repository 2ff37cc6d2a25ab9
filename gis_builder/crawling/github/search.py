"""The strategy `search`: find likely duplicates by phrases, then fetch only these.

One query contains several searches and returns only numbers, so it costs one point. Issues that several
searches find are fetched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from gis_builder.crawling.github.client import RequestRefused
from gis_builder.crawling.github.fetch import failure_of, fetch_threads, fetch_top_ups
from gis_builder.crawling.github.fetch_batches import (
    GITHUB_START,
    BatchSize,
    Crawl,
    Pages,
    epoch,
    iso,
)
from gis_builder.crawling.github.nodes import SearchPage
from gis_builder.crawling.github.sweep import sweep
from gis_builder.settings.crawl_settings import CrawlSettings
from gis_builder.store import CrawlTask, IssueRef, Page, RepoRow
from pairkit.base.errors import BadReply, RemoteError

_KIND = "search"
_PROBE = "reason:duplicate"  # not supported by every server
_MAX_PARTS = 16
_FILL = 0.7  # target share of the limit: parts differ in size, and few should exceed it


def search(crawl: Crawl, row: RepoRow) -> None:
    """Find and fetch likely duplicates; continues where it was stopped."""
    if not crawl.store.tasks(row.full_name, _KIND):
        if is_cheaper_swept(row, crawl.settings):
            sweep(crawl, row)
            return
        queries = search_queries(row, crawl.settings)
        tasks = [_task(row, query, Window()) for query in queries]
        crawl.save(row.full_name, Page(tasks=tasks))
    _discover(crawl, row)
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
        if self.start is None and self.end is None:
            return ""
        if self.start is None:
            return f"created:<={iso(self.end or 0)}"
        if self.end is None:
            return f"created:>={iso(self.start)}"
        return f"created:{iso(self.start)}..{iso(self.end)}"


def split_window(
    window: Window, count: int, limit: int, first: int, last: int
) -> tuple[Window, ...]:
    """Split a window with `count` results into adjacent ones; returns none if it is only a second."""
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
    needed = round(count / (limit * _FILL)) + 1
    parts = min(_MAX_PARTS, seconds, max(2, needed))
    windows = []
    part_start = window.start
    for part in range(1, parts):
        edge = start + seconds * part // parts
        windows.append(Window(part_start, edge - 1))
        part_start = edge
    return (*windows, Window(part_start, window.end))


def _task(row: RepoRow, query: str, window: Window) -> CrawlTask:
    state = {"words": query, "start": window.start, "end": window.end, "got": 0}
    return CrawlTask(
        row.full_name, _KIND, f"{query} {window.qualifier}".strip(), state=state
    )


def _discover(crawl: Crawl, row: RepoRow) -> None:
    size = BatchSize(crawl.settings.search_batch)
    pages_of: dict[str, Pages] = {}  # by search
    while tasks := crawl.store.tasks(row.full_name, _KIND, done=False):
        probes = [task for task in tasks if _PROBE in task.key and task.cursor is None]
        if probes:
            _probe(crawl, row, probes[0], pages_of)
        else:
            _search(crawl, row, tasks, size, pages_of)
        left = len(crawl.store.tasks(row.full_name, _KIND, done=False))
        total = len(crawl.store.tasks(row.full_name, _KIND))
        crawl.report(row.full_name, "search", total - left, total)


def _probe(
    crawl: Crawl,
    row: RepoRow,
    task: CrawlTask,
    pages_of: dict[str, Pages],
) -> None:
    """Send a search that the server may reject in a query of its own: a rejection fails the whole query."""
    try:
        _search(crawl, row, [task], BatchSize(1), pages_of)
    except RequestRefused:
        crawl.save(row.full_name, Page(tasks=[replace(task, done=True)]))


def _search(
    crawl: Crawl,
    row: RepoRow,
    tasks: Sequence[CrawlTask],
    size: BatchSize,
    pages_of: dict[str, Pages],
) -> None:
    for failures in range(1, crawl.settings.attempts + 1):
        reply, count = crawl.ask(size, tasks, crawl.queries.searches)
        succeeded = {}
        for index, task in enumerate(tasks[:count]):
            alias = f"s{index}"
            if not failure_of(reply.errors, alias):
                succeeded[alias] = task
        if succeeded:
            break
        size.shrink()
        crawl.client.back_off(failures, "every search failed")
    else:
        raise RemoteError(f"{row.full_name}: searches fail")
    page = Page()
    for alias, task in succeeded.items():
        pages = pages_of.setdefault(
            task.key, Pages(f"search {task.key!r}", task.cursor)
        )
        results = reply.data.get(alias)
        if results is None:
            raise BadReply(f"search {task.key!r}: missing from the reply")
        _add_results(crawl, row, page, task, results, pages)
    crawl.save(row.full_name, page)


def _add_results(
    crawl: Crawl,
    row: RepoRow,
    page: Page,
    task: CrawlTask,
    results: SearchPage,
    pages: Pages,
) -> None:
    """Queue the issues of a page of results; split a search whose results exceed the server's limit."""
    limit = crawl.settings.search_limit
    count = results.issue_count
    if task.cursor is None and count > limit:
        is_phrase = task.key.endswith(("in:comments", "in:body"))  # without a window
        if is_phrase and count > crawl.settings.max_phrase_share * row.issue_count:
            warning = f"search {task.key!r} was skipped: {count} of {row.issue_count} issues match"
            page.warnings.append((row.full_name, warning))
            page.tasks.append(replace(task, done=True))
            return
        window = Window(task.state["start"], task.state["end"])
        first = epoch(row.created_at)
        last = epoch(row.newest_at)
        parts = split_window(window, count, limit, first, last)
        if parts:
            page.tasks.append(replace(task, done=True))
            page.tasks += (_task(row, task.state["words"], part) for part in parts)
            return
    numbers = [node.number for node in results.nodes if node and node.number]
    page.pending.extend(IssueRef(row.full_name, number) for number in numbers)
    found = task.state["got"] + len(numbers)
    next_task = replace(task, state={**task.state, "got": found}, done=True)
    if results.page_info.has_next_page:
        cursor = results.page_info.end_cursor
        pages.advance(numbers, cursor)
        next_task = replace(next_task, cursor=cursor, done=False)
    elif found < count:
        warning = f"search {task.key!r} counts {count} issues but returns {found}"
        page.warnings.append((row.full_name, warning))
    page.tasks.append(next_task)
