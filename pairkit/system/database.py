"""SQLite files of ours: private, of a known version, with errors that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pairkit.app.errors import ConfigError, DataError
from pairkit.system.files import open_own, write_errors

_MOUNTS = Path("/proc/self/mounts")
# Kinds of file systems that several machines share, by how their names begin.
_SHARED = ("9p", "afs", "beegfs", "ceph", "cifs", "fuse", "gluster", "gpfs", "lustre", "nfs", "panfs", "smb")


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
            f"{path}: another process writes to it; wait until it has ended or choose another working folder"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
        return ConfigError(
            f"{path}: can't be read or written ({error}); fix its permissions, or choose another working "
            "folder"
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
        if _is_shared(path):  # a write-ahead log needs memory that all processes of the file share
            connection.execute("PRAGMA journal_mode = DELETE")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last pages, never a consistent file: they are simply fetched again.
            connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _is_shared(path: Path) -> bool:
    """Whether a file is on a network file system, as far as the system reports it."""
    if not _MOUNTS.exists():
        return False
    home = path.absolute().resolve()
    mounts = (line.split() for line in _MOUNTS.read_text(errors="replace").splitlines())
    kinds = {Path(fields[1].replace("\\040", " ")): fields[2] for fields in mounts if len(fields) > 2}
    kind = next((kinds[place] for place in (home, *home.parents) if place in kinds), "")
    return kind.startswith(_SHARED)


def open_database(path: Path, schema: Schema, *, create: bool, absent: str) -> sqlite3.Connection:
    """A connection to a file of this kind."""
    if not create and not path.is_file():
        raise ConfigError(f"{path}: {absent}")
    if create:
        _touch_private(path)
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


def _touch_private(path: Path) -> None:
    """Have the file there, for its owner alone."""
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            open_own(path, private=True).close()
        elif path.is_file():
            path.chmod(0o600)  # not opened and closed: that would end this process's locks on it


def prepare(connection: sqlite3.Connection, path: Path, schema: Schema, *, create: bool) -> None:
    """Make the tables of a new file, or see that an old one is of this kind and version."""
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
            f"not a {schema.name}: move it away and run again, or choose another working folder", path=path
        )
    if version != schema.version:
        age, remedy = (
            ("a newer", "update aoe-toolkit") if version > schema.version else ("an older", "move it away")
        )
        sign = ">" if version > schema.version else "<"
        raise DataError(
            f"made by {age} version ({version} {sign} {schema.version}): {remedy}, or choose another "
            "working folder",
            path=path,
        )
