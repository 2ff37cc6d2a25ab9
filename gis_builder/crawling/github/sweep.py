"""The strategy `sweep`: every issue with its whole thread; and `update`: every issue changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gis_builder.crawling.github.batches import (
    MOST_ITEMS,
    BatchSize,
    Crawl,
    Pages,
    ask_sized,
    look_back,
    most_of,
)
from gis_builder.crawling.github.check import look_again
from gis_builder.crawling.github.client import HttpReply
from gis_builder.crawling.github.fetch import top_up
from gis_builder.crawling.github.nodes import Listing, ListingHome
from gis_builder.crawling.github.parse import ParsedThread, parse_thread
from gis_builder.crawling.github.queries import GraphQuery
from gis_builder.store import CrawlTask, Page, RepoRow
from pairkit.app.errors import BadReply, RemoteError


def sweep(crawl: Crawl, row: RepoRow) -> None:
    """Fetch every issue of the repository; goes on where it was stopped."""
    _list_all(crawl, CrawlTask(row.full_name, "sweep", state={"got": 0}), row.issue_count)
    top_up(crawl, row.full_name)


def update(crawl: Crawl, row: RepoRow) -> None:
    """Fetch every issue that changed since the crawl or the last update began."""
    task = _open_update(crawl, row)
    _list_all(crawl, task, 0)
    top_up(crawl, row.full_name)
    fresh = replace(row, **{**task.state["row"], "labels": tuple(task.state["row"]["labels"])})
    page = Page(repos=[fresh], dropped=[(row.full_name, "update")])
    gone = crawl.store.count_threads(row.full_name) - fresh.issue_count
    if gone > 0:  # after a sweep only: nothing else has all of them
        words = f"update: {gone} stored issues are gone from the server; a crawl into another folder has none"
        page.warnings.append((row.full_name, words))
    crawl.save(row.full_name, page)


def _open_update(crawl: Crawl, row: RepoRow) -> CrawlTask:
    """The update that was stopped, or a new one: where it begins and what holds once it is done."""
    tasks = crawl.store.tasks(row.full_name, "update")
    if tasks:
        return tasks[0]
    now = look_again(crawl, row.full_name)
    after = {
        "as_of": now.as_of,
        "max_number": now.max_number,
        "issue_count": now.issue_count,
        "newest_at": now.newest_at,
        "labels": now.labels,
    }
    since = look_back(row.as_of)
    task = CrawlTask(row.full_name, "update", state={"got": 0, "since": since, "row": after})
    crawl.save(row.full_name, Page(tasks=[task]))
    return crawl.store.tasks(row.full_name, "update")[0]


def _list_all(crawl: Crawl, start: CrawlTask, total: int) -> None:
    stored = crawl.store.tasks(start.repo, start.kind)
    task = stored[0] if stored else start
    size = BatchSize(crawl.settings.thread_batch)
    pages = Pages(f"{start.repo} issues", task.cursor, most=most_of(total) if total else MOST_ITEMS)
    while not task.done:
        after, since = task.cursor, task.state.get("since")

        def build(
            count: int, after: str | None = after, since: str | None = since
        ) -> GraphQuery[ListingHome]:
            return crawl.queries.listing(start.repo, count, after, since=since)

        reply, asked = ask_sized(crawl.client, size, build, crawl.settings.attempts)
        task = _take(crawl, task, reply, asked, size, pages)
        crawl.tell(start.repo, task.kind, task.state["got"], max(total, task.state["got"]))


def _take(
    crawl: Crawl, task: CrawlTask, reply: HttpReply[ListingHome], asked: int, size: BatchSize, pages: Pages
) -> CrawlTask:
    """Store a page of the listing; one that lacks an issue is asked for again in smaller pages."""
    home = reply.data.get("r0")
    if home is None:
        raise RemoteError(f"{task.repo} is gone from the server's view: run again to look it up anew")
    listing = home.issues
    nodes = [node for node in listing.nodes if node] if listing else []
    if listing is None or len(nodes) < len(listing.nodes) or any(error.spoils for error in reply.errors):
        size.shrink()
        return _step_over(crawl, task, listing, pages) if asked == 1 else task
    parsed = [parse_thread(node) for node in nodes]
    more = listing.page_info.has_next_page
    next_task = replace(
        task,
        cursor=listing.page_info.end_cursor if more else task.cursor,
        state={**task.state, "got": task.state["got"] + len(parsed), "failures": 0},
        done=not more,
    )
    total = listing.total_count
    _must_be_of(task.repo, parsed)
    if more:
        issues = [one.thread.issue for one in parsed]
        pages.turn([(issue.number, issue.updated_at) for issue in issues], next_task.cursor)
    page = Page(
        threads=[one.thread for one in parsed],
        top_ups=[top for one in parsed for top in one.top_ups],
        granted=[one.thread.issue.ref for one in parsed],
        tasks=[next_task],
    )
    if next_task.done and next_task.state["got"] < total:
        words = f"{task.kind}: the server counts {total} issues but gave {next_task.state['got']}"
        page.warnings.append((task.repo, words))
    crawl.save(task.repo, page)
    return next_task


def _must_be_of(repo: str, threads: Sequence[ParsedThread]) -> None:
    for one in threads:
        ref = one.thread.issue.ref
        if ref.repo.lower() != repo.lower():
            raise BadReply(f"{repo}: the reply lists {ref}; run the same command again to continue")


def _step_over(crawl: Crawl, task: CrawlTask, listing: Listing | None, pages: Pages) -> CrawlTask:
    """Retry a page of one issue; if it fails permanently, leave the issue out with a warning."""
    failures = task.state.get("failures", 0) + 1
    if failures < crawl.settings.attempts:
        crawl.client.back_off(failures, "an issue of the page could not be had")
        return replace(task, state={**task.state, "failures": failures})
    if listing is None:
        raise RemoteError(f"{task.repo}: its issues can't be listed; run the same command again to continue")
    next_task = replace(
        task,
        cursor=listing.page_info.end_cursor,
        state={**task.state, "failures": 0},
        done=not listing.page_info.has_next_page,
    )
    if not next_task.done:
        pages.turn((), next_task.cursor)
    words = (
        f"{task.kind}: an issue after number {task.state['got']} of the listing is left out: the server fails"
    )
    crawl.save(task.repo, Page(tasks=[next_task], warnings=[(task.repo, words)]))
    return next_task
