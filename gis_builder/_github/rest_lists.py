"""The lists of a repository over REST: issues, then all comments, then all events, a stored page at a time.

REST nests nothing, so a thread is put together from three lists. Until all three are read, each thread is
marked as wanting its comments and events; see `rest_threads`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from msgspec.json import Decoder

from gis_builder._decoding import stamp
from gis_builder._github.pages import LEAST_ITEMS, MOST_ITEMS, Pages, most_of
from gis_builder._github.parse import well_formed
from gis_builder._github.rest_client import COMMENTS, EVENTS, ISSUES, RestCrawl
from gis_builder._github.rest_transport import RestReply
from gis_builder._records import Issue, IssueRef, Thread
from gis_builder._rest_records import (
    CommentObject,
    EventObject,
    IssueObject,
    comment_record,
    event_record,
    issue_record,
    number_of,
    pull_record,
)
from gis_builder._store import Page, RepoRow, Task, TopUp, Wish
from pairkit.address import is_path
from pairkit.errors import BadReply, DataError

# How many items a server may list by page number; a list that ends beyond this may go on all the same.
_SURE_DEPTH = 10_000
_EVERYTHING = 1 << 40  # more rows than a store has

_DECODERS: dict[str, Decoder[Any]] = {"issues": ISSUES, "comments": COMMENTS, "events": EVENTS}

Take = Callable[[Page, Task, Sequence[Any]], bool]


class Lists:
    """Reads the three lists of one repository, or of it what changed since a moment.

    Args:
        crawl: The tools.
        row: The repository.
        kind: Under which kind of task to remember how far it is.
        since: Only what was updated from then on; None reads everything.
    """

    def __init__(self, crawl: RestCrawl, row: RepoRow, kind: str, since: str | None) -> None:
        self._crawl, self._row, self._kind, self._since = crawl, row, kind, since
        self._repo = row.full_name

    def read(self) -> None:
        """Read all three; goes on where it was stopped.

        They are sorted by creation, since nothing moves in that order while it is being read. Only what is
        deleted meanwhile can shift a list; comments that are lost that way are found by their number.
        """
        self._follow("issues", self._path("issues", "state=all"), self._take_issues)
        # A comment or an event is wanted if its issue still waits for it; so those of pull requests are not.
        waiting = {top_up.ref.number for top_up in self._crawl.store.top_ups(self._repo, _EVERYTHING)}
        if not waiting:
            return
        self._follow("comments", self._path("issues/comments"), self._taking_comments(waiting))
        events = f"/repos/{self._repo}/issues/events?per_page=100"
        self._follow("events", events, self._taking_events(waiting))

    def _path(self, what: str, *parameters: str) -> str:
        since = () if self._since is None else (f"since={quote(self._since)}",)
        query = "&".join((*parameters, "sort=created", "direction=asc", "per_page=100", *since))
        return f"/repos/{self._repo}/{what}?{query}"

    def _follow(self, name: str, first: str, take: Take) -> None:
        """Read a list from its first page, or from where it was stopped, to its end."""
        stored = [task for task in self._crawl.store.tasks(self._repo, self._kind) if task.key == name]
        task = stored[0] if stored else Task(self._repo, self._kind, name, first, {"got": 0, "run": 0})
        if task.cursor and not is_path(task.cursor):
            raise DataError(
                f"table tasks: the cursor {task.cursor[:100]!r} is no path on a server; use another "
                "working folder",
                path=self._crawl.store.path,
            )
        # An update knows of how many issues there were, not of how many there are.
        known = self._row.max_number if name == "issues" and self._since is None else None
        most = MOST_ITEMS if known is None else most_of(known)
        pages = Pages(f"{self._repo} {name}", task.cursor, most=most, least=LEAST_ITEMS)
        while not task.done:
            task = self._step(task, first, take, pages)
            self._crawl.tell(self._repo, *self._progress(name, task))

    def _step(self, task: Task, first: str, take: Take, pages: Pages) -> Task:
        reply: RestReply[list[Any]] = self._crawl.client.get(task.cursor or first, _DECODERS[task.key])
        page = Page()
        if reply.status == 422 and task.state["got"]:
            words = f"the server lists no more than {task.state['got']} {task.key}"
            page.warnings.append((self._repo, words))
            task = replace(task, done=True)
        elif reply.value is None:
            raise BadReply(
                f"{self._repo}: its {task.key} can't be listed ({reply.message or 'not a list'}); "
                "run the same command again"
            )
        else:
            with well_formed(f"{self._repo} {task.key}"):
                task = self._next(task, first, reply.value, reply.next, take(page, task, reply.value))
                if not task.done:
                    came = [_identity(item) for item in reply.value]
                    pages.turn(came, task.cursor)
        page.tasks.append(task)
        self._crawl.save(self._repo, page)
        return task

    @staticmethod
    def _next(
        task: Task, first: str, items: Sequence[IssueObject], following: str | None, wants_more: bool
    ) -> Task:
        """The task as it stands after a page."""
        state = {**task.state, "got": task.state["got"] + len(items), "run": task.state["run"] + len(items)}
        if following is None and items and task.key != "events" and state["run"] >= _SURE_DEPTH:
            # A list by page numbers may end where the numbers do. Begin anew from the last item's creation:
            # all that is younger was updated since then as well.
            following, state["run"] = (
                f"{first.partition('&since=')[0]}&since={stamp(items[-1].created_at)}",
                0,
            )
        is_done = following is None or not wants_more
        return replace(task, cursor=following or task.cursor, state=state, done=is_done)

    def _progress(self, name: str, task: Task) -> tuple[str, int, int]:
        got: int = task.state["got"]
        if name == "issues":
            return "update" if self._since else "sweep", got, 0 if self._since else self._row.max_number
        return "threads" if name == "comments" else "top-ups", got, 0

    def _take_issues(self, page: Page, task: Task, items: Sequence[IssueObject]) -> bool:
        counts: dict[str, int] = {}
        for item in items:
            if item.is_pull:
                page.issues.append(pull_record(self._repo, item))
                continue
            issue = issue_record(self._repo, item)
            if self._since is not None and self._is_new_to_us(issue):
                page.wishes.append(Wish(issue.ref, with_thread=True))
                continue
            page.threads.append(self._begun(issue))
            page.granted.append(issue.ref)
            page.top_ups.extend(TopUp(issue.ref, part, "", 0) for part in ("comments", "events"))
            counts[str(issue.number)] = item.comments
        place = f"{task.state['got']:09}"
        page.tasks.append(Task(self._repo, counts_kind(self._kind), place, state=counts, done=True))
        return True

    def _is_new_to_us(self, issue: Issue) -> bool:
        """Whether what was said before the update is not stored, so that the lists would give half of it."""
        return issue.created_at < (self._since or "") and not self._crawl.store.has_thread(issue.ref)

    def _begun(self, issue: Issue) -> Thread:
        """The thread as far as it is known: nothing in a sweep, what came before an update in an update."""
        old = self._crawl.store.thread(issue.ref) if self._since else None
        if old is None or self._since is None:
            return Thread(issue)
        # The list gives the later events again, and has other places for them.
        events = tuple(event for event in old.events if event.created_at < self._since)
        return Thread(issue, old.comments, events)

    def _taking_comments(self, waiting: set[int]) -> Take:
        def take(page: Page, _task: Task, items: Sequence[CommentObject]) -> bool:
            for item in items:
                number = number_of(item)
                if number in waiting:
                    page.comments.append((IssueRef(self._repo, number), comment_record(item)))
            return True

        return take

    def _taking_events(self, waiting: set[int]) -> Take:
        """Events come newest first; what is older than an update's beginning is known."""

        def take(page: Page, _task: Task, items: Sequence[EventObject]) -> bool:
            wanted = [item for item in items if self._since is None or _time(item) >= self._since]
            for item in wanted:
                event = event_record(item)
                number = number_of(item) if event else 0
                if event and number in waiting:
                    page.events.append((IssueRef(self._repo, number), item.id or 0, event))
            return len(wanted) == len(items)

        return take


def _identity(item: IssueObject | CommentObject | EventObject) -> Hashable:
    """What tells an item of a list from all others, in whatever state."""
    return (item.number, item.updated_at) if isinstance(item, IssueObject) else item.id


def _time(item: EventObject) -> str:
    return stamp(item.created_at) if item.created_at else ""


def counts_kind(kind: str) -> str:
    """The kind of task that remembers how many comments each issue of a list has."""
    return f"{kind} counts"
