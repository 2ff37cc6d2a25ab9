"""The served trackers, read from dumps into memory."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gis_builder.trackers.dump import BrokenRows, closing_events, find_dumps

_GHOST = "ghost"  # REST's name for a deleted account; GraphQL has null
_MAX_MOVES = 8  # of one issue, so that a cycle of transfers ends


@dataclass(slots=True, eq=False)
class Account:
    """An author or actor."""

    login: str
    kind: str = "User"  # User | Bot | Organization | Mannequin


@dataclass(slots=True, eq=False)
class Comment:
    """One comment."""

    id: int
    author: Account | None
    association: str
    created_at: str
    updated_at: str
    body: str | None


@dataclass(slots=True, eq=False)
class Event:
    """One event of a timeline."""

    kind: str
    actor: Account | None
    created_at: str
    state_reason: str | None = None
    canonical: str | None = None  # owner/name#number


@dataclass(slots=True, eq=False)
class Issue:
    """One issue or pull request; comments in order of id, events in order of time."""

    id: int
    number: int
    title: str
    body: str | None
    state: str
    state_reason: str | None
    author: Account | None
    association: str
    labels: tuple[str, ...]
    created_at: str
    updated_at: str
    closed_at: str | None
    is_pull: bool
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @property
    def canonical(self):
        """The original of a closed issue: that of the last duplicate mark that was not undone."""
        marks = []
        for event in self.events if self.state == "closed" else ():
            if event.kind == "marked_as_duplicate" and event.canonical:
                marks.append(event.canonical)
            elif event.kind == "unmarked_as_duplicate":
                marks = [
                    mark
                    for mark in marks
                    if event.canonical and mark != event.canonical
                ]
        return marks[-1] if marks else None


@dataclass(eq=False)
class Repository:
    """A repository with its issues."""

    name: str
    info: Mapping[str, Any] = field(default_factory=dict)  # repo.json
    issues: dict[int, Issue] = field(default_factory=dict)
    moved: dict[int, str] = field(default_factory=dict)  # where transferred issues went

    @property
    def has_issues(self):
        """Whether issues are enabled."""
        return bool(self.info.get("has_issues", True))

    def issue(self, number):
        """The visible issue or pull request with this number."""
        issue = self.issues.get(number)
        return issue if issue is None or issue.is_pull or self.has_issues else None


class Catalogue:
    """All repositories by name and former name; private ones are hidden."""

    def __init__(self, roots):
        self._by_name = {}
        self._by_former_name = {}
        for repository in _Reader().read(roots):
            self._by_name[repository.name.lower()] = repository
            for former in repository.info.get("previous_names", ()):
                self._by_former_name[former.lower()] = repository

    def find(self, name, *, follow_renames=True):
        """The visible repository with this name, ignoring case."""
        found = self._by_name.get(name.lower())
        if found is None and follow_renames:
            found = self._by_former_name.get(name.lower())
        return None if found is None or found.info.get("private") else found

    def follow(self, reference):
        """The issue `owner/name#number`, following transfers."""
        for _ in range(_MAX_MOVES):
            name, _, number = reference.partition("#")
            target = self.find(name)
            if target is None:
                return None
            if issue := target.issue(int(number)):
                return target, issue
            reference = target.moved.get(int(number), "")
        return None


class _Reader:
    """Reads dumps, with one object per account."""

    def __init__(self):
        self._repositories = {}
        self._accounts = {}

    def read(self, roots):
        """All repositories by name; each may be spread over several folders."""
        for dump in (
            dump
            for root in roots
            for dump in find_dumps(root, None, BrokenRows(skip=False))
        ):
            if dump.info is not None:
                info = json.loads((dump.folder / "repo.json").read_bytes())
                self._repository(dump.info.full_name).info = info
            for row in dump.issues():
                issue = self._repository(row.repo).issues[row.number] = self._issue(row)
                closings = () if dump.has_events else closing_events(row.record)
                for closing in closings:
                    closer = self._account(row.value.get("closed_by"))
                    issue.events.append(
                        Event(
                            "closed", closer, closing.created_at, closing.state_reason
                        )
                    )
            for comment_row in dump.comments():
                if issue := self._issue_of(comment_row):
                    issue.comments.append(self._comment(comment_row.value))
            for event_row in dump.events():
                if issue := self._issue_of(event_row):
                    issue.events.append(self._event(event_row.value))
            for missing in dump.missing():
                if missing.record.to:
                    self._repository(missing.repo).moved[missing.number] = (
                        missing.record.to
                    )
        for repository in self._repositories.values():
            repository.issues = dict(sorted(repository.issues.items()))
            for issue in repository.issues.values():
                distinct = {comment.id: comment for comment in issue.comments}
                issue.comments = sorted(
                    distinct.values(), key=lambda comment: comment.id
                )
                issue.events.sort(key=lambda event: event.created_at)
        return [repository for _, repository in sorted(self._repositories.items())]

    def _repository(self, name):
        return self._repositories.setdefault(name.lower(), Repository(name))

    def _issue_of(self, row):
        return self._repository(row.repo).issues.get(row.number)

    def _issue(self, row):
        value = row.value
        return Issue(
            id=value.get("id")
            or zlib.crc32(row.repo.lower().encode()) % 2000 * 1_000_000 + row.number,
            number=row.number,
            title=value["title"],
            body=value.get("body"),
            state=value["state"],
            state_reason=value.get("state_reason"),
            author=self._account(value.get("user")),
            association=value.get("author_association") or "NONE",
            labels=tuple(label["name"] for label in value.get("labels") or ()),
            created_at=value["created_at"],
            updated_at=value["updated_at"],
            closed_at=value.get("closed_at"),
            is_pull="pull_request" in value,
        )

    def _comment(self, value):
        return Comment(
            id=value["id"],
            author=self._account(value.get("user")),
            association=value.get("author_association") or "NONE",
            created_at=value["created_at"],
            updated_at=value.get("updated_at") or value["created_at"],
            body=value.get("body"),
        )

    def _event(self, value):
        return Event(
            kind=value["event"],
            actor=self._account(value.get("actor")),
            created_at=value["created_at"],
            state_reason=value.get("state_reason"),
            canonical=value.get("canonical"),
        )

    def _account(self, value):
        if value is None or value["login"] == _GHOST:
            return None
        login = value["login"]
        kind = "Bot" if login.endswith("[bot]") else "User"
        account = self._accounts.setdefault(login, Account(login, kind))
        account.kind = value.get("type") or account.kind
        return account
