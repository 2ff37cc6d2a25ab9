"""Records that a crawl stores, and the store's records of repositories and costs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from gis_builder.store.records import Comment, Event, Issue, IssueRef, Thread

RATE_LIMIT = "budget"  # the key of the note on what the server said last of its limit


class RepoOutcome(StrEnum):
    """The outcome of a requested repository."""

    OK = "ok"
    RENAMED = "renamed"
    NOT_FOUND = "not_found"
    PRIVATE = "private"
    EMPTY = "empty"
    ISSUES_DISABLED = "issues_disabled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RepoRow:
    """A repository as it was asked for and as the server knows it."""

    name: str  # as asked for
    outcome: RepoOutcome
    full_name: str = ""  # as the server writes it; empty where there is none
    detail: str = ""  # for a person: why it is not `ok`
    max_number: int = 0  # the newest issue's or pull request's
    issue_count: int = 0
    created_at: str = ""  # of the repository
    newest_at: str = ""  # creation of its newest issue
    as_of: str = ""  # newest update of an issue when the crawl began; an update starts from here
    labels: tuple[str, ...] = ()  # those that say "duplicate"
    listed: bool = True  # False: only met as the home of another repository's target

    @property
    def is_crawlable(self) -> bool:
        """Whether there are issues to fetch."""
        return self.outcome in (RepoOutcome.OK, RepoOutcome.RENAMED)


def full_names(rows: Iterable[RepoRow]) -> list[str]:
    """The repositories that can be crawled, each once however often it was asked for, by name."""
    return sorted({row.full_name for row in rows if row.is_crawlable})


class Absence(StrEnum):
    """Why a number has no issue."""

    DELETED = "deleted"  # or never there: the server says the same of both
    TRANSFERRED = "transferred"
    NO_REPOSITORY = "no_repository"
    WITHHELD = "withheld"  # the server fails on this one, whatever is tried


@dataclass(frozen=True, slots=True)
class TopUp:
    """A nested connection of which the server gave only the end."""

    ref: IssueRef
    part: str  # comments | events | labels
    before: str  # cursor of the earliest item that is stored
    have: int  # items stored so far


@dataclass(frozen=True, slots=True)
class CrawlTask:
    """A resumable piece of work; what is done stays in the table, so that it is not done twice."""

    repo: str
    kind: str
    key: str = ""
    cursor: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    done: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage. A failed request counts as one point, because the server reports no cost for it."""

    points: int = 0
    requests: int = 0
    seconds: float = 0.0  # waiting for answers and for limits

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.points + other.points, self.requests + other.requests, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The last known rate limit of a token, in points (GraphQL) or requests (REST)."""

    limit: int
    remaining: int
    reset: Annotated[float, Meta(ge=0, le=1e12)]  # epoch seconds, by the server's clock

    def describe(self, now: float) -> str:
        """The limit in a sentence."""
        if now >= self.reset:
            return f"{self.limit:,} points left: the hour of the last answer is over"
        at = time.strftime("%H:%M", time.localtime(self.reset))
        return f"{self.remaining:,} of {self.limit:,} points left until {at}"


@dataclass(slots=True)
class Tally:
    """The stored and the remaining items of a repository."""

    issues: int = 0  # with or without their threads
    begun: int = 0  # threads of which something is stored
    threads: int = 0  # whole threads
    comments: int = 0
    pending: int = 0  # issues to be fetched by number
    top_ups: int = 0  # threads to be completed
    done: Counter[str] = field(default_factory=Counter)  # finished tasks by kind
    left: Counter[str] = field(default_factory=Counter)  # open tasks by kind

    @property
    def open_work(self) -> int:
        """Threads, searches and lists that are still to be fetched."""
        return self.pending + self.top_ups + self.left.total()


@dataclass(slots=True)
class Page:
    """The content of one response, written in one transaction: a kill loses all of it or nothing."""

    threads: list[Thread] = field(default_factory=list)  # each replaces what was stored of it
    issues: list[Issue] = field(default_factory=list)  # without threads; never replace a thread
    missing: dict[IssueRef, tuple[Absence, str]] = field(default_factory=dict)
    top_ups: list[TopUp] = field(default_factory=list)  # for threads of this page, or continued ones
    topped_up: list[TopUp] = field(default_factory=list)  # finished or continued by this page
    comments: list[tuple[IssueRef, Comment]] = field(default_factory=list)
    events: list[tuple[IssueRef, int, Event]] = field(default_factory=list)  # int: place from the end, < 0
    labels: list[tuple[IssueRef, tuple[str, ...]]] = field(default_factory=list)
    pending: list[IssueRef] = field(default_factory=list)  # threads to fetch
    fetched: list[IssueRef] = field(default_factory=list)
    tasks: list[CrawlTask] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)  # repository, kind: tasks to forget
    repos: list[RepoRow] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)  # repository, words
    usage: dict[str, Usage] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # remembered facts about the server

    def __str__(self) -> str:
        counted = ("threads", "issues", "comments", "events", "pending", "missing", "repos", "warnings")
        counts = {name: len(getattr(self, name)) for name in counted}
        return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "how far it is"
