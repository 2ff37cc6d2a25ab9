"""Reading a store as a stream: three cursors side by side, so that memory stays bounded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from gis_builder._records import Issue, Kind, Thread
from gis_builder._store.cells import Cells, KindRow
from gis_builder._store.rows import Tally
from pairkit.database import connect, database_errors
from pairkit.errors import DataError

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


class StoredThread:
    """A thread as its rows are: whether they changed can be told without reading them into records."""

    __slots__ = ("_cells", "_repo", "_rows", "number")

    def __init__(self, cells: Cells, repo: str, number: int, *rows: Any) -> None:
        self._cells, self._repo, self.number, self._rows = cells, repo, number, rows

    def digest(self, basis: bytes) -> str:
        """A digest of all that the rows hold, and of whatever else the caller goes by."""
        return hashlib.blake2b(msgspec.msgpack.encode(self._rows), digest_size=16, key=basis).hexdigest()

    def read(self) -> Thread:
        """The records.

        Raises:
            DataError: a cell holds what it can't.
        """
        head, comments, events = self._rows
        return self._cells.thread(self._cells.issue(self._repo, head), comments, events)


def threads(
    path: Path, repo: str, depth: int, *, number: int | None = None, pulls: bool = False
) -> Iterator[StoredThread]:
    """Threads of at least `depth`, by ascending number, read as of the moment of the first one."""
    only = " AND number = ?" if number is not None else ""
    key: tuple[Any, ...] = (repo,) if number is None else (repo, number)
    kept = "" if pulls else " AND NOT is_pull"
    cells = Cells(path)
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
            ),
            partial(cells.number, "comments"),
        )
        events = _Ahead(
            connection.execute(
                "SELECT number, kind, actor, created_at, target_repo, target_number, target_is_pull, "  # noqa: S608
                f"state_reason FROM events WHERE repo = ?{only} ORDER BY number, place",
                key,
            ),
            partial(cells.number, "events"),
        )
        for head in heads:
            own = cells.number("issues", head)
            yield StoredThread(cells, repo, own, head, comments.take(own), events.take(own))


def issues(path: Path, repo: str) -> Iterator[Issue]:
    """Issues by ascending number; no pull requests."""
    cells = Cells(path)
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        sql = f"SELECT {_ISSUE} FROM issues WHERE repo = ? AND NOT is_pull ORDER BY number"  # noqa: S608
        for row in connection.execute(sql, (repo,)):
            yield cells.issue(repo, row)


def kinds(path: Path, repo: str) -> dict[int, Kind]:
    """What each known number of the repository is."""
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        found = {
            number: Kind.MISSING
            for (number,) in connection.execute("SELECT number FROM missing WHERE repo = ?", (repo,))
        }
        rows = connection.execute("SELECT number, is_pull FROM issues WHERE repo = ?", (repo,))
        for cells in (Cells(path).read("issues", row, KindRow) for row in rows):
            found[cells.number] = Kind.PULL if cells.is_pull else Kind.ISSUE
        return found


_POOL = "pool"  # a task that fixes a sample's order and is never done
_TALLIES = {
    "issues": "SELECT repo, count(*) FROM issues WHERE NOT is_pull GROUP BY repo",
    "begun": "SELECT repo, count(*) FROM issues WHERE NOT is_pull AND depth > 0 GROUP BY repo",
    "threads": "SELECT repo, count(*) FROM issues WHERE NOT is_pull AND depth = 2 GROUP BY repo",
    "comments": "SELECT repo, count(*) FROM comments GROUP BY repo",
    "wishes": "SELECT repo, count(*) FROM wishes GROUP BY repo",
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
        for repo, kind, done, left in connection.execute(tasks, (_POOL,)):
            found[repo].done += Counter({kind: done})
            found[repo].left += Counter({kind: left})
    return found


def content_hash(path: Path) -> str:
    """SHA-256 over the logical rows of the content tables, in order."""
    digest = hashlib.sha256()
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        connection.execute("BEGIN")
        for table, sql in _CONTENT.items():
            digest.update(table.encode())
            for row in connection.execute(sql):
                try:
                    digest.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                except TypeError:
                    words = (
                        f"table {table}: holds bytes, which no crawl writes; choose another working folder"
                    )
                    raise DataError(words, path=path) from None
    return digest.hexdigest()


class _Ahead:
    """Rows that begin with a number, taken group by group; groups nobody asks for are passed over."""

    def __init__(self, rows: Iterable[Any], number: Callable[[Any], int]) -> None:
        self._groups = groupby(rows, key=number)
        self._next = next(self._groups, None)

    def take(self, number: int) -> list[Any]:
        while self._next is not None and self._next[0] < number:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != number:
            return []
        rows = list(self._next[1])
        self._next = next(self._groups, None)
        return rows
