"""Issues by number over REST: one request for each, and more for its thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gis_builder._decoding import Malformed
from gis_builder._github.parse import well_formed
from gis_builder._github.rest_client import COMMENTS, EVENTS, ISSUE, REPOSITORY, RestCrawl
from gis_builder._records import Comment, Event, Issue, IssueRef, Thread
from gis_builder._rest_records import (
    IssueObject,
    comment_record,
    event_record,
    issue_record,
    pull_record,
    repo_of,
)
from gis_builder._store import Absence, Page
from pairkit.errors import RemoteError


class RestResolver:
    """Fetches issues by number, one at a time."""

    def __init__(self, crawl: RestCrawl) -> None:
        self._crawl = crawl

    def batch(self, *, with_thread: bool) -> int:  # noqa: ARG002 - as over GraphQL
        """See `Resolver`: each is a request."""
        return 1

    def resolve(self, refs: Sequence[IssueRef], *, with_thread: bool) -> Page:
        """See `Resolver`."""
        (ref,) = refs
        return resolve(self._crawl, ref, with_thread=with_thread)


def resolve(crawl: RestCrawl, ref: IssueRef, *, with_thread: bool) -> Page:
    """Fetch what is under a number: a thread, an issue, a pull request or an absence. Stores nothing."""
    reply = crawl.client.get(f"/repos/{ref.repo}/issues/{ref.number}", ISSUE)
    page, found = Page(), reply.value
    if found is None:
        withheld = reply.status == 451
        page.missing[ref] = (Absence.WITHHELD if withheld else Absence.DELETED, "")
        return page
    with well_formed(str(ref)):
        now = IssueRef(repo_of(found), found.number)
        if now.repo.lower() != ref.repo.lower():
            _must_stand(crawl, ref.repo)
            page.missing[ref] = (Absence.TRANSFERRED, str(now))
        elif now.number != ref.number:
            raise Malformed(f"it is about {now}")
        elif found.is_pull:
            page.issues.append(pull_record(ref.repo, found))
        else:
            _put_issue(crawl, page, ref, found, with_thread=with_thread)
    return page


def comments_of(crawl: RestCrawl, ref: IssueRef) -> tuple[Comment, ...]:
    """All comments of an issue, in order; several requests where there are more than a hundred."""
    path = f"/repos/{ref.repo}/issues/{ref.number}/comments?per_page=100"
    with well_formed(f"{ref} comments"):
        found = {comment.id: comment for comment in map(comment_record, crawl.client.get_all(path, COMMENTS))}
    return tuple(found[place] for place in sorted(found))


def _events_of(crawl: RestCrawl, ref: IssueRef) -> tuple[Event, ...]:
    path = f"/repos/{ref.repo}/issues/{ref.number}/events?per_page=100"
    with well_formed(f"{ref} events"):
        objects = {item.id or 0: item for item in crawl.client.get_all(path, EVENTS)}
        events = [event_record(objects[place]) for place in sorted(objects)]
    return tuple(event for event in events if event)


def _put_issue(crawl: RestCrawl, page: Page, ref: IssueRef, found: IssueObject, *, with_thread: bool) -> None:
    issue = issue_record(ref.repo, found)
    if with_thread:
        events = _events_of(crawl, ref)
        comments = comments_of(crawl, ref) if found.comments else ()
        page.threads.append(Thread(replace(issue, closed_by=closer_of(issue, events)), comments, events))
    else:
        page.issues.append(issue)


def closer_of(issue: Issue, events: tuple[Event, ...]) -> str | None:
    """Who closed a closed issue: as the server says, else the actor of the last closing."""
    if issue.closed_at is None or issue.closed_by is not None:
        return issue.closed_by
    return next((event.actor for event in reversed(events) if event.kind == "closed"), None)


def _must_stand(crawl: RestCrawl, repo: str) -> None:
    """Tell an issue that was transferred from a repository that was renamed under our hands."""
    found = crawl.client.get(f"/repos/{repo}", REPOSITORY).value
    name = found.full_name if found else ""
    if name.lower() != repo.lower():
        raise RemoteError(
            f"{repo} became {name or 'unreachable'} during the crawl: run the same command again"
        )
