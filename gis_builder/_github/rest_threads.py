"""Making whole threads of what the lists brought: closers filled in, events in order, comments counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from gis_builder._github.rest_client import RestCrawl
from gis_builder._github.rest_fetch import closer_of, comments_of, resolve
from gis_builder._github.rest_lists import counts_kind
from gis_builder._records import Event, IssueRef, Thread
from gis_builder._store import Page

_BATCH = 200  # rows that say what a thread wants: two for each


def complete(crawl: RestCrawl, repo: str, kind: str, *, may_hold_deleted: bool) -> None:
    """Complete every thread of the repository that waits for its comments and events.

    Args:
        crawl: The tools.
        repo: The repository's full name.
        kind: The kind of task that read the lists.
        may_hold_deleted: Whether a comment that is stored may be gone from the server by now.
    """
    counts = _counts(crawl, repo, kind)
    while waiting := crawl.store.top_ups(repo, _BATCH):
        page = Page()
        # A batch may end between the rows of one thread: the thread is completed all the same.
        for ref, _ in groupby(waiting, key=lambda top_up: top_up.ref):
            thread, said = crawl.store.thread(ref), counts.get(ref.number)
            if thread is None or said is None:
                # Another route began it, so the lists may have brought only a part.
                _merge(page, resolve(crawl, ref, with_thread=True))
                continue
            had = len(thread.comments)
            if had < said or (may_hold_deleted and had > said):
                thread = _with_comments_by_number(crawl, page, thread, said)
            page.threads.append(_whole(page, thread))
        page.topped_up.extend(waiting)
        crawl.save(repo, page)


def _counts(crawl: RestCrawl, repo: str, kind: str) -> dict[int, int]:
    tasks = crawl.store.tasks(repo, counts_kind(kind))
    return {int(number): count for task in tasks for number, count in task.state.items()}


def _with_comments_by_number(crawl: RestCrawl, page: Page, thread: Thread, said: int) -> Thread:
    """Ask for the comments of one issue, of which there are not as many as the issue says."""
    ref = thread.issue.ref
    comments = comments_of(crawl, ref)
    if len(comments) < said:
        words = f"{ref}: the server counts {said} comments but gives {len(comments)}"
        page.warnings.append((ref.repo, words))
    return replace(thread, comments=comments)


def _merge(page: Page, other: Page) -> None:
    page.threads.extend(other.threads)
    page.issues.extend(other.issues)
    page.missing.update(other.missing)


def _whole(page: Page, thread: Thread) -> Thread:
    issue, events = thread.issue, thread.events
    if issue.closed_at is not None and not any(event.kind == "closed" for event in events):
        # Some servers keep or list only the newest events.
        page.warnings.append(_unlisted(issue.ref))
        closing = Event("closed", issue.closed_by, issue.closed_at, state_reason=issue.state_reason)
        events = tuple(sorted((*events, closing), key=lambda event: event.created_at))
    return Thread(replace(issue, closed_by=closer_of(issue, events)), thread.comments, events)


def _unlisted(ref: IssueRef) -> tuple[str, str]:
    return (
        ref.repo,
        "the server does not list every closing: those it lacks are taken from the issues themselves",
    )
