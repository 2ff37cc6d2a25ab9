"""Opens, reads and writes the store of a crawl."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gis_builder.store.decoding import MAX_NUMBER
from gis_builder.store.issue_records import (
    GITHUB,
    Issue,
    IssueRef,
    Kind,
    Thread,
    Tickets,
    TicketSite,
)
from gis_builder.store.store_tables import (
    REPO_COLUMNS,
    CrawlTask,
    Page,
    RepoRow,
    StoredThread,
    Tally,
    TopUp,
    Usage,
    issue_of_row,
    repo_row,
    save_page,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.address import is_loopback
from pairkit.base.system.database import (
    Schema,
    connect,
    database_errors,
    open_database,
    transaction,
)
from pairkit.base.system.folders import lock_folder

VERSION = 1
_APPLICATION = 0x47495331  # "GIS1", the application_id of the file

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE repos (
  name TEXT PRIMARY KEY COLLATE NOCASE, outcome TEXT NOT NULL, full_name TEXT NOT NULL, detail TEXT NOT NULL,
  max_number INTEGER NOT NULL, issue_count INTEGER NOT NULL, created_at TEXT NOT NULL,
  newest_at TEXT NOT NULL, as_of TEXT NOT NULL, labels TEXT NOT NULL, listed INTEGER NOT NULL
) WITHOUT ROWID;
-- depth: 0 only the issue, 1 an incomplete thread, 2 a complete thread
CREATE TABLE issues (
  repo TEXT NOT NULL, number INTEGER NOT NULL, depth INTEGER NOT NULL, title TEXT NOT NULL,
  body TEXT NOT NULL, state TEXT NOT NULL, state_reason TEXT, author TEXT, author_association TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, closed_at TEXT, closed_by TEXT,
  is_pull INTEGER NOT NULL, is_bot INTEGER NOT NULL, labels TEXT NOT NULL,
  duplicate_of_repo TEXT, duplicate_of_number INTEGER, PRIMARY KEY (repo, number)
);
CREATE TABLE comments (
  repo TEXT NOT NULL, number INTEGER NOT NULL, id INTEGER NOT NULL, author TEXT,
  author_association TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT NOT NULL, is_bot INTEGER NOT NULL,
  PRIMARY KEY (repo, number, id)
);
-- place: -1 is the newest event of the issue, -2 the previous one
CREATE TABLE events (
  repo TEXT NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT,
  created_at TEXT NOT NULL, target_repo TEXT, target_number INTEGER, target_is_pull INTEGER NOT NULL,
  state_reason TEXT, PRIMARY KEY (repo, number, place)
) WITHOUT ROWID;
CREATE TABLE missing (
  repo TEXT NOT NULL, number INTEGER NOT NULL, status TEXT NOT NULL, detail TEXT NOT NULL,
  PRIMARY KEY (repo, number)
) WITHOUT ROWID;
CREATE TABLE wishes (
  repo TEXT NOT NULL, number INTEGER NOT NULL, with_thread INTEGER NOT NULL, PRIMARY KEY (repo, number)
) WITHOUT ROWID;
CREATE TABLE top_ups (
  repo TEXT NOT NULL, number INTEGER NOT NULL, part TEXT NOT NULL, before TEXT NOT NULL,
  have INTEGER NOT NULL,
  PRIMARY KEY (repo, number, part)
) WITHOUT ROWID;
CREATE TABLE tasks (
  repo TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, cursor TEXT, state TEXT NOT NULL,
  done INTEGER NOT NULL, PRIMARY KEY (repo, kind, key)
) WITHOUT ROWID;
CREATE TABLE warnings (repo TEXT NOT NULL, words TEXT NOT NULL, PRIMARY KEY (repo, words)) WITHOUT ROWID;
CREATE TABLE usage (
  repo TEXT PRIMARY KEY, points INTEGER NOT NULL, requests INTEGER NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;
"""

_ISSUE = (
    "number, title, body, state, state_reason, author, author_association, created_at, updated_at, "
    "closed_at, closed_by, is_pull, is_bot, labels, duplicate_of_repo, duplicate_of_number"
)
_COMMENTS = """
SELECT id, author, author_association, created_at, body, is_bot FROM comments
WHERE repo = ? AND number = ? ORDER BY id
"""
_EVENTS = """
SELECT kind, actor, created_at, target_repo, target_number, target_is_pull, state_reason FROM events
WHERE repo = ? AND number = ? ORDER BY place
"""
# A task of the kind `pool` stores a sample's order and is never done.
_TASKS = "SELECT repo, kind, sum(done), sum(NOT done) FROM tasks WHERE kind <> 'pool' GROUP BY repo, kind"
_TALLIES = {
    "issues": "SELECT repo, count(*) FROM issues WHERE NOT is_pull GROUP BY repo",
    "begun": "SELECT repo, count(*) FROM issues WHERE NOT is_pull AND depth > 0 GROUP BY repo",
    "threads": "SELECT repo, count(*) FROM issues WHERE NOT is_pull AND depth = 2 GROUP BY repo",
    "comments": "SELECT repo, count(*) FROM comments GROUP BY repo",
    "pending": "SELECT repo, count(*) FROM wishes GROUP BY repo",
    "top_ups": "SELECT repo, count(DISTINCT number) FROM top_ups GROUP BY repo",
}
# The place of an event counts back from the newest, so the order by place is that of time, including ties.
_CONTENT = {
    "repos": "SELECT name, outcome, full_name FROM repos WHERE listed AND outcome <> 'failed' ORDER BY name",
    "issues": f"SELECT repo, depth, {_ISSUE} FROM issues ORDER BY repo, number",  # noqa: S608 - constants
    "comments": "SELECT * FROM comments ORDER BY repo, number, id",
    "events": "SELECT * FROM events ORDER BY repo, number, place",
    "missing": "SELECT * FROM missing ORDER BY repo, number",
}

_STORE_FILE = "store.sqlite"
SCHEMA = Schema("crawl store", _APPLICATION, VERSION, _TABLES)
TICKETS = "tickets"  # key of the table meta

T = TypeVar("T")


class Store(AbstractContextManager["Store"]):
    """A crawl's store. It is thread-safe, and readers see only complete pages."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._rows: dict[str, RepoRow] | None = None
        self._kinds: dict[str, dict[int, Kind]] = {}
        self._content_hash: str | None = None

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Store:
        """Open the store at `path`."""
        absent = "no such store; run `gis import` or `gis crawl` first, or choose another working folder"
        return cls(path, open_database(path, SCHEMA, create=create, absent=absent))

    def __exit__(self, *_: object) -> None:
        # SQLite merges the write-ahead log into the file.
        with self._lock, database_errors(self.path):
            self._connection.close()

    def repos(self) -> list[RepoRow]:
        """The requested repositories, by name."""
        return [row for row in self.all_repos() if row.listed]

    def rows_of(self, names: Iterable[str]) -> list[RepoRow]:
        """The rows of requested names in their order, without those never looked up."""
        rows = {row.name.lower(): row for row in self.repos()}
        return [rows[name] for name in map(str.lower, names) if name in rows]

    def stored_threads(
        self, repo: str, *, only_complete: bool = True
    ) -> Iterator[StoredThread]:
        """Iterate over threads that are converted to records only on request."""
        rows = "depth >= ? AND NOT is_pull"
        return self._threads(self.full_name(repo), rows, 2 if only_complete else 0)

    def thread(self, ref: IssueRef) -> Thread | None:
        """A thread, complete or not; None if the issue was not fetched."""
        stored = self.stored_thread(ref)
        return None if stored is None else stored.read()

    def stored_thread(self, ref: IssueRef) -> StoredThread | None:
        """A thread that is converted to records only on request."""
        home = self.full_name(ref.repo)
        return next(self._threads(home, "number = ?", ref.number), None)

    def _threads(self, repo: str, rows: str, value: int) -> Iterator[StoredThread]:
        """Iterate over the threads that a condition selects, by number."""
        sql = f"SELECT {_ISSUE} FROM issues WHERE repo = ? AND {rows} ORDER BY number"  # noqa: S608
        with self._snapshot() as connection:
            for row in connection.execute(sql, (repo, value)):
                ref = IssueRef(repo, row[0])
                comments = connection.execute(_COMMENTS, ref).fetchall()
                events = connection.execute(_EVENTS, ref).fetchall()
                yield StoredThread(ref, row, comments, events)

    def issues(self, repo: str) -> Iterator[Issue]:
        """Iterate over the issues by number, without threads and pull requests."""
        home = self.full_name(repo)
        sql = f"SELECT {_ISSUE} FROM issues WHERE repo = ? AND NOT is_pull ORDER BY number"  # noqa: S608
        with self._snapshot() as connection:
            for row in connection.execute(sql, (home,)):
                yield issue_of_row(home, row)

    def kind(self, ref: IssueRef) -> Kind:
        """The kind of a reference, if it was fetched."""
        repo = self.full_name(ref.repo)
        with self._lock:
            if repo not in self._kinds:
                self._kinds[repo] = self._read_kinds(repo)
            return self._kinds[repo].get(ref.number, Kind.UNKNOWN)

    def _read_kinds(self, repo: str) -> dict[int, Kind]:
        """The kind of each known number of a repository."""
        missing = self._select("SELECT number FROM missing WHERE repo = ?", repo)
        pulls = self.pulls(repo).items()
        return {number: Kind.MISSING for (number,) in missing} | {
            number: Kind.PULL if is_pull else Kind.ISSUE for number, is_pull in pulls
        }

    def pulls(self, repo: str) -> dict[int, bool]:
        """Whether each stored number of a repository is a pull request."""
        rows = self._select(
            "SELECT number, is_pull FROM issues WHERE repo = ?", self.full_name(repo)
        )
        return {number: bool(is_pull) for number, is_pull in rows}

    def usage(self) -> dict[str, Usage]:
        """Usage by repository; "" has that of requests for several repositories."""
        rows = self._select(
            "SELECT repo, points, requests, seconds FROM usage ORDER BY repo"
        )
        return {repo: Usage(*spent) for repo, *spent in rows}

    def tallies(self) -> dict[str, Tally]:
        """Count stored and remaining items by repository; another process may be crawling."""
        by_repo: defaultdict[str, Tally] = defaultdict(Tally)
        with self._snapshot() as connection:
            for name, sql in _TALLIES.items():
                for repo, count in connection.execute(sql):
                    setattr(by_repo[repo], name, count)
            for repo, kind, done, left in connection.execute(_TASKS):
                by_repo[repo].done += Counter({kind: done})
                by_repo[repo].left += Counter({kind: left})
        return by_repo

    def warnings(self) -> list[tuple[str, str]]:
        """Repository and text of each warning about missing data."""
        return self._select("SELECT repo, words FROM warnings ORDER BY 1, 2")

    def content_hash(self) -> str:
        """SHA-256 of the fetched content; it does not depend on when or how it was fetched."""
        with self._lock:
            if self._content_hash is None:
                self._content_hash = self._hash_content()
            return self._content_hash

    def _hash_content(self) -> str:
        digest = hashlib.sha256()
        with self._snapshot() as connection:
            for table, sql in _CONTENT.items():
                digest.update(table.encode())
                for row in connection.execute(sql):
                    line = json.dumps(row, ensure_ascii=False)
                    digest.update(line.encode() + b"\n")
        return digest.hexdigest()

    def full_name(self, repo: str) -> str:
        """The server's spelling of a repository's name, from any case or a former name."""
        row = self.row(repo)
        return row.full_name if row and row.full_name else repo

    def row(self, repo: str) -> RepoRow | None:
        """The row of a repository by its present or a former name, in any case."""
        with self._lock:
            if self._rows is None:
                rows = self.all_repos()
                self._rows = {row.name.lower(): row for row in rows}
                self._rows |= {row.full_name.lower(): row for row in rows}
            return self._rows.get(repo.lower())

    def all_repos(self) -> list[RepoRow]:
        """All rows, including repositories that were not requested."""
        rows = self._select(f"SELECT {REPO_COLUMNS} FROM repos ORDER BY name")  # noqa: S608 - a constant
        return [repo_row(row) for row in rows]

    def tasks(self, repo: str, kind: str) -> list[CrawlTask]:
        """The tasks of a kind by key."""
        rows = self._select(
            "SELECT key, cursor, state, done FROM tasks WHERE repo = ? AND kind = ? ORDER BY key",
            repo,
            kind,
        )
        return [
            CrawlTask(repo, kind, key, cursor, json.loads(state), bool(done))
            for key, cursor, state, done in rows
        ]

    def pending(self, repo: str, limit: int) -> list[IssueRef]:
        """The issues whose threads are to be fetched, by number."""
        rows = self._select(
            "SELECT repo, number FROM wishes WHERE repo = ? ORDER BY number LIMIT ?",
            repo,
            limit,
        )
        return [IssueRef(*row) for row in rows]

    def count_pending(self, repo: str) -> int:
        """Count the issues whose threads are to be fetched."""
        return self._count("wishes WHERE repo = ?", repo)

    def check_issues(self) -> None:
        """Raise DataError if there are no issues, or the last import was stopped."""
        # An import that was killed has stored issues, but no repository.
        found = "SELECT 1 FROM repos JOIN issues ON repo = full_name WHERE NOT is_pull LIMIT 1"
        if not self._select(found):
            raise DataError(
                "contains no issues; run `gis import` or `gis crawl` first",
                path=self.path,
            )
        # An import notes for each issue that it has none of its comments until all are read.
        unread = "SELECT 1 FROM top_ups WHERE have = 0 AND before = '' LIMIT 1"
        if self._select(unread):
            raise DataError("the last import was stopped; run it again", path=self.path)

    def count_threads(self, repo: str, *, up_to: int = MAX_NUMBER) -> int:
        """Count the stored threads, complete or not; `up_to` is the highest number to count."""
        rows = "issues WHERE repo = ? AND number <= ? AND depth > 0 AND NOT is_pull"
        return self._count(rows, self.full_name(repo), up_to)

    def is_complete(self, ref: IssueRef) -> bool:
        """Whether the whole thread was fetched."""
        rows = "issues WHERE repo = ? AND number = ? AND depth = 2"
        return self._count(rows, self.full_name(ref.repo), ref.number) > 0

    def count_top_ups(self, repo: str) -> int:
        """Count the incomplete nested connections."""
        return self._count("top_ups WHERE repo = ?", repo)

    def _count(self, rows: str, *values: str | int) -> int:
        ((count,),) = self._select(f"SELECT count(*) FROM {rows}", *values)  # noqa: S608 - constants
        return int(count)

    def top_ups(self, repo: str, limit: int) -> list[TopUp]:
        """The incomplete nested connections, by number."""
        rows = self._select(
            "SELECT number, part, before, have FROM top_ups WHERE repo = ? ORDER BY number, part LIMIT ?",
            repo,
            limit,
        )
        return [TopUp(IssueRef(repo, number), *page) for number, *page in rows]

    def meta_json(self, key: str, kind: type[T]) -> T | None:
        """Read a value of the table meta."""
        rows = self._select("SELECT value FROM meta WHERE key = ?", key)
        return msgspec.json.decode(rows[0][0], type=kind) if rows else None

    def crawl_record(self) -> dict[str, Any]:
        """The settings of the crawl that filled this store; empty before the first crawl."""
        return self.meta_json("crawl", dict[str, Any]) or {}

    def set_crawl_record(self, record: Mapping[str, object]) -> None:
        """Store the settings of a crawl."""
        self.set_meta("crawl", json.dumps(record))

    def tickets(self) -> Tickets:
        """The imported tickets of other trackers than GitHub."""
        return self.meta_json(TICKETS, Tickets) or {}

    @property
    def site(self) -> str:
        """The root URL of the issues' pages; GitHub's for a saved tracker."""
        if tickets := self.tickets():
            return TicketSite.of(tickets)
        return site_at(self.crawl_record().get("server", "github.com"))

    def set_meta(self, key: str, value: str) -> None:
        """Store a value in the table meta."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value)
            )

    def save(self, page: Page) -> None:
        """Store a page in one transaction."""
        with self._transaction() as connection:
            save_page(connection, page)
        with self._lock:
            self._kinds.clear()
            self._content_hash = None
            if page.repos:
                self._rows = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with (
            self._lock,
            database_errors(self.path),
            transaction(self._connection) as connection,
        ):
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection that reads one state of the store, while a crawl may be writing."""
        with (
            database_errors(self.path),
            closing(connect(self.path, read_only=True)) as connection,
        ):
            connection.execute("BEGIN")
            yield connection

    def _select(self, sql: str, *values: object) -> list[Any]:
        with self._lock, database_errors(self.path):
            return self._connection.execute(sql, values).fetchall()


@contextmanager
def working_folder(work: Path, *, create: bool = True) -> Iterator[None]:
    """Lock a working folder until the block or the process ends, and create it on request.

    Raises ConfigError if it doesn't exist, or another process uses it.
    """
    if not create and not work.is_dir():
        raise ConfigError(
            f"{work}: no such folder; run `gis import` or `gis crawl` first, or choose another"
        )
    with lock_folder(
        work,
        "another gis process is using it; wait until it ends or choose another working folder",
    ):
        yield


@contextmanager
def locked_store(work: Path, *, create: bool = True) -> Iterator[Store]:
    """Lock a working folder and open its store, which is deleted if it gets no repository."""
    path = work / _STORE_FILE
    with (
        working_folder(work, create=create),
        ExitStack() as after,
        Store.open(path, create=create) as store,
    ):
        try:
            yield store
        finally:
            if create and not store.repos():  # such as after a failed import
                after.callback(path.unlink)  # when it is closed


def open_store(work: Path) -> Store:
    """Open the store of a working folder for reading; another process may be writing to it."""
    return Store.open(work / _STORE_FILE)


def site_at(host: str) -> str:
    """The root URL of pages for an API host: `api.HOST` belongs to `HOST`, a local server to github.com."""
    return GITHUB if is_loopback(host) else f"https://{host.removeprefix('api.')}"
