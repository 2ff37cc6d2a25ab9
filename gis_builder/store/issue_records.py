"""The records that stages exchange: issues, threads, verdicts, texts and pairs; and those of a crawl.

Times are ISO 8601 strings in UTC in GitHub's format (`2015-01-31T23:59:59Z`), which sort as text.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeAlias

from msgspec import Meta, Struct

GITHUB = "https://github.com"
RATE_LIMIT = "budget"  # key of the last known rate limit in the table meta


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
    ref: IssueRef,
    title: str,
    state: str,
    created_at: str,
    updated_at: str,
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


class RepoOutcome(StrEnum):
    """The outcome of a requested repository."""

    OK = "ok"
    RENAMED = "renamed"
    NOT_FOUND = "not_found"
    PRIVATE = "private"
    EMPTY = "empty"
    ISSUES_DISABLED = "issues_disabled"
    FAILED = "failed"


@dataclass(frozen=True)
class RepoRow:
    """A repository under a requested name, with the server's metadata."""

    name: str  # as requested
    outcome: RepoOutcome
    full_name: str = ""  # the server's spelling; empty if it does not exist
    detail: str = ""  # why the outcome is not `ok`
    max_number: int = 0  # of issues and pull requests
    issue_count: int = 0
    created_at: str = ""  # of the repository
    newest_at: str = ""  # creation of its newest issue
    as_of: str = ""  # newest update of an issue when the crawl began; the next update starts here
    labels: tuple[str, ...] = ()  # labels of duplicates
    listed: bool = True  # False: not requested, but a target is in it

    @property
    def is_crawlable(self) -> bool:
        """Whether there are issues to fetch."""
        return self.outcome in (RepoOutcome.OK, RepoOutcome.RENAMED)


def full_names(rows: Iterable[RepoRow]) -> list[str]:
    """The distinct repositories that can be crawled, by name."""
    return sorted({row.full_name for row in rows if row.is_crawlable})


class Absence(StrEnum):
    """Why an issue is missing."""

    DELETED = "deleted"  # or never existed; the server doesn't distinguish
    TRANSFERRED = "transferred"
    NO_REPOSITORY = "no_repository"
    WITHHELD = "withheld"  # the server fails on it permanently


@dataclass(frozen=True)
class TopUp:
    """A nested connection whose beginning is still to be fetched."""

    ref: IssueRef
    part: str  # comments | events | labels
    before: str  # cursor of the earliest stored item
    have: int  # number of stored items


@dataclass(frozen=True)
class CrawlTask:
    """A resumable task; finished tasks stay in the store, so that they are not repeated."""

    repo: str
    kind: str
    key: str = ""
    cursor: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    done: bool = False


@dataclass(frozen=True)
class Usage:
    """The cost of requests. A failed request counts as one point, because its cost is unknown."""

    points: int = 0
    requests: int = 0
    seconds: float = 0.0  # waiting for responses and limits

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.points + other.points,
            self.requests + other.requests,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class RateLimit:
    """The last known rate limit of a token, in points (GraphQL) or requests (REST)."""

    limit: int
    remaining: int
    reset: Annotated[float, Meta(ge=0, le=1e12)]  # epoch seconds, by the server's clock

    def describe(self, now: float) -> str:
        """What is left of the limit, and until when."""
        if now >= self.reset:
            return f"{self.limit:,} points left: the last known limit was reset"
        reset_at = time.strftime("%H:%M", time.localtime(self.reset))
        return f"{self.remaining:,} of {self.limit:,} points left until {reset_at}"


@dataclass
class Tally:
    """The counts of stored and remaining items of a repository."""

    issues: int = 0  # with or without their threads
    begun: int = 0  # complete and incomplete threads
    threads: int = 0  # complete threads
    comments: int = 0
    pending: int = 0  # issues to be fetched by number
    top_ups: int = 0  # threads to be completed
    done: Counter[str] = field(default_factory=Counter)  # finished tasks by kind
    left: Counter[str] = field(default_factory=Counter)  # open tasks by kind

    @property
    def open_work(self) -> int:
        """Threads, searches and lists that are still to be fetched."""
        return self.pending + self.top_ups + self.left.total()


class Page(Struct):
    """The content of one response, stored in one transaction."""

    threads: list[Thread] = []  # replace stored threads
    issues: list[Issue] = []  # without threads; don't replace stored issues
    missing: dict[IssueRef, tuple[Absence, str]] = {}
    top_ups: list[TopUp] = []  # connections that remain
    topped_up: list[TopUp] = []  # earlier top-ups that this page answers
    comments: list[tuple[IssueRef, Comment]] = []
    events: list[tuple[IssueRef, int, Event]] = []  # int: position from the end, < 0
    labels: list[tuple[IssueRef, tuple[str, ...]]] = []
    pending: list[IssueRef] = []  # threads to fetch
    fetched: list[IssueRef] = []  # no longer pending
    tasks: list[CrawlTask] = []
    dropped: list[tuple[str, str]] = []  # repository and kind of tasks to delete
    renamed: list[tuple[str, str]] = []  # former and present full name
    repos: list[RepoRow] = []
    outdated: list[str] = []  # repositories whose earlier warnings are deleted
    warnings: list[tuple[str, str]] = []  # repository, text
    usage: dict[str, Usage] = {}
    notes: dict[str, str] = {}  # for the table meta

    def __str__(self) -> str:
        counts = {name: len(getattr(self, name)) for name in self.__struct_fields__}
        return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
