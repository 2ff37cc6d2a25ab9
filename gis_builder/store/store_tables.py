"""The records of a crawl, and the rows of the store's tables that they and the issues become."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from operator import add, attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from gis_builder.store.decoding import whole_text
from gis_builder.store.issue_records import Comment, Event, Issue, IssueRef, Thread

RATE_LIMIT = "budget"  # key of the last known rate limit in the table meta
_INSERT_ISSUE = (
    "INSERT OR REPLACE INTO issues VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_INSERT_COMMENT = "INSERT OR REPLACE INTO comments VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_EVENT = "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
REPO_COLUMNS = "name, outcome, full_name, detail, max_number, issue_count, created_at, newest_at, as_of, labels, listed"
_OF_THREADS = ("comments", "events", "missing", "top_ups", "issues")
# Move all that is stored of a repository to its present name; a thread that is already stored there is kept.
_RENAME = (
    "DELETE FROM issues WHERE repo = :name AND depth = 0 "
    "AND number IN (SELECT number FROM issues WHERE repo = :former)",
    *(
        f"DELETE FROM {table} WHERE repo = :former AND number IN (SELECT number FROM issues WHERE repo = :name)"  # noqa: S608
        for table in _OF_THREADS
    ),
    # A search contains the former name.
    "DELETE FROM tasks WHERE repo = :former AND kind = 'search' AND EXISTS "
    "(SELECT 1 FROM tasks WHERE repo = :former AND kind = 'search' AND NOT done)",
    *(
        f"UPDATE OR REPLACE {table} SET repo = :name WHERE repo = :former"  # noqa: S608
        for table in (*_OF_THREADS, "wishes", "tasks", "warnings", "usage")
    ),
    "UPDATE issues SET duplicate_of_repo = :name WHERE duplicate_of_repo = :former",
    "UPDATE events SET target_repo = :name WHERE target_repo = :former",
    "UPDATE repos SET full_name = :name, outcome = 'renamed', detail = 'now ' || :name WHERE full_name = :former",
    # References may have the former name.
    "INSERT OR REPLACE INTO repos SELECT :former, outcome, full_name, detail, max_number, issue_count, created_at, "
    "newest_at, as_of, labels, 0 FROM repos WHERE full_name = :name "
    "AND NOT EXISTS (SELECT 1 FROM repos WHERE name = :former AND full_name = :name) LIMIT 1",
)
# The tables have the fields of these records in the same order; `dataclasses.astuple` would copy each value.
_fields_of_issue = attrgetter(*Issue.__slots__)
_fields_of_comment = attrgetter(*Comment.__slots__)
_fields_of_event = attrgetter(*Event.__slots__)
_NO_REF = (None, None)


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
        return Usage(*map(add, astuple(self), astuple(other)))


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


class StoredThread:
    """The rows of a thread. Their hash shows whether the thread changed, without conversion to records."""

    __slots__ = ("_rows", "ref")

    def __init__(self, ref: IssueRef, *rows: Any) -> None:
        self.ref = ref
        self._rows = rows

    def digest(self, basis: bytes) -> str:
        """Hash the rows, with a key."""
        rows = msgspec.msgpack.encode(self._rows)
        return hashlib.blake2b(rows, digest_size=16, key=basis).hexdigest()

    def read(self) -> Thread:
        """Convert the rows to records."""
        head, comments, events = self._rows
        return Thread(
            issue=issue_of_row(self.ref.repo, head),
            comments=tuple(map(_comment, comments)),
            events=tuple(map(_event, events)),
        )


def repo_row(row: Sequence[Any]) -> RepoRow:
    """Convert a row of `repos`."""
    name, outcome, *plain, labels, listed = row
    cells = [name, RepoOutcome(outcome), *plain, _label_names(labels), bool(listed)]
    return RepoRow(*cells)


def issue_of_row(repo: str, row: Sequence[Any]) -> Issue:
    """Convert a row of `issues`, without its repository."""
    *plain, is_pull, is_bot, labels, home, number = row
    target = None if home is None else IssueRef(home, number)
    cells = [repo, *plain, bool(is_pull), bool(is_bot), _label_names(labels), target]
    return Issue(*cells)


def _label_names(labels: str) -> tuple[str, ...]:
    return tuple(json.loads(labels))


def _comment(row: Sequence[Any]) -> Comment:
    *plain, is_bot = row
    cells = [*plain, bool(is_bot)]
    return Comment(*cells)


def _event(row: Sequence[Any]) -> Event:
    kind, actor, created_at, home, number, is_pull, state_reason = row
    target = None if home is None else IssueRef(home, number)
    return Event(kind, actor, created_at, target, bool(is_pull), state_reason)


def save_page(connection: sqlite3.Connection, page: Page) -> None:
    """Write a page within the caller's transaction."""
    for former, name in page.renamed:
        for sql in _RENAME:
            connection.execute(sql, {"former": former, "name": name})
    _save_repos(connection, page.repos)
    _save_threads(connection, page)
    insert_new = _INSERT_ISSUE.replace("OR REPLACE", "OR IGNORE")
    connection.executemany(
        insert_new, (_issue_values(issue, 0) for issue in page.issues)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO missing VALUES (?, ?, ?, ?)",
        ((*ref, *absence) for ref, absence in page.missing.items()),
    )
    _save_top_ups(connection, page)
    _save_pending(connection, page)
    connection.executemany(
        "DELETE FROM tasks WHERE repo = ? AND kind = ?", page.dropped
    )
    for task in page.tasks:
        state = json.dumps(task.state, sort_keys=True)
        values = (task.repo, task.kind, task.key, task.cursor, state, task.done)
        connection.execute(
            "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?)", values
        )
    connection.executemany(
        "DELETE FROM warnings WHERE repo = ?", zip(page.outdated, strict=True)
    )
    connection.executemany(
        "INSERT OR IGNORE INTO warnings VALUES (?, ?)",
        # The name of a file may not be UTF-8.
        ((repo, whole_text(text)) for repo, text in page.warnings),
    )
    connection.executemany(
        "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET points = points + excluded.points, "
        "requests = requests + excluded.requests, seconds = seconds + excluded.seconds",
        ((repo, *astuple(usage)) for repo, usage in page.usage.items()),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)", page.notes.items()
    )


def _save_repos(connection: sqlite3.Connection, rows: Iterable[RepoRow]) -> None:
    sql = (
        f"INSERT OR REPLACE INTO repos ({REPO_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608
    )
    for row in rows:
        *plain, labels, listed = astuple(row)
        connection.execute(sql, (*plain, json.dumps(labels), listed))


def _save_threads(connection: sqlite3.Connection, page: Page) -> None:
    unfinished = {top_up.ref for top_up in page.top_ups}
    for thread in page.threads:
        ref = thread.issue.ref
        for table in ("comments", "events", "top_ups", "missing"):
            statement = f"DELETE FROM {table} WHERE repo = ? AND number = ?"  # noqa: S608
            connection.execute(statement, ref)
        depth = 1 if ref in unfinished else 2
        connection.execute(_INSERT_ISSUE, _issue_values(thread.issue, depth))
        for comment in thread.comments:
            _insert_comment(connection, ref, comment)
        for place, event in enumerate(thread.events, -len(thread.events)):
            _insert_event(connection, ref, place, event)


def _save_top_ups(connection: sqlite3.Connection, page: Page) -> None:
    """Add items, replace answered top-ups by the next ones, and mark complete threads."""
    for ref, comment in page.comments:
        _insert_comment(connection, ref, comment)
    for ref, place, event in page.events:
        _insert_event(connection, ref, place, event)
    for ref, labels in page.labels:
        sql = "SELECT labels FROM issues WHERE repo = ? AND number = ?"
        for (old,) in connection.execute(sql, ref).fetchall():
            merged = json.dumps(sorted({*json.loads(old), *labels}))
            update = "UPDATE issues SET labels = ? WHERE repo = ? AND number = ?"
            connection.execute(update, (merged, *ref))
    for done in page.topped_up:
        sql = "DELETE FROM top_ups WHERE repo = ? AND number = ? AND part = ?"
        connection.execute(sql, (*done.ref, done.part))
    for left in page.top_ups:
        values = (*left.ref, left.part, left.before, left.have)
        connection.execute(
            "INSERT OR REPLACE INTO top_ups VALUES (?, ?, ?, ?, ?)", values
        )
    connection.executemany(
        "UPDATE issues SET depth = 2 WHERE repo = ?1 AND number = ?2 AND depth = 1 "
        "AND NOT EXISTS (SELECT 1 FROM top_ups WHERE repo = ?1 AND number = ?2)",
        (top_up.ref for top_up in page.topped_up),
    )


def _save_pending(connection: sqlite3.Connection, page: Page) -> None:
    """Queue threads that are not stored yet, and remove fetched ones."""
    connection.executemany(
        "INSERT OR IGNORE INTO wishes SELECT ?1, ?2, 1 "
        "WHERE NOT EXISTS (SELECT 1 FROM issues WHERE repo = ?1 AND number = ?2 AND (depth > 0 OR is_pull)) "
        "AND NOT EXISTS (SELECT 1 FROM missing WHERE repo = ?1 AND number = ?2)",
        page.pending,
    )
    connection.executemany(
        "DELETE FROM wishes WHERE repo = ? AND number = ?", page.fetched
    )


def _issue_values(issue: Issue, depth: int) -> Sequence[object]:
    repo, number, *plain, labels, original = _fields_of_issue(issue)
    names = json.dumps(sorted(labels))
    return repo, number, depth, *plain, names, *(original or _NO_REF)


def _insert_comment(
    connection: sqlite3.Connection, ref: IssueRef, comment: Comment
) -> None:
    connection.execute(_INSERT_COMMENT, (*ref, *_fields_of_comment(comment)))


def _insert_event(
    connection: sqlite3.Connection, ref: IssueRef, place: int, event: Event
) -> None:
    kind, actor, created_at, target, *others = _fields_of_event(event)
    target_ref = target or _NO_REF
    values = (*ref, place, kind, actor, created_at, *target_ref, *others)
    connection.execute(_INSERT_EVENT, values)
