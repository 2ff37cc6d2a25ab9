"""The strategy `search`: find the issues that may be duplicates by their words, then fetch only those.

Discovery asks for numbers alone, several searches in one query, so that it costs a point per query. What the
searches have in common is fetched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from gis_builder.crawling.github.batches import BatchSize, Crawl, Pages, Window, ask_sized, cut, epoch
from gis_builder.crawling.github.client import RequestRefused
from gis_builder.crawling.github.fetch import failure_of, fetch_threads, top_up
from gis_builder.crawling.github.nodes import Hits
from gis_builder.crawling.github.queries import GraphQuery, Search
from gis_builder.crawling.github.sweep import sweep
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.store import CrawlTask, Page, RepoRow
from gis_builder.store.records import IssueRef
from pairkit.app.errors import BadReply, RemoteError

_KIND = "search"
_PROBE = "reason:duplicate"  # not every server knows it


def search(crawl: Crawl, row: RepoRow) -> None:
    """Find and fetch the repository's candidates; goes on where it was stopped."""
    has_begun = bool(crawl.store.tasks(row.full_name, _KIND))
    if not has_begun and is_cheaper_swept(row.full_name, row.issue_count, row.labels, crawl.settings):
        sweep(crawl, row)
        return
    _plan(crawl, row)
    _discover(crawl, row)
    fetch_threads(crawl, row.full_name)
    top_up(crawl, row.full_name)


def is_cheaper_swept(repo: str, issues: int, labels: Sequence[str], settings: CrawlSettings) -> bool:
    """Whether all threads of a repository take no more queries than only asking where candidates are."""
    pages = ceil(issues / settings.thread_batch)
    searches = ceil(len(search_words(repo, labels, settings)) / settings.search_batch)
    return settings.sweep_small and pages <= searches


def search_words(repo: str, labels: Sequence[str], settings: CrawlSettings) -> list[str]:
    """What to search a repository for: closed issues by reason, label, title, comments and body."""
    scope = f"repo:{repo} is:issue is:closed"
    return [
        f"{scope} {_PROBE}",
        *(f'{scope} label:"{label}"' for label in labels),
        *(f'{scope} "{word}" in:title' for word in settings.title_words),
        *(f'{scope} "{phrase}" in:comments' for phrase in settings.phrases),
        *(f'{scope} "{phrase}" in:body' for phrase in settings.body_phrases),
    ]


def _plan(crawl: Crawl, row: RepoRow) -> None:
    if crawl.store.tasks(row.full_name, _KIND):
        return
    words = search_words(row.full_name, row.labels, crawl.settings)
    crawl.save(row.full_name, Page(tasks=[_task(row, text, Window()) for text in words]))


def _task(row: RepoRow, words: str, window: Window) -> CrawlTask:
    return CrawlTask(
        row.full_name,
        _KIND,
        f"{words} {window.words}".strip(),
        state={"words": words, "start": window.start, "end": window.end, "got": 0},
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
        crawl.tell(row.full_name, "discover", total - left, total)


def _probe(crawl: Crawl, row: RepoRow, task: CrawlTask, lists: dict[str, Pages]) -> None:
    """Ask on its own what the server may refuse: a refused search spoils all that is asked with it."""
    try:
        _search(crawl, row, [task], BatchSize(1), lists)
    except RequestRefused:
        crawl.save(row.full_name, Page(tasks=[replace(task, done=True)]))


def _search(
    crawl: Crawl, row: RepoRow, tasks: Sequence[CrawlTask], size: BatchSize, lists: dict[str, Pages]
) -> None:
    def build(count: int) -> GraphQuery[Hits]:
        return crawl.queries.searches(Search(task.key, task.cursor) for task in tasks[:count])

    for failures in range(1, crawl.settings.attempts + 1):
        reply, count = ask_sized(crawl.client, size, build, crawl.settings.attempts)
        whole = {
            place: task
            for place, task in enumerate(tasks[:count])
            if not failure_of(reply.errors, f"s{place}")
        }
        if whole:
            break
        size.shrink()
        crawl.client.back_off(failures, "no search came whole")
    else:
        raise RemoteError(
            f"{row.full_name}: the server gives only some results; run the same command again to continue"
        )
    page = Page()
    for place, task in whole.items():
        pages = lists.setdefault(task.key, Pages(f"search {task.key!r}", task.cursor))
        found = reply.data.get(f"s{place}")
        if found is None:
            raise BadReply(
                f"search {task.key!r}: the reply does not have it; run the same command again to continue"
            )
        _take(crawl, row, page, task, found, pages)
    crawl.save(row.full_name, page)


def _take(crawl: Crawl, row: RepoRow, page: Page, task: CrawlTask, found: Hits, pages: Pages) -> None:
    """Wish for what was found and go on, or cut the search where it has more than it gives out."""
    limit, count = crawl.settings.search_limit, found.issue_count
    if task.cursor is None and count > limit:
        if _is_boilerplate(crawl, row, task, count):
            words = f"search {task.key!r} was left out: {count} of {row.issue_count} issues say it"
            page.warnings.append((row.full_name, words))
            page.tasks.append(replace(task, done=True))
            return
        window = Window(task.state["start"], task.state["end"])
        parts = cut(window, count, limit, epoch(row.created_at), epoch(row.newest_at))
        if parts:
            page.tasks.append(replace(task, done=True))
            page.tasks.extend(_task(row, task.state["words"], part) for part in parts)
            return
    numbers = [node.number for node in found.nodes if node and node.number]
    page.pending.extend(IssueRef(row.full_name, number) for number in numbers)
    got = task.state["got"] + len(numbers)
    more = found.page_info.has_next_page
    if more:
        pages.turn(numbers, found.page_info.end_cursor)
    if not more and got < count:
        page.warnings.append((row.full_name, f"search {task.key!r} counts {count} issues but gives {got}"))
    page.tasks.append(
        replace(
            task,
            cursor=found.page_info.end_cursor if more else task.cursor,
            state={**task.state, "got": got},
            done=not more,
        )
    )


def _is_boilerplate(crawl: Crawl, row: RepoRow, task: CrawlTask, count: int) -> bool:
    is_phrase = task.key.endswith(("in:comments", "in:body"))  # the whole of it, not a window
    return is_phrase and count > crawl.settings.max_phrase_share * row.issue_count
