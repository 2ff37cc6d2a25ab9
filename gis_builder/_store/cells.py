"""From a store's rows to records. SQLite lets anybody write anything into a cell, so each is looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta
from msgspec.json import Decoder

from gis_builder._decoding import (
    Count,
    EventKind,
    Id,
    Login,
    Malformed,
    Node,
    Number,
    NumberOrNone,
    RepoName,
    RepoNameOrEmpty,
    Word,
    convert,
    decode,
)
from gis_builder._records import Comment, Event, Issue, IssueRef, Thread
from gis_builder._store.rows import Absence, RepoOutcome, RepoRow, Task, TopUp, Usage
from pairkit.errors import DataError

T = TypeVar("T")
R = TypeVar("R")

_Flag = Literal[0, 1]
_Amount = Annotated[int, Meta(ge=0, le=2**53)]
_Seconds = Annotated[float, Meta(ge=0, le=1e15)]
_Epoch = Annotated[int, Meta(ge=0, le=250_000_000_000)]  # to the year 9892
_Part = Literal["comments", "events", "labels"]
_TIME_LENGTH = len("2015-01-31T23:59:59Z")
_LABELS = Decoder(list[str])
_INDEX = re.compile(r"\[(\d+)\](.*)", re.DOTALL)


class _Row(Node, frozen=True, array_like=True):
    """A row's cells, in order."""


class IssueRow(_Row, frozen=True):
    """Of `issues`, as `reading` asks for it."""

    number: Number
    title: str
    body: str
    state: Literal["open", "closed"]
    state_reason: Word | None
    author: Login | None
    author_association: Word
    created_at: str
    updated_at: str
    closed_at: str | None
    closed_by: Login | None
    is_pull: _Flag
    is_bot: _Flag
    labels: str
    duplicate_of_repo: RepoName | None
    duplicate_of_number: Number | None


class CommentRow(_Row, frozen=True):
    """Of `comments`."""

    number: Number
    id: Id
    author: Login | None
    author_association: Word
    created_at: str
    body: str
    is_bot: _Flag


class EventRow(_Row, frozen=True):
    """Of `events`."""

    number: Number
    kind: EventKind
    actor: Login | None
    created_at: str
    target_repo: RepoName | None
    target_number: Number | None
    target_is_pull: _Flag
    state_reason: Word | None


class _RepoCells(_Row, frozen=True):
    name: RepoName
    outcome: RepoOutcome
    full_name: RepoNameOrEmpty
    detail: str
    max_number: NumberOrNone
    issue_count: NumberOrNone
    created_at: str
    newest_at: str
    as_of: str
    labels: str
    listed: _Flag


class _MissingRow(_Row, frozen=True):
    number: Number
    status: Absence
    detail: str


class _UsageRow(_Row, frozen=True):
    repo: str
    points: _Amount
    requests: _Amount
    seconds: _Seconds


class _TaskRow(_Row, frozen=True):
    key: str
    cursor: str | None
    state: str
    done: _Flag


class _TopUpRow(_Row, frozen=True):
    number: Number
    part: _Part
    before: str
    have: Count


class _RefRow(_Row, frozen=True):
    repo: RepoName
    number: Number


class KindRow(_Row, frozen=True):
    """Of `issues`: what a number is."""

    number: Number
    is_pull: _Flag


class Cells:
    """Reads the rows of one store.

    Args:
        path: The store, for messages.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, table: str, row: Sequence[Any], kind: type[R]) -> R:
        """A row of a table.

        Raises:
            DataError: a cell holds what it can't; so in all methods.
        """
        return self._made(table, row, lambda: _cells(row, kind))

    def number(self, table: str, row: Sequence[Any]) -> int:
        """The number that a row begins with."""
        found = row[0]
        return found if type(found) is int else self.read(table, row[:1], tuple[int])[0]

    def issue(self, repo: str, row: Sequence[Any]) -> Issue:
        """An issue of a repository."""
        return self._made("issues", (repo, *row), lambda: _issue(repo, _cells(row, IssueRow)))

    def comment(self, row: Sequence[Any]) -> Comment:
        """A comment."""
        return self._made("comments", row, lambda: _comment(_cells(row, CommentRow)))

    def event(self, row: Sequence[Any]) -> Event:
        """An event."""
        return self._made("events", row, lambda: _event(_cells(row, EventRow)))

    def thread(self, issue: Issue, comments: Iterable[Any], events: Iterable[Any]) -> Thread:
        """An issue with its comments and events."""
        return Thread(issue, tuple(map(self.comment, comments)), tuple(map(self.event, events)))

    def repo(self, row: Sequence[Any]) -> RepoRow:
        """A repository."""
        return self._made("repos", row, lambda: _repo(_cells(row, _RepoCells)))

    def absence(self, row: Sequence[Any]) -> tuple[int, tuple[Absence, str]]:
        """A number that has no issue, and why."""
        cells = self.read("missing", row, _MissingRow)
        return cells.number, (cells.status, cells.detail)

    def usage(self, row: Sequence[Any]) -> tuple[str, Usage]:
        """A repository, and what was spent on it."""
        cells = self.read("usage", row, _UsageRow)
        return cells.repo, Usage(cells.points, cells.requests, cells.seconds)

    def top_up(self, repo: str, row: Sequence[Any]) -> TopUp:
        """A connection that is not whole yet."""
        cells = self.read("top_ups", row, _TopUpRow)
        return TopUp(IssueRef(repo, cells.number), cells.part, cells.before, cells.have)

    def wish(self, row: Sequence[Any]) -> IssueRef:
        """An issue that is still to be fetched."""
        cells = self.read("wishes", row, _RefRow)
        return IssueRef(cells.repo, cells.number)

    def task(self, repo: str, kind: str, row: Sequence[Any]) -> Task:
        """A piece of work, with what it has to remember."""
        cells = self.read("tasks", row, _TaskRow)
        state = self._made("tasks", row, lambda: _state(kind, cells.key, cells.state))
        return Task(repo, kind, cells.key, cells.cursor, state, bool(cells.done))

    def json(self, key: str, text: str, decoder: Decoder[T]) -> T:
        """What `meta` remembers under a key."""
        return self._made("meta", (key,), lambda: decode(text.encode(), decoder))

    def _made(self, table: str, row: Sequence[Any], make: Callable[[], R]) -> R:
        try:
            return make()
        except Malformed as error:
            first = ", ".join(repr(cell)[:60] for cell in row[:2])
            raise DataError(
                f"table {table}, row {first}: {error}; it is damaged or was changed: choose another working "
                "folder and crawl again",
                path=self._path,
            ) from None


def _cells(row: Sequence[Any], kind: type[R]) -> R:
    try:
        return convert(row, kind)
    except Malformed as error:
        place = _INDEX.match(str(error))
        names = getattr(kind, "__struct_fields__", ())
        if place is None or int(place[1]) >= len(names):
            raise
        raise Malformed(f"{names[int(place[1])]}{place[2]}") from None


def _issue(repo: str, cells: IssueRow) -> Issue:
    home, number = cells.duplicate_of_repo, cells.duplicate_of_number
    return Issue(
        repo=repo,
        number=cells.number,
        title=cells.title,
        body=cells.body,
        state=cells.state,
        state_reason=cells.state_reason,
        author=cells.author,
        author_association=cells.author_association,
        created_at=_time(cells.created_at),
        updated_at=_time(cells.updated_at),
        closed_at=None if cells.closed_at is None else _time(cells.closed_at),
        closed_by=cells.closed_by,
        is_pull=bool(cells.is_pull),
        is_bot=bool(cells.is_bot),
        labels=read_labels(cells.labels),
        duplicate_of=_ref(home, number),
    )


def _comment(cells: CommentRow) -> Comment:
    return Comment(
        cells.id,
        cells.author,
        cells.author_association,
        _time(cells.created_at),
        cells.body,
        bool(cells.is_bot),
    )


def _event(cells: EventRow) -> Event:
    return Event(
        cells.kind,
        cells.actor,
        _time(cells.created_at),
        _ref(cells.target_repo, cells.target_number),
        bool(cells.target_is_pull),
        cells.state_reason,
    )


def _repo(cells: _RepoCells) -> RepoRow:
    return RepoRow(
        name=cells.name,
        outcome=cells.outcome,
        full_name=_crawlable_name(cells),
        detail=cells.detail,
        max_number=cells.max_number,
        issue_count=cells.issue_count,
        created_at=_time_or_empty(cells.created_at),
        newest_at=_time_or_empty(cells.newest_at),
        as_of=_time_or_empty(cells.as_of),
        labels=read_labels(cells.labels),
        listed=bool(cells.listed),
    )


def _crawlable_name(cells: _RepoCells) -> str:
    if not cells.full_name and cells.outcome in (RepoOutcome.OK, RepoOutcome.RENAMED):
        raise Malformed("full_name: empty, though it can be crawled")
    return cells.full_name


def _ref(repo: str | None, number: int | None) -> IssueRef | None:
    if (repo is None) != (number is None):
        raise Malformed("half a reference to another issue")
    return None if repo is None or number is None else IssueRef(repo, number)


def read_labels(text: Any) -> tuple[str, ...]:
    """The labels in a cell.

    Raises:
        Malformed: it holds something else.
    """
    labels = decode(convert(text, str).encode(), _LABELS)
    return tuple(labels)


def _time(text: str) -> str:
    if len(text) != _TIME_LENGTH or text[10] != "T" or text[-1] != "Z" or text < "1970":
        raise Malformed("a time that is none")
    convert(text, datetime)  # the 31st of June
    return text


def _time_or_empty(text: str) -> str:
    return _time(text) if text else ""


class _Got(Node, frozen=True):
    got: Count
    failures: Count = 0


class _GotRun(Node, frozen=True):
    got: Count
    run: Count


class _Searched(Node, frozen=True):
    words: str
    start: _Epoch | None
    end: _Epoch | None
    got: Count


class _Drawn(Node, frozen=True):
    max_number: NumberOrNone


class _After(Node, frozen=True, forbid_unknown_fields=True):
    as_of: str
    max_number: NumberOrNone
    newest_at: str
    issue_count: NumberOrNone = 0
    labels: tuple[str, ...] = ()


class _Updated(Node, frozen=True):
    since: str
    row: _After
    got: Count = 0
    failures: Count = 0


_Counts = dict[Annotated[str, Meta(pattern=r"\A[1-9][0-9]{0,9}\Z")], Count]
_EMPTY = Decoder(dict[str, Any])
_STATES: dict[str, Decoder[Any]] = {
    "sweep": Decoder(_Got),
    "update": Decoder(_Updated),
    "search": Decoder(_Searched),
    "pool": Decoder(_Drawn),
    "rest sweep": Decoder(_GotRun),
    "rest update": Decoder(_GotRun),
    "rest sweep counts": Decoder(_Counts),
    "rest update counts": Decoder(_Counts),
}
_KEYED: dict[tuple[str, str], Decoder[Any]] = {
    ("rest sweep", "whole"): _EMPTY,
    ("rest update", ""): Decoder(_Updated),
}


def _state(kind: str, key: str, text: str) -> dict[str, Any]:
    """What a task remembers, once it is sure to have what its kind needs."""
    body = text.encode()
    checked = decode(body, _KEYED.get((kind, key)) or _STATES.get(kind, _EMPTY))
    if isinstance(checked, _Updated):
        for time in (checked.since, checked.row.as_of, checked.row.newest_at):
            _time_or_empty(time)
    return decode(body, _EMPTY)
