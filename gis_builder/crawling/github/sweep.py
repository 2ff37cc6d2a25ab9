"""The strategy `all` fetches every thread; `update` fetches every thread that changed since."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gis_builder.crawling.github.check import recheck
from gis_builder.crawling.github.client import HttpReply
from gis_builder.crawling.github.fetch import fetch_top_ups
from gis_builder.crawling.github.fetch_batches import (
    MAX_ITEMS,
    BatchSize,
    Crawl,
    Pages,
    epoch,
    iso,
    list_limit,
)
from gis_builder.crawling.github.nodes import Listing, ListingRepository
from gis_builder.crawling.github.parse import parse_thread
from gis_builder.store import CrawlTask, Page, RepoRow
from pairkit.base.errors import BadReply, RemoteError

_OVERLAP_S = 60  # of updates, so that changes within the same second are not lost


def sweep(crawl: Crawl, row: RepoRow) -> None:
    """Fetch every thread of the repository; continues where it was stopped."""
    task = CrawlTask(row.full_name, "sweep", state={"got": 0})
    _list_all(crawl, task, row.issue_count)
    fetch_top_ups(crawl, row.full_name)


def update(crawl: Crawl, row: RepoRow) -> None:
    """Fetch every thread that changed since the start of the crawl or the last update."""
    task = _update_task(crawl, row)
    _list_all(crawl, task, 0)
    fetch_top_ups(crawl, row.full_name)
    changed = task.state["row"]
    fresh = replace(row, **(changed | {"labels": tuple(changed["labels"])}))
    page = Page(repos=[fresh], dropped=[(row.full_name, "update")])
    gone = crawl.store.count_threads(row.full_name) - fresh.issue_count
    if gone > 0:  # only after a sweep, which stores all issues
        warning = f"update: {gone} stored issues no longer exist on the server; a new crawl would omit them"
        page.warnings.append((row.full_name, warning))
    crawl.save(row.full_name, page)


def _update_task(crawl: Crawl, row: RepoRow) -> CrawlTask:
    """The stopped update or a new one, with its start time and the fields of the row to store at its end."""
    tasks = crawl.store.tasks(row.full_name, "update")
    if tasks:
        return tasks[0]
    now = recheck(crawl, row.full_name)
    if not now.full_name:
        raise _inaccessible(row.full_name)
    changing = ("as_of", "max_number", "issue_count", "newest_at", "labels")
    state = {
        "got": 0,
        "since": iso(epoch(row.as_of) - _OVERLAP_S),
        "row": {name: getattr(now, name) for name in changing},
    }
    task = CrawlTask(row.full_name, "update", state=state)
    crawl.save(row.full_name, Page(tasks=[task]))
    return task


def _inaccessible(repo: str) -> RemoteError:
    return RemoteError(
        f"{repo} no longer exists or is inaccessible: run the same command again"
    )


def _list_all(crawl: Crawl, start: CrawlTask, total: int) -> None:
    stored = crawl.store.tasks(start.repo, start.kind)
    task = stored[0] if stored else start
    size = BatchSize(crawl.settings.thread_batch)
    pages = Pages(
        f"{start.repo} issues",
        task.cursor,
        limit=list_limit(total) if total else MAX_ITEMS,
    )
    while not task.done:
        query = partial(
            crawl.queries.listing,
            start.repo,
            after=task.cursor,
            since=task.state.get("since"),
        )
        reply, count = crawl.ask_sized(size, query)
        task = _save_page(crawl, task, reply, count, size, pages)
        listed = task.state["got"]
        crawl.report(start.repo, task.kind, listed, max(total, listed))


def _save_page(
    crawl: Crawl,
    task: CrawlTask,
    reply: HttpReply[ListingRepository],
    count: int,
    size: BatchSize,
    pages: Pages,
) -> CrawlTask:
    """Store a page of the listing; a page that lacks an issue is requested again in smaller pages."""
    repository = reply.data.get("r0")
    if repository is None:
        raise _inaccessible(task.repo)
    listing = repository.issues
    has_failed = any(error.needs_retry for error in reply.errors)
    if listing is None or has_failed or None in listing.nodes:
        size.shrink()
        if count > 1:
            return task
        return _retry_or_skip(crawl, task, listing, pages)
    page = Page()
    items = []
    for node in filter(None, listing.nodes):
        thread, top_ups = parse_thread(node)
        ref = thread.issue.ref
        if ref.repo.lower() != task.repo.lower():
            raise BadReply(f"{task.repo}: the reply contains {ref}")
        page.threads.append(thread)
        page.top_ups.extend(top_ups)
        page.fetched.append(ref)
        items.append((ref.number, thread.issue.updated_at))
    count = task.state["got"] + len(listing.nodes)
    next_task = _after(task, listing, count)
    page.tasks.append(next_task)
    if not next_task.done:
        pages.advance(items, next_task.cursor)
    elif count < listing.total_count:
        warning = f"{task.kind}: the server counts {listing.total_count} issues but returned {count}"
        page.warnings.append((task.repo, warning))
    crawl.save(task.repo, page)
    return next_task


def _after(task: CrawlTask, listing: Listing, count: int) -> CrawlTask:
    """The task after a page, with the number of issues that were listed so far."""
    return replace(
        task,
        cursor=listing.page_info.end_cursor,
        state={**task.state, "got": count, "failures": 0},
        done=not listing.page_info.has_next_page,
    )


def _retry_or_skip(
    crawl: Crawl, task: CrawlTask, listing: Listing | None, pages: Pages
) -> CrawlTask:
    """Retry a page of one issue; after too many failures, skip the issue with a warning."""
    failures = task.state.get("failures", 0) + 1
    if failures < crawl.settings.attempts:
        crawl.client.back_off(failures, "the server failed on an issue")
        return replace(task, state={**task.state, "failures": failures})
    if listing is None:
        raise RemoteError(f"{task.repo}: the server fails to list issues")
    next_task = _after(task, listing, task.state["got"])
    if not next_task.done:
        pages.advance((), next_task.cursor)
    warning = f"{task.kind}: the issue after the first {task.state['got']} was skipped: the server fails on it"
    page = Page(tasks=[next_task], warnings=[(task.repo, warning)])
    crawl.save(task.repo, page)
    return next_task
