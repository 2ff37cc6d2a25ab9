"""Records of a crawl: repositories, costs, tasks, and the pages that are stored."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from gis_builder.store.issue_records import Comment, Event, Issue, IssueRef, Thread

RATE_LIMIT = "budget"  # key of the last known rate limit in the table meta
# The parts of a page that are counted in the log.
_LOGGED = (
    "threads",
    "issues",
    "comments",
    "events",
    "pending",
    "missing",
    "repos",
    "warnings",
)


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
        """Describe the limit."""
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
    repos: list[RepoRow] = []
    outdated: list[str] = []  # repositories whose earlier warnings are deleted
    warnings: list[tuple[str, str]] = []  # repository, text
    usage: dict[str, Usage] = {}
    notes: dict[str, str] = {}  # for the table meta

    def __str__(self) -> str:
        counts = {name: len(getattr(self, name)) for name in _LOGGED}
        logged = [f"{name} {count:,}" for name, count in counts.items() if count]
        return ", ".join(logged) or "progress"
