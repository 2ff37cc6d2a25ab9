"""The file's schema and version, and the database's errors in the words of ours."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairkit.errors import ConfigError, DataError
from pairkit.files import write_errors

VERSION = 1
_APPLICATION = 0x47495331  # "GIS1": tells our file from any other SQLite file

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE repos (
  name TEXT PRIMARY KEY COLLATE NOCASE, outcome TEXT NOT NULL, full_name TEXT NOT NULL, detail TEXT NOT NULL,
  max_number INTEGER NOT NULL, issue_count INTEGER NOT NULL, created_at TEXT NOT NULL,
  newest_at TEXT NOT NULL, as_of TEXT NOT NULL, labels TEXT NOT NULL, listed INTEGER NOT NULL
) WITHOUT ROWID;
-- depth: 0 the issue alone, 1 its thread in part, 2 its whole thread
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
-- place: -1 is the newest event of the issue, -2 the one before
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


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, each with what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        # Extended codes keep the plain code in their low byte.
        raise _explain(path, error, None if code is None else code & 0xFF) from error


def _explain(path: Path, error: sqlite3.Error, code: int | None) -> ConfigError | DataError:
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DataError(f"damaged, or not a crawl store ({error}): move it away and run again", path=path)
    if code == sqlite3.SQLITE_FULL:
        return ConfigError(f"{path}: no space left on the device; free some and run the same command again")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ConfigError(
            f"{path}: another process writes to it; wait until it has ended or choose another --work"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
        return ConfigError(
            f"{path}: can't be read or written ({error}); mend its permissions or choose another --work"
        )
    return DataError(f"unusable ({error}): move it away and run again", path=path)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; the caller writes its own BEGIN and COMMIT."""
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA busy_timeout = 10000")
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last pages, never a consistent file: they are simply fetched again.
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def touch_private(path: Path) -> None:
    """Create the file for its owner alone: issue bodies hold secrets until the texts are scrubbed."""
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)


def prepare(connection: sqlite3.Connection, path: Path, *, create: bool) -> None:
    """Make the tables of a new file, or see that an old one is ours and of our version.

    Raises:
        DataError: another program's file, or one of a newer version.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    is_new = not version and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if is_new and create:
        connection.executescript(
            f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION};"
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )
        return
    if application != _APPLICATION:
        raise DataError("not a crawl store: move it away and run again, or choose another --work", path=path)
    if version > VERSION:
        raise DataError(
            f"made by a newer version ({version} > {VERSION}): update aoe-toolkit or choose another --work",
            path=path,
        )
