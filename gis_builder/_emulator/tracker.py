"""What the emulator holds in memory of a tracker: only what it serves, shared wherever it can be shared."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Replicas of one repository share their texts; their ids must differ all the same.
_REPLICA_IDS = 10_000_000_000


@dataclass(slots=True, eq=False)
class Account:
    """Somebody who wrote or did something."""

    login: str
    kind: str = "User"  # User | Bot | Organization | Mannequin


@dataclass(slots=True, eq=False)
class Comment:
    """One comment of a thread."""

    id: int
    author: Account | None
    association: str
    created_at: str
    updated_at: str
    body: str | None


@dataclass(slots=True, eq=False)
class Event:
    """One event of a thread's timeline."""

    kind: str  # closed | reopened | marked_as_duplicate | unmarked_as_duplicate | labeled
    actor: Account | None
    created_at: str
    state_reason: str | None = None
    canonical: str | None = None  # owner/name#number
    label: str | None = None


@dataclass(slots=True, eq=False)
class Issue:
    """One issue or pull request with its thread; comments in order of id, events in order of time."""

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
    closed_by: Account | None
    is_pull: bool = False
    is_merged: bool = False
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    labelled: list[Event] = field(default_factory=list)  # labels that were put on here; a dump tells of none

    @property
    def canonical(self) -> str | None:
        """What a closed issue stands marked as a duplicate of: the last mark that nobody took back."""
        if self.state != "closed":
            return None
        marks: list[str] = []
        for event in self.events:
            if event.kind == "marked_as_duplicate" and event.canonical:
                marks.append(event.canonical)
            elif event.kind == "unmarked_as_duplicate":
                marks = [mark for mark in marks if event.canonical and mark != event.canonical]
        return marks[-1] if marks else None


@dataclass(slots=True)
class Missing:
    """A number that no longer answers: deleted, or transferred to another repository."""

    status: Literal["deleted", "transferred"]
    to: str | None = None  # owner/name#number


@dataclass(eq=False)
class Tracker:
    """The issues of one repository as the dump has them, whatever names it is served under."""

    name: str
    info: Mapping[str, Any] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    missing: dict[int, Missing] = field(default_factory=dict)
    orphans: int = 0  # comments and events in the dump whose issue the dump lacks

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A yes-or-no property from `repo.json`."""
        return bool(self.info.get(key, default))

    @property
    def labels(self) -> list[str]:
        """Every label in use, in order of name."""
        return sorted({label for issue in self.issues.values() for label in issue.labels})


@dataclass(eq=False)
class Repository:
    """A tracker under one of the names that it is served under."""

    name: str  # owner/name
    tracker: Tracker
    replica: int = 0  # 0: the original

    @property
    def id(self) -> int:
        """A database id that depends on the name only."""
        return zlib.crc32(self.name.lower().encode()) & 0x7FFFFFFF

    @property
    def is_visible(self) -> bool:
        """Whether a token may see it; private ones answer as if they did not exist."""
        return not self.tracker.flag("private")

    @property
    def has_issues(self) -> bool:
        """Whether the tracker is switched on."""
        return self.tracker.flag("has_issues", default=True)

    def issue(self, number: int) -> Issue | None:
        """The issue or pull request with this number, if it can be seen here."""
        issue = self.tracker.issues.get(number)
        return issue if issue is None or issue.is_pull or self.has_issues else None

    def unique_id(self, id_in_dump: int) -> int:
        """The id under which this repository serves what the dump calls `id_in_dump`."""
        return id_in_dump + self.replica * _REPLICA_IDS

    def url(self, number: int, *, is_pull: bool = False) -> str:
        """The page that a person would open."""
        return f"https://github.com/{self.name}/{'pull' if is_pull else 'issues'}/{number}"


class Catalogue:
    """Every repository that is served, by name, by former name and by id."""

    def __init__(self, trackers: Iterable[Tracker], *, replicate: int = 1) -> None:
        self.repositories: list[Repository] = []
        self._by_name: dict[str, Repository] = {}
        self._by_former_name: dict[str, Repository] = {}
        for tracker in trackers:
            for replica in range(replicate):
                self._add(tracker, replica)
        self._by_id = {repository.id: repository for repository in self.repositories}

    def _add(self, tracker: Tracker, replica: int) -> None:
        repository = Repository(_replica_name(tracker.name, replica), tracker, replica)
        self.repositories.append(repository)
        self._by_name[repository.name.lower()] = repository
        for former in tracker.info.get("previous_names", ()):
            self._by_former_name[_replica_name(former, replica).lower()] = repository

    def find(self, name: str, *, follow_renames: bool = True) -> Repository | None:
        """The visible repository called `name`, in any case, now or formerly."""
        found = self._by_name.get(name.lower())
        if found is None and follow_renames:
            found = self._by_former_name.get(name.lower())
        return found if found and found.is_visible else None

    def find_id(self, repository_id: int) -> Repository | None:
        """The visible repository with this database id."""
        found = self._by_id.get(repository_id)
        return found if found and found.is_visible else None

    def follow(self, reference: str, seen_from: Repository) -> tuple[Repository, Issue] | None:
        """The issue that `owner/name#number` means in a text of `seen_from`, through transfers."""
        for _ in range(8):  # a chain of transfers; a ring of them leads nowhere
            name, _, number = reference.partition("#")
            target = self.find(_replica_name(name, seen_from.replica))
            if target is None:
                return None
            issue = target.issue(int(number))
            if issue is not None:
                return target, issue
            missing = target.tracker.missing.get(int(number))
            if missing is None or missing.to is None:
                return None
            reference = missing.to
        return None


def _replica_name(name: str, replica: int) -> str:
    return name if replica == 0 else f"{name}-{replica + 1}"
