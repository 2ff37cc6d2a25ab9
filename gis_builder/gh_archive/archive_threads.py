"""The threads of a repository, from the newest rows of the archive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct

from gis_builder.detection.statements import Rules, instant
from gis_builder.gh_archive import archive_rows as r
from gis_builder.settings import DetectSettings
from gis_builder.store.issue_records import (
    Comment,
    Event,
    Issue,
    IssueRef,
    Kind,
    Thread,
)

_SAME_MOMENT = timedelta(minutes=1)
_Row = Mapping[str, Any]


class RepoThreads(Struct):
    """The threads of a repository in the archive."""

    repo_id: int
    name: str
    named_at: tuple[str, int]
    former_names: frozenset[str] = frozenset()
    threads: dict[int, Thread] = {}
    pulls: frozenset[int] = frozenset()

    def rules(self, settings: DetectSettings) -> Rules:
        """The detection rules, with the repository's former names."""
        return Rules(
            former_names=self.former_names, min_confidence=settings.min_confidence
        )

    @property
    def highest(self) -> int:
        """The highest known number."""
        return max((*self.threads, *self.pulls), default=0)

    def full_name(self, repo: str) -> str:
        """The present name of this repository, instead of a former name or another spelling."""
        names = {name.lower() for name in (self.name, *self.former_names)}
        return self.name if repo.lower() in names else repo

    def kind_of(self, ref: IssueRef) -> Kind:
        """The kind of a reference; unknown numbers may be lost or older than the hours."""
        if self.full_name(ref.repo) == self.name:
            if ref.number in self.threads:
                return Kind.ISSUE
            if ref.number in self.pulls:
                return Kind.PULL
        return Kind.UNKNOWN


def threads_of(rows: Iterable[_Row]) -> RepoThreads:
    """Build the threads of a repository from its newest rows."""
    by_kind: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    names = sorted(by_kind[r.REPO], key=itemgetter("event_at", "event_id"))
    latest = names[-1]
    repo = RepoThreads(
        repo_id=latest["repo_id"],
        name=latest["name"],
        named_at=(latest["event_at"], latest["event_id"]),
        former_names=frozenset(row["name"] for row in names) - {latest["name"]},
        pulls=frozenset(row["number"] for row in by_kind[r.PULL]),
    )
    members = {row["name"] for row in by_kind[r.MEMBER]}
    comments: defaultdict[int, list[Comment]] = defaultdict(list)
    for row in by_kind[r.COMMENT]:
        comment = Comment(
            id=row["id"],
            author=row["author"],
            author_association=_association(row, repo.name, members),
            created_at=row["created_at"],
            body=row["body"],
            is_bot=row["is_bot"],
        )
        comments[row["number"]].append(comment)
    events: defaultdict[int, list[Event]] = defaultdict(list)
    for row in by_kind[r.EVENT]:
        event = Event(
            kind=row["action"],
            actor=row["author"],
            created_at=row["created_at"],
            state_reason=row["state_reason"],
        )
        events[row["number"]].append(event)
    for row in by_kind[r.ISSUE]:
        number = row["number"]
        if number not in repo.pulls:
            issue = _issue(repo.name, row, _association(row, repo.name, members))
            repo.threads[number] = _thread(issue, comments[number], events[number])
    return repo


def _issue(repo: str, row: _Row, association: str) -> Issue:
    """The issue of a row, without `closed_by`, which the closing event has."""
    return Issue(
        repo=repo,
        number=row["number"],
        title=row["title"],
        body=row["body"],
        state=row["state"],
        state_reason=row["state_reason"],
        author=row["author"],
        author_association=association,
        created_at=row["created_at"],
        updated_at=row["changed_at"],
        closed_at=row["closed_at"],
        closed_by=None,
        is_bot=row["is_bot"],
        labels=tuple(row["labels"]),
    )


def _association(row: _Row, repo: str, members: Collection[str]) -> str:
    """The association of a row's author with the repository, which some events lack."""
    if row["association"] is not None:
        return str(row["association"])
    author = row["author"]
    if author is not None and repo.lower().startswith(f"{author.lower()}/"):
        return "OWNER"
    return "MEMBER" if author in members else "NONE"


def _thread(issue: Issue, comments: list[Comment], events: list[Event]) -> Thread:
    comments.sort(key=attrgetter("created_at", "id"))
    events.sort(key=attrgetter("created_at"))  # they were sorted by id
    closed_at = issue.closed_at
    if issue.state == "closed" and closed_at is not None:
        closings = [event for event in events if event.kind == "closed"]
        earliest = instant(closed_at) - _SAME_MOMENT
        if not closings or instant(closings[-1].created_at) < earliest:
            # The closing event was lost.
            lost = Event("closed", None, closed_at, state_reason=issue.state_reason)
            closings.append(lost)
            events = sorted([*events, lost], key=attrgetter("created_at"))
        issue = replace(issue, closed_by=closings[-1].actor)
    return Thread(issue, tuple(comments), tuple(events))
