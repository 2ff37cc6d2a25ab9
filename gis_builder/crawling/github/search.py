"""The strategy `search`: find likely duplicates by phrases, then fetch only these.

One query contains several searches and returns only numbers, so it costs one point. Issues that several
searches find are fetched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from gis_builder.crawling.github.client import RequestRefused
from gis_builder.crawling.github.fetch import failure_of, fetch_threads, fetch_top_ups
from gis_builder.crawling.github.fetch_batches import (
    BatchSize,
    Crawl,
    Pages,
    Window,
    epoch,
    split_window,
)
from gis_builder.crawling.github.nodes import SearchPage
from gis_builder.crawling.github.sweep import sweep
from gis_builder.settings.crawl_settings import CrawlSettings
from gis_builder.store import CrawlTask, IssueRef, Page, RepoRow
from pairkit.base.errors import BadReply, RemoteError

_KIND = "search"
_PROBE = "reason:duplicate"  # not supported by every server


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


def _task(row: RepoRow, query: str, window: Window) -> CrawlTask:
    state = {"words": query, "start": window.start, "end": window.end, "got": 0}
    return CrawlTask(
        row.full_name, _KIND, f"{query} {window.qualifier}".strip(), state=state
    )


def _discover(crawl: Crawl, row: RepoRow) -> None:
    size = BatchSize(crawl.settings.search_batch)
    lists: dict[str, Pages] = {}
    while tasks := crawl.store.tasks(row.full_name, _KIND, done=False):
        probes = [task for task in tasks if _PROBE in task.key and task.cursor is None]
        if probes:
            _probe(crawl, row, probes[0], lists)
        else:
            _search(crawl, row, tasks, size, lists)
        left = len(crawl.store.tasks(row.full_name, _KIND, done=False))
        total = len(crawl.store.tasks(row.full_name, _KIND))
        crawl.report(row.full_name, "search", total - left, total)


def _probe(
    crawl: Crawl,
    row: RepoRow,
    task: CrawlTask,
    lists: dict[str, Pages],
) -> None:
    """Send a search that the server may reject in a query of its own: a rejection fails the whole query."""
    try:
        _search(crawl, row, [task], BatchSize(1), lists)
    except RequestRefused:
        crawl.save(row.full_name, Page(tasks=[replace(task, done=True)]))


def _search(
    crawl: Crawl,
    row: RepoRow,
    tasks: Sequence[CrawlTask],
    size: BatchSize,
    lists: dict[str, Pages],
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
        pages = lists.setdefault(task.key, Pages(f"search {task.key!r}", task.cursor))
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
    got = task.state["got"] + len(numbers)
    more = results.page_info.has_next_page
    if more:
        pages.advance(numbers, results.page_info.end_cursor)
    if not more and got < count:
        warning = f"search {task.key!r} counts {count} issues but returns {got}"
        page.warnings.append((row.full_name, warning))
    page.tasks.append(
        replace(
            task,
            cursor=results.page_info.end_cursor if more else task.cursor,
            state={**task.state, "got": got},
            done=not more,
        )
    )
