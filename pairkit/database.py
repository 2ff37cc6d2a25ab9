"""SQLite files of ours: private, in WAL mode, of a known version, with errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pairkit.errors import ConfigError, DataError
from pairkit.files import write_errors


@dataclass(frozen=True, slots=True)
class Schema:
    """What tells a kind of file from all others, and what is in it."""

    name: str  # for people: "crawl store"
    application: int  # SQLite's application_id
    version: int
    tables: str  # CREATE statements


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
        return DataError(
            f"damaged, or not a database of ours ({error}): move it away and run again", path=path
        )
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


def open_database(path: Path, schema: Schema, *, create: bool, absent: str) -> sqlite3.Connection:
    """A connection to a file of this kind.

    Args:
        path: The SQLite file.
        schema: What must be in it.
        create: Make it where it is absent, readable by its owner alone.
        absent: What to say and advise where it is absent and not to be made.

    Raises:
        ConfigError: it is absent (without `create`), unreadable, or in use.
        DataError: it is damaged, another program's, or of a newer version.
    """
    if create:
        touch_private(path)
    elif not path.is_file():
        raise ConfigError(f"{path}: {absent}")
    with database_errors(path):
        connection = connect(path)
        try:
            prepare(connection, path, schema, create=create)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is written inside is kept, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def touch_private(path: Path) -> None:
    """Create the file for its owner alone."""
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)


def prepare(connection: sqlite3.Connection, path: Path, schema: Schema, *, create: bool) -> None:
    """Make the tables of a new file, or see that an old one is of this kind and version.

    Raises:
        DataError: another program's file, or one of another version.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    is_new = not version and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if is_new and create:
        connection.executescript(
            f"BEGIN IMMEDIATE; {schema.tables} PRAGMA application_id = {schema.application};"
            f"PRAGMA user_version = {schema.version}; COMMIT;"
        )
        return
    if application != schema.application:
        raise DataError(
            f"not a {schema.name}: move it away and run again, or choose another --work", path=path
        )
    if version > schema.version:
        raise DataError(
            f"made by a newer version ({version} > {schema.version}): update aoe-toolkit or choose another "
            "--work",
            path=path,
        )
