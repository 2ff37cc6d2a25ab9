"""The records that stages exchange: issues, threads, verdicts, texts and pairs.

Times are ISO 8601 strings in UTC in GitHub's format (`2015-01-31T23:59:59Z`), which sort as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, TypeAlias

GITHUB = "https://github.com"


class TicketRow(NamedTuple):
    """What a store keeps of a ticket of another tracker beside its issue."""

    number: int
    page: str  # its URL, or its id if there is none
    priority: str = ""


Tickets: TypeAlias = dict[str, dict[str, TicketRow]]  # by repository and id


class IssueRef(NamedTuple):
    """An issue or pull request by repository (`owner/name`) and number."""

    repo: str
    number: int

    def __str__(self) -> str:
        return f"{self.repo}#{self.number}"

    def page(self, site: str) -> str:
        """The URL of the issue's page; GitHub redirects it for pull requests."""
        if isinstance(site, TicketSite) and self in site.rows:
            _, row = site.rows[self]
            return row.page
        return f"{site}/{self.repo}/issues/{self.number}"

    def key(self, site: str) -> str:
        """The ticket's id in its tracker, or `#number`."""
        if isinstance(site, TicketSite) and self in site.rows:
            id_, _ = site.rows[self]
            return id_
        return f"#{self.number}"


IssueRefs: TypeAlias = tuple[IssueRef, ...]


class TicketSite(str):
    """The root URL of pages, with the ids and rows of tickets of other trackers."""

    rows: Mapping[IssueRef, tuple[str, TicketRow]] = {}

    @classmethod
    def of(cls, tickets: Tickets) -> TicketSite:
        """Create the site of a store with these tickets."""
        site = cls(GITHUB)
        site.rows = {
            IssueRef(repo, row.number): (id_, row)
            for repo, rows in tickets.items()
            for id_, row in rows.items()
        }
        return site


class Kind(StrEnum):
    """The kind of item that a reference points to."""

    ISSUE = "issue"
    PULL = "pull"
    MISSING = "missing"  # deleted, transferred, or never existed
    UNKNOWN = "unknown"  # not fetched


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue; `body` is empty where GitHub has null."""

    repo: str
    number: int
    title: str
    body: str
    state: str  # open | closed
    state_reason: str | None  # completed | not_planned | duplicate | reopened
    author: str | None  # None: the account was deleted
    author_association: str  # OWNER | MEMBER | COLLABORATOR | CONTRIBUTOR | NONE | ...
    created_at: str
    updated_at: str
    closed_at: str | None = None
    closed_by: str | None = None
    is_pull: bool = False
    is_bot: bool = False
    labels: tuple[str, ...] = ()
    duplicate_of: IssueRef | None = None  # GitHub's field, if the server has it

    @property
    def ref(self) -> IssueRef:
        """The reference of this issue."""
        return IssueRef(self.repo, self.number)


def pull_request(
    ref: IssueRef, title: str, state: str, created_at: str, updated_at: str
) -> Issue:
    """What is kept of a pull request, because only issues are in the dataset."""
    return Issue(
        repo=ref.repo,
        number=ref.number,
        title=title,
        body="",
        state=state,
        state_reason=None,
        author=None,
        author_association="NONE",
        created_at=created_at,
        updated_at=updated_at,
        is_pull=True,
    )


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment."""

    id: int  # GitHub's database id: unique, ascending in time
    author: str | None
    author_association: str
    created_at: str
    body: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """An event that is relevant to duplicates."""

    kind: str  # closed | reopened | marked_as_duplicate | unmarked_as_duplicate
    actor: str | None
    created_at: str
    # The canonical issue of a mark or of a closing as duplicate.
    target: IssueRef | None = None
    target_is_pull: bool = False
    state_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """An issue with its comments and events, each in order of time."""

    issue: Issue
    comments: tuple[Comment, ...] = ()
    events: tuple[Event, ...] = ()


def with_closer(issue: Issue, events: Iterable[Event]) -> Issue:
    """The issue with the account of its last closing, if it is closed."""
    for event in events:
        if event.kind == "closed" and issue.closed_at:
            issue = replace(issue, closed_by=event.actor)
    return issue


class Relation(StrEnum):
    """The relation of an issue to the one it was closed for, by marks, labels or closing words."""

    DUPLICATE = "duplicate"  # marked or called a duplicate
    SAME = "same"  # "same issue as #1", "this is #1"
    REPORTED = "reported"  # "already reported as #1", "known issue #1"
    SUPERSEDED = "superseded"  # "in favour of #1", "subsumed by #1", "moved to #1"
    TRACKED = "tracked"  # "tracked in #1", "covered by #1"
    PART_OF = "part-of"  # "part of #1", "a special case of #1"


class VerdictOutcome(StrEnum):
    """Whether an issue is a duplicate."""

    DUPLICATE = "duplicate"
    NOT = "not"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A statement for or against a duplicate, which explains a verdict."""

    kind: str  # the signal, e.g. marked_event, closer_comment, maintainer_comment, label, reopened, disputed
    url: str
    who: str | None
    when: str
    targets: IssueRefs = ()
    said: str = ""  # the matched words as they are compared, at most 200 characters


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on an issue and its reasons."""

    ref: IssueRef
    outcome: VerdictOutcome
    targets: IssueRefs  # the canonical issues; for `uncertain` the likely ones
    confidence: float  # in [0, 1]
    reason: str  # a short code, counted in statistics.json
    evidence: tuple[Evidence, ...] = ()
    # Of the issue to the targets; without targets it has no meaning.
    relation: Relation = Relation.DUPLICATE

    @property
    def repos(self) -> set[str]:
        """The repositories of the issue and its targets."""
        return {ref.repo for ref in (self.ref, *self.targets)}


@dataclass(frozen=True, slots=True)
class DuplicateCluster:
    """Issues that are connected by duplicate edges."""

    id: str  # "owner/name#lowest number"
    members: IssueRefs  # ascending by number
    canonical: IssueRef  # the member that the others were closed for
    edges: tuple[tuple[IssueRef, IssueRef], ...]  # (duplicate, target) of the verdicts


@dataclass(frozen=True, slots=True)
class IssueText:
    """The rendered text of an issue; `removed` counts what was removed, by kind."""

    ref: IssueRef
    text: str
    created_at: str
    removed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grounds:
    """The reasons of a duplicate edge."""

    relation: Relation
    reason: str  # the verdict's
    confidence: float  # the verdict's, in [0, 1]
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class IssuePair:
    """A row of the dataset without its texts; label 1 means duplicates."""

    first: IssueRef
    second: IssueRef
    label: int  # 0 | 1
    cluster: str  # the duplicate cluster of a positive ("owner/name#lowest"); empty for a negative
    # None for a negative, and for two issues connected only through others.
    grounds: Grounds | None = None
    negative_kind: str = ""  # random | hard, for a negative
    # That the two issues of a positive describe the same problem.
    same_probability: float | None = None

    def dropped(self, reason: str) -> DroppedPair:
        """The record of this pair if it is dropped."""
        return DroppedPair(self.first, self.second, self.label, reason)


class DroppedPair(NamedTuple):
    """A pair that was dropped, and the reason."""

    first: IssueRef
    second: IssueRef
    label: int
    reason: str  # a short code, counted in statistics.json
