"""Reading a store: rows to records, threads as a stream of three cursors, so that memory stays bounded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from gis_builder.store.records import Comment, Event, Issue, IssueRef, Kind, Thread
from gis_builder.store.rows import RepoOutcome, RepoRow, Tally
from pairkit.app.errors import DataError
from pairkit.system.database import connect, database_errors

_ISSUE = (
    "number, title, body, state, state_reason, author, author_association, created_at, updated_at, "
    "closed_at, closed_by, is_pull, is_bot, labels, duplicate_of_repo, duplicate_of_number"
)
# Places count back from the newest event, so ascending place is ascending time, ties included.
_CONTENT = {
    "repos": "SELECT name, outcome, full_name FROM repos WHERE listed AND outcome <> 'failed' ORDER BY name",
    "issues": f"SELECT repo, depth, {_ISSUE} FROM issues ORDER BY repo, number",  # noqa: S608 - constants
    "comments": "SELECT * FROM comments ORDER BY repo, number, id",
    "events": "SELECT * FROM events ORDER BY repo, number, place",
    "missing": "SELECT * FROM missing ORDER BY repo, number",
}


@contextmanager
def readable_rows(path: Path) -> Iterator[None]:
    """Turn what a damaged row raises into one line that names the store."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise DataError(
            f"damaged ({error}): choose another working folder and crawl again", path=path
        ) from error


class StoredThread:
    """A thread as its rows are: whether they changed is known without making records of them."""

    __slots__ = ("_path", "_repo", "_rows", "number")

    def __init__(self, path: Path, repo: str, number: int, *rows: Any) -> None:
        self._path, self._repo, self.number, self._rows = path, repo, number, rows

    def digest(self, basis: bytes) -> str:
        """A digest of all that the rows hold, and of whatever else the caller goes by."""
        return hashlib.blake2b(msgspec.msgpack.encode(self._rows), digest_size=16, key=basis).hexdigest()

    def read(self) -> Thread:
        """The records."""
        head, comments, events = self._rows
        with readable_rows(self._path):
            return Thread(
                _issue(self._repo, head), tuple(map(_comment, comments)), tuple(map(_event, events))
            )


def threads(
    path: Path, repo: str, depth: int, *, number: int | None = None, pulls: bool = False
) -> Iterator[StoredThread]:
    """Threads of at least `depth`, by ascending number, read as of the moment of the first one."""
    only = " AND number = ?" if number is not None else ""
    key: tuple[Any, ...] = (repo,) if number is None else (repo, number)
    kept = "" if pulls else " AND NOT is_pull"
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        connection.execute("BEGIN")  # one snapshot for the three cursors
        heads = connection.execute(
            f"SELECT {_ISSUE} FROM issues WHERE repo = ?{only} AND depth >= ?{kept} ORDER BY number",  # noqa: S608
            (*key, depth),
        )
        comments = _Ahead(
            connection.execute(
                "SELECT number, id, author, author_association, created_at, body, is_bot FROM comments "  # noqa: S608
                f"WHERE repo = ?{only} ORDER BY number, id",
                key,
            )
        )
        events = _Ahead(
            connection.execute(
                "SELECT number, kind, actor, created_at, target_repo, target_number, target_is_pull, "  # noqa: S608
                f"state_reason FROM events WHERE repo = ?{only} ORDER BY number, place",
                key,
            )
        )
        for head in heads:
            own: int = head[0]
            yield StoredThread(path, repo, own, head, comments.take(own), events.take(own))


def issues(path: Path, repo: str) -> Iterator[Issue]:
    """Issues by ascending number; no pull requests."""
    with database_errors(path), readable_rows(path), closing(connect(path, read_only=True)) as connection:
        sql = f"SELECT {_ISSUE} FROM issues WHERE repo = ? AND NOT is_pull ORDER BY number"  # noqa: S608
        for row in connection.execute(sql, (repo,)):
            yield _issue(repo, row)


def kinds(path: Path, repo: str) -> dict[int, Kind]:
    """What each known number of the repository is."""
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        found = {
            number: Kind.MISSING
            for (number,) in connection.execute("SELECT number FROM missing WHERE repo = ?", (repo,))
        }
        for number, is_pull in connection.execute(
            "SELECT number, is_pull FROM issues WHERE repo = ?", (repo,)
        ):
            found[number] = Kind.PULL if is_pull else Kind.ISSUE
        return found


def repo_row(row: Sequence[Any]) -> RepoRow:
    """A repository."""
    name, outcome, *plain, labels, listed = row
    return RepoRow(*_cells(name, RepoOutcome(outcome), *plain, tuple(json.loads(labels)), bool(listed)))


def _issue(repo: str, row: Sequence[Any]) -> Issue:
    *plain, is_pull, is_bot, labels, home, number = row
    target = None if home is None else IssueRef(home, number)
    return Issue(*_cells(repo, *plain, bool(is_pull), bool(is_bot), tuple(json.loads(labels)), target))


def _comment(row: Sequence[Any]) -> Comment:
    _, *plain, is_bot = row
    return Comment(*_cells(*plain, bool(is_bot)))


def _cells(*cells: Any) -> tuple[Any, ...]:
    return cells  # in the order of the record's fields


def _event(row: Sequence[Any]) -> Event:
    _, kind, actor, created_at, home, number, is_pull, state_reason = row
    target = None if home is None else IssueRef(home, number)
    return Event(kind, actor, created_at, target, bool(is_pull), state_reason)


_NEGATIVE_SAMPLE = "pool"  # a task that fixes a sample's order and is never done
_TALLIES = {
    "issues": "SELECT repo, count(*) FROM issues WHERE NOT is_pull GROUP BY repo",
    "begun": "SELECT repo, count(*) FROM issues WHERE NOT is_pull AND depth > 0 GROUP BY repo",
    "threads": "SELECT repo, count(*) FROM issues WHERE NOT is_pull AND depth = 2 GROUP BY repo",
    "comments": "SELECT repo, count(*) FROM comments GROUP BY repo",
    "pending": "SELECT repo, count(*) FROM wishes GROUP BY repo",
    "top_ups": "SELECT repo, count(DISTINCT number) FROM top_ups GROUP BY repo",
}


def tallies(path: Path) -> dict[str, Tally]:
    """How much of each repository is stored, as of one moment: a crawl may be writing meanwhile."""
    found: defaultdict[str, Tally] = defaultdict(Tally)
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        connection.execute("BEGIN")
        for name, sql in _TALLIES.items():
            for repo, count in connection.execute(sql):
                setattr(found[repo], name, count)
        tasks = "SELECT repo, kind, sum(done), sum(NOT done) FROM tasks WHERE kind <> ? GROUP BY repo, kind"
        for repo, kind, done, left in connection.execute(tasks, (_NEGATIVE_SAMPLE,)):
            found[repo].done += Counter({kind: done})
            found[repo].left += Counter({kind: left})
    return found


def content_hash(path: Path) -> str:
    """SHA-256 over the logical rows of the content tables, in order."""
    digest = hashlib.sha256()
    with database_errors(path), readable_rows(path), closing(connect(path, read_only=True)) as connection:
        connection.execute("BEGIN")
        for table, sql in _CONTENT.items():
            digest.update(table.encode())
            for row in connection.execute(sql):
                digest.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


class _Ahead:
    """Rows that begin with a number, taken group by group; groups nobody asks for are passed over."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._groups = groupby(rows, key=itemgetter(0))
        self._next = next(self._groups, None)

    def take(self, number: int) -> list[Any]:
        while self._next is not None and self._next[0] < number:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != number:
            return []
        rows = list(self._next[1])
        self._next = next(self._groups, None)
        return rows
