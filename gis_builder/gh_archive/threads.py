"""Converts the rows of a repository to threads: issues with comments, closings and reopenings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from gis_builder.detection import Rules
from gis_builder.detection.statements import instant
from gis_builder.gh_archive import archive_rows as r
from gis_builder.store.issue_records import Comment, Event, Issue, IssueRef, Kind, Thread

_SAME_MOMENT = timedelta(minutes=1)
_Row = Mapping[str, Any]


@dataclass(slots=True)
class RepoThreads:
    """The threads of a repository in the archive."""

    repo_id: int
    name: str
    named_at: tuple[str, int]
    former_names: frozenset[str] = frozenset()
    threads: dict[int, Thread] = field(default_factory=dict)
    pulls: frozenset[int] = frozenset()

    @property
    def rules(self) -> Rules:
        """The detection rules, with the repository's former names."""
        return Rules(former_names=self.former_names)

    @property
    def highest(self) -> int:
        """The highest known number."""
        return max((*self.threads, *self.pulls), default=0)

    def kind_of(self, ref: IssueRef) -> Kind:
        """The kind of a reference; unknown numbers may be lost or older than the hours."""
        names = {name.lower() for name in (self.name, *self.former_names)}
        if ref.repo.lower() not in names:
            return Kind.UNKNOWN
        if ref.number in self.threads:
            return Kind.ISSUE
        return Kind.PULL if ref.number in self.pulls else Kind.UNKNOWN


def threads_of(rows: Iterable[_Row]) -> RepoThreads:
    """Build the threads of a repository from its newest rows."""
    by_kind: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    names = sorted(by_kind[r.REPO], key=lambda row: (row["event_at"], row["event_id"]))
    latest = names[-1]
    repo = RepoThreads(
        latest["repo_id"],
        latest["name"],
        (latest["event_at"], latest["event_id"]),
        frozenset(row["name"] for row in names) - {latest["name"]},
        pulls=frozenset(row["number"] for row in by_kind[r.PULL]),
    )
    people = _People(repo.name, {row["name"] for row in by_kind[r.MEMBER]})
    comments: defaultdict[int, list[Comment]] = defaultdict(list)
    for row in by_kind[r.COMMENT]:
        comments[row["number"]].append(
            Comment(
                *(row["id"], row["author"], people.association(row), row["created_at"]),
                *(row["body"], row["is_bot"]),
            )
        )
    events: defaultdict[int, list[Event]] = defaultdict(list)
    for row in by_kind[r.EVENT]:
        events[row["number"]].append(
            Event(row["action"], row["author"], row["created_at"], state_reason=row["state_reason"])
        )
    for row in by_kind[r.ISSUE]:
        if (number := row["number"]) not in repo.pulls:
            issue = _issue(repo.name, row, people.association(row))
            repo.threads[number] = _thread(issue, comments[number], events[number])
    return repo


def _issue(repo: str, row: _Row, association: str) -> Issue:
    """The issue of a row, without `closed_by`, which the closing event has."""
    same = ("number", "title", "body", "state", "state_reason", "author", "created_at", "closed_at", "is_bot")
    return Issue(
        repo=repo,
        author_association=association,
        updated_at=row["changed_at"],
        closed_by=None,
        labels=tuple(row["labels"]),
        **{name: row[name] for name in same},
    )


class _People:
    """The associations of authors with a repository, for events that lack them."""

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
    events.sort(key=lambda event: event.created_at)  # they were sorted by id
    closings = [event for event in events if event.kind == "closed"]
    if issue.state != "closed" or issue.closed_at is None:
        return Thread(issue, tuple(comments), tuple(events))
    if not closings or instant(closings[-1].created_at) < instant(issue.closed_at) - _SAME_MOMENT:
        # The closing event was lost.
        closings.append(Event("closed", None, issue.closed_at, state_reason=issue.state_reason))
        events = sorted([*events, closings[-1]], key=lambda event: event.created_at)
    return Thread(replace(issue, closed_by=closings[-1].actor), tuple(comments), tuple(events))
