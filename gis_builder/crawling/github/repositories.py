"""Checks repositories (`check`), and fetches their threads: all (`sweep`), or those that changed (`update`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gis_builder.crawling.github.client import (
    MAX_ITEMS,
    BatchSize,
    Crawl,
    GraphReply,
    Pages,
    epoch,
    iso,
)
from gis_builder.crawling.github.exchange import GraphQLError
from gis_builder.crawling.github.fetch import fetch_top_ups, value_of
from gis_builder.crawling.github.nodes import (
    Listing,
    ListingRepository,
    RepositoryNode,
    parse_thread,
    well_formed,
)
from gis_builder.crawling.status import without_issues
from gis_builder.store import CrawlTask, Page, RepoOutcome, RepoRow
from gis_builder.store.decoding import stamp, stamp_or_none
from pairkit.base.errors import BadReply, RemoteError

_GROWTH = 10_000  # issues that may be added while a list is read
_OVERLAP_S = 60  # of updates, so that changes within the same second are not lost
_BATCH = 25  # repositories in one query
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.+$)[A-Za-z0-9._-]+")
# `duplicate`, `Resolution: Duplicate`, `dupe`; not `deduplication`.
_DUPLICATE_LABEL = re.compile(r"\bdup(?:e|es|s|licat\w*)?\b", re.IGNORECASE)


def check(crawl: Crawl, names: Sequence[str], *, listed: bool = True) -> None:
    """Check repositories and store their rows; repositories already known to be crawlable are skipped."""
    stored = {row.name.lower(): row for row in crawl.store.all_repos()}
    unchecked = []
    for name in dict.fromkeys(names):
        old = stored.get(name.lower())
        is_known = old is not None and old.is_crawlable and (old.listed or not listed)
        if not is_known:
            unchecked.append(name)
    size = BatchSize(_BATCH)
    checked = 0
    while checked < len(unchecked):
        page = Page()
        for row in _request_rows(crawl, unchecked[checked:], size):
            old = stored.get(row.name.lower())
            # A failed crawl continues with its old data, so an update must start at the old time.
            as_of = old.as_of if old and old.as_of else row.as_of
            page.repos.append(replace(row, listed=listed, as_of=as_of))
            is_renamed = row.outcome is RepoOutcome.RENAMED
            if old and is_renamed and old.full_name not in ("", row.full_name):
                page.renamed.append((old.full_name, row.full_name))
        crawl.save("", page)
        checked += len(page.repos)
        crawl.report("", "check", checked, len(unchecked))


def may_be_repository(name: str) -> bool:
    """Whether a name is valid; references in texts often aren't repositories."""
    return _NAME.fullmatch(name) is not None


def recheck(crawl: Crawl, name: str) -> RepoRow:
    """Check one repository again without storing the result."""
    (row,) = _request_rows(crawl, [name], BatchSize(1))
    return row


def _request_rows(crawl: Crawl, names: Sequence[str], size: BatchSize) -> list[RepoRow]:
    """Query the first of `names`, as many as one query takes."""
    for attempt in range(1, crawl.settings.attempts + 1):
        reply, count = crawl.ask(size, names, crawl.queries.repositories)
        has_failed = any(error.needs_retry for error in reply.errors)
        if not has_failed or attempt == crawl.settings.attempts:
            break
        crawl.back_off(attempt, "the server failed on a repository")
    errors = {str(error.path[0]): error for error in reply.errors if error.path}
    rows = []
    for index, name in enumerate(names[:count]):
        alias = f"r{index}"
        node = value_of(reply.data, alias, name)
        rows.append(_checked_row(crawl, name, node, errors.get(alias)))
    return rows


def _checked_row(
    crawl: Crawl, name: str, node: RepositoryNode | None, error: GraphQLError | None
) -> RepoRow:
    if node is None:
        return _row_of_error(name, error)
    with well_formed(name):
        row = _row_of_node(name, node)
    if node.is_private and not crawl.settings.include_private:
        detail = "private; set include_private to crawl private repositories"
        return RepoRow(name, RepoOutcome.PRIVATE, detail=detail)
    if unusable := without_issues(row, has_issues=node.has_issues_enabled):
        return unusable
    if row.full_name.lower() != name.lower():
        return replace(row, outcome=RepoOutcome.RENAMED, detail=f"now {row.full_name}")
    return row


def _row_of_node(name: str, node: RepositoryNode) -> RepoRow:
    """The row of a repository with the server's metadata."""
    labels = [label.name for label in node.labels.nodes] if node.labels else []
    # Search syntax can't express a label with a quotation mark.
    searchable = [label for label in labels if '"' not in label]
    newest = [*node.newest.nodes, *node.pulls.nodes]
    created = [stamp_or_none(issue.created_at) or "" for issue in node.newest.nodes]
    updated = [stamp(issue.updated_at) for issue in node.fresh.nodes]
    return RepoRow(
        name=name,
        outcome=RepoOutcome.OK,
        full_name=node.name_with_owner,
        max_number=max((item.number for item in newest), default=0),
        issue_count=node.newest.total_count,
        created_at=stamp_or_none(node.created_at) or "",
        newest_at=max(created, default=""),
        as_of=max(updated, default=""),
        labels=tuple(sorted(filter(_DUPLICATE_LABEL.search, searchable))),
    )


def _row_of_error(name: str, error: GraphQLError | None) -> RepoRow:
    if error is None or error.type == "NOT_FOUND":
        detail = "no such repository, or no access with this token: check the spelling"
        return RepoRow(name, RepoOutcome.NOT_FOUND, detail=detail)
    if error.needs_retry:
        return RepoRow(name, RepoOutcome.FAILED, detail=error.message)
    return RepoRow(
        name, RepoOutcome.PRIVATE, detail=f"this token has no access ({error.message})"
    )


def sweep(crawl: Crawl, row: RepoRow) -> None:
    """Fetch every thread of the repository; continues where it was stopped."""
    task = CrawlTask(row.full_name, "sweep", state={"got": 0})
    _IssueList(crawl, task, row.issue_count).fetch()
    fetch_top_ups(crawl, row.full_name)


def update(crawl: Crawl, row: RepoRow) -> None:
    """Fetch every thread that changed since the start of the crawl or the last update."""
    tasks = crawl.store.tasks(row.full_name, "update")
    if tasks:
        task = tasks[0]
    else:
        row, task = _begin_update(crawl, row)
    _IssueList(crawl, task).fetch()
    fetch_top_ups(crawl, row.full_name)

    changed = dict(task.state["row"])
    changed["labels"] = tuple(changed["labels"])  # a list in the store
    fresh = replace(row, **changed)
    page = Page(repos=[fresh], dropped=[(row.full_name, "update")])
    # Without issues that were opened while the update ran.
    stored = crawl.store.count_threads(row.full_name, up_to=fresh.max_number)
    gone = stored - fresh.issue_count
    if gone > 0:  # only after a sweep, which stores all issues
        warning = f"update: {gone} stored issues no longer exist on the server; a new crawl would omit them"
        page.warnings.append((row.full_name, warning))
    crawl.save(row.full_name, page)


def _begin_update(crawl: Crawl, row: RepoRow) -> tuple[RepoRow, CrawlTask]:
    """The present row, and a task with the start time and the fields of the row to store at its end."""
    now = recheck(crawl, row.full_name)
    if not now.full_name:  # inaccessible; the next crawl looks it up again
        raise RemoteError(f"{row.full_name}: {now.detail}")
    page = Page()
    if now.full_name != row.full_name:
        page.renamed.append((row.full_name, now.full_name))
        row = replace(
            row,
            full_name=now.full_name,
            outcome=RepoOutcome.RENAMED,
            detail=f"now {now.full_name}",
        )
    changing = ("as_of", "max_number", "issue_count", "newest_at", "labels")
    state = {
        "got": 0,
        "since": iso(epoch(row.as_of) - _OVERLAP_S),
        "row": {name: getattr(now, name) for name in changing},
    }
    task = CrawlTask(row.full_name, "update", state=state)
    page.tasks.append(task)
    page.repos.append(row)
    crawl.save(row.full_name, page)
    return row, task


class _IssueList:
    """Fetches a repository's list of issues with their threads; `total` is 0 if their number is unknown."""

    def __init__(self, crawl: Crawl, start: CrawlTask, total: int = 0) -> None:
        stored = crawl.store.tasks(start.repo, start.kind)
        self._crawl = crawl
        self._task = stored[0] if stored else start
        self._total = total
        self._size = BatchSize(crawl.settings.thread_batch)
        limit = MAX_ITEMS
        if total:
            # Items that change while the list is read count twice.
            limit = min(2 * total + _GROWTH, MAX_ITEMS)
        self._pages = Pages(f"{start.repo} issues", self._task.cursor, limit=limit)

    def fetch(self) -> None:
        """Fetch and store the remaining pages."""
        while not self._task.done:
            task = self._task
            query = partial(
                self._crawl.queries.listing,
                task.repo,
                after=task.cursor,
                since=task.state.get("since"),
            )
            reply, count = self._crawl.ask_sized(self._size, query)
            self._save_reply(reply, count)
            listed = self._task.state["got"]
            self._crawl.report(task.repo, task.kind, listed, max(self._total, listed))

    def _save_reply(self, reply: GraphReply[ListingRepository], count: int) -> None:
        """Store a page; one that lacks an issue is requested again in smaller pages."""
        repository = reply.data.get("r0")
        if repository is None:
            raise RemoteError(
                f"{self._task.repo} no longer exists or is inaccessible: run the same command again"
            )
        listing = repository.issues
        has_failed = any(error.needs_retry for error in reply.errors)
        if listing and not has_failed and None not in listing.nodes:
            self._save_threads(listing)
            return
        self._size.shrink()
        if count == 1:
            self._retry_or_skip(listing)

    def _save_threads(self, listing: Listing) -> None:
        task = self._task
        page = Page()
        for node in filter(None, listing.nodes):
            thread, top_ups = parse_thread(node)
            ref = thread.issue.ref
            if ref.repo.lower() != task.repo.lower():
                raise BadReply(f"{task.repo}: the reply contains {ref}")
            page.threads.append(thread)
            page.top_ups.extend(top_ups)
            page.fetched.append(ref)
        listed = task.state["got"] + len(page.threads)
        if not listing.page_info.has_next_page and listed < listing.total_count:
            warning = (
                f"the server counts {listing.total_count} issues but returned {listed}"
            )
            page.warnings.append((task.repo, f"{task.kind}: {warning}"))
        self._save(page, listing, listed)

    def _retry_or_skip(self, listing: Listing | None) -> None:
        """Retry a page of one issue; after too many failures, skip the issue with a warning."""
        task = self._task
        failures = task.state.get("failures", 0) + 1
        if failures < self._crawl.settings.attempts:
            self._crawl.back_off(failures, "the server failed on an issue")
            self._task = replace(task, state={**task.state, "failures": failures})
            return
        if listing is None:
            raise RemoteError(f"{task.repo}: the server fails to list issues")
        listed = task.state["got"]
        warning = (
            f"the issue after the first {listed} was skipped: the server fails on it"
        )
        page = Page(warnings=[(task.repo, f"{task.kind}: {warning}")])
        self._save(page, listing, listed + 1)

    def _save(self, page: Page, listing: Listing, listed: int) -> None:
        """Store a page with the task after it; `listed` counts the issues so far, also skipped ones."""
        self._task = replace(
            self._task,
            cursor=listing.page_info.end_cursor,
            state={**self._task.state, "got": listed, "failures": 0},
            done=not listing.page_info.has_next_page,
        )
        if not self._task.done:
            items = [
                (thread.issue.ref, thread.issue.updated_at) for thread in page.threads
            ]
            self._pages.advance(items, self._task.cursor)
        page.tasks.append(self._task)
        self._crawl.save(self._task.repo, page)
