"""A repository's rows to its threads: each issue as it was last seen, its comments, closings, reopenings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from gis_builder._archive import rows as r
from gis_builder._detect import Rules
from gis_builder._detect.statements import instant
from gis_builder._records import Comment, Event, Issue, IssueRef, Kind, Thread

_SAME_MOMENT = timedelta(minutes=1)
_Row = Mapping[str, Any]


@dataclass(slots=True)
class RepoThreads:
    """What the archive knows of one repository.

    Attributes:
        repo_id: GitHub's id, which stays when the name changes.
        name: What it is called now, as far as is known.
        named_at: When it was called so last, and in which event: of two of one name the later has it.
        former_names: What it was called before.
        threads: By number, ascending.
        pulls: The numbers of its pull requests.
        fetched: Issues that had no event, as GitHub has them now, by number.
        missing: Numbers that GitHub has no issue of.
    """

    repo_id: int
    name: str
    named_at: tuple[str, int]
    former_names: frozenset[str] = frozenset()
    threads: dict[int, Thread] = field(default_factory=dict)
    pulls: frozenset[int] = frozenset()
    fetched: dict[int, Issue] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()

    def learn(self, issues: Iterable[Issue], pulls: Iterable[int], missing: Iterable[int]) -> None:
        """Take in what GitHub says of numbers that had no event."""
        self.fetched |= {issue.number: issue for issue in issues if issue.number not in self.threads}
        self.pulls |= frozenset(pulls)
        self.missing |= frozenset(missing)

    def thread(self, number: int) -> Thread | None:
        """What is known of an issue; of one that was fetched no comment and no event."""
        if number in self.threads:
            return self.threads[number]
        return Thread(self.fetched[number], (), ()) if number in self.fetched else None

    @property
    def rules(self) -> Rules:
        """A reference by a name that it once had is one to itself."""
        return Rules(former_names=self.former_names)

    @property
    def highest(self) -> int:
        """The highest number that was seen."""
        return max((*self.threads, *self.pulls), default=0)

    @property
    def closed(self) -> int:
        """How many issues are closed."""
        return sum(thread.issue.state == "closed" for thread in self.threads.values())

    def is_home(self, ref: IssueRef) -> bool:
        """Whether a reference is to this repository, by whatever name."""
        return ref.repo.lower() in {name.lower() for name in (self.name, *self.former_names)}

    def kind_of(self, ref: IssueRef) -> Kind:
        """What a reference points at; what was never seen may have been lost, or be older than the hours."""
        if not self.is_home(ref):
            return Kind.UNKNOWN
        if self.thread(ref.number) is not None:
            return Kind.ISSUE
        if ref.number in self.pulls:
            return Kind.PULL
        return Kind.MISSING if ref.number in self.missing else Kind.UNKNOWN


def threads_of(rows: Iterable[_Row]) -> RepoThreads:
    """Put the rows of one repository together, of which each is the newest of its identity."""
    by_kind: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    names = sorted(by_kind[r.REPO], key=lambda row: (row["event_at"], row["event_id"]))
    latest = names[-1]
    found = RepoThreads(
        latest["repo_id"],
        latest["name"],
        (latest["event_at"], latest["event_id"]),
        frozenset(row["name"] for row in names) - {latest["name"]},
        pulls=frozenset(row["number"] for row in by_kind[r.PULL]),
    )
    people = _People(found.name, {row["name"] for row in by_kind[r.MEMBER]})
    comments: defaultdict[int, list[Comment]] = defaultdict(list)
    for row in by_kind[r.COMMENT]:
        comments[row["number"]].append(r.comment_of(row, people.association(row)))
    events: defaultdict[int, list[Event]] = defaultdict(list)
    for row in by_kind[r.EVENT]:
        events[row["number"]].append(r.event_of(row))
    for row in by_kind[r.ISSUE]:
        if (number := row["number"]) not in found.pulls:
            issue = r.issue_of(found.name, row, people.association(row))
            found.threads[number] = _thread(issue, comments[number], events[number])
    return found


class _People:
    """What authors are to a repository, where the events do not say it."""

    def __init__(self, repo: str, members: set[str]) -> None:
        self._owner, self._members = repo.partition("/")[0].lower(), members

    def association(self, row: _Row) -> str:
        if row["association"] is not None:
            return str(row["association"])
        author = row["author"]
        if author is not None and author.lower() == self._owner:
            return "OWNER"
        return "MEMBER" if author in self._members else "NONE"


def _thread(issue: Issue, comments: list[Comment], events: list[Event]) -> Thread:
    comments.sort(key=lambda comment: (comment.created_at, comment.id))
    events.sort(key=lambda event: event.created_at)  # rows come in the order of the events' ids
    closings = [event for event in events if event.kind == "closed"]
    if issue.state != "closed" or issue.closed_at is None:
        return Thread(issue, tuple(comments), tuple(events))
    if not closings or instant(closings[-1].created_at) < instant(issue.closed_at) - _SAME_MOMENT:
        # The event was lost; that there was one, the issue tells.
        closings.append(Event("closed", None, issue.closed_at, state_reason=issue.state_reason))
        events = sorted([*events, closings[-1]], key=lambda event: event.created_at)
    return Thread(replace(issue, closed_by=closings[-1].actor), tuple(comments), tuple(events))
