"""Our SQLite files: private, versioned, with errors that have a remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import write_errors

_MOUNTS = Path("/proc/self/mounts")
_NOT_WRITABLE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
)
# Prefixes of names of network file systems.
_SHARED = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse",
    "gluster",
    "gpfs",
    "lustre",
    "nfs",
    "panfs",
    "smb",
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A kind of SQLite file: its name, version and tables."""

    name: str  # in messages, such as "crawl store"
    application: int  # SQLite's application_id
    version: int
    tables: str  # CREATE statements
    journal: str = "WAL"  # with DELETE each commit is in the file itself, not beside it


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite, with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        # Extended codes have the plain code in the low byte.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise ConfigError(
                f"{path}: another process writes to it; wait until it has ended or use another working folder"
            ) from error
        if code in _NOT_WRITABLE:
            raise ConfigError(
                f"{path}: can't be read or written ({error}); free space, fix its permissions or use another"
                " working folder"
            ) from error
        raise DataError(
            f"not usable ({error}): move it away and run again", path=path
        ) from error


def connect(
    path: Path, *, read_only: bool = False, journal: str = "WAL"
) -> sqlite3.Connection:
    """A connection in autocommit mode."""
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA busy_timeout = 10000")
    if not read_only:
        # A write-ahead log needs shared memory.
        if _is_shared(path) or journal == "DELETE":
            connection.execute("PRAGMA journal_mode = DELETE")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last transactions, but the file stays consistent.
            connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _is_shared(path: Path) -> bool:
    """Whether a file is on a network file system (on Linux)."""
    if not _MOUNTS.exists():
        return False
    file_systems = {}
    for mount in _MOUNTS.read_text(errors="replace").splitlines():
        _, mount_point, kind, *_ = mount.split()
        file_systems[Path(mount_point.replace("\\040", " "))] = kind
    home = path.resolve()
    for folder in (home, *home.parents):
        if folder in file_systems:
            return file_systems[folder].startswith(_SHARED)
    return False


def open_database(
    path: Path,
    schema: Schema,
    *,
    create: bool,
    absent: str,
) -> sqlite3.Connection:
    """Open a file of this kind; with `create`, make it and its folder if they are missing.

    Raises ConfigError with the text `absent` for a missing file, and DataError for one of another kind or version.
    """
    if not create and not path.is_file():
        raise ConfigError(f"{path}: {absent}")
    if create:  # readable and writable only by its owner
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.touch(0o600)
            elif path.is_file():
                # Closing the file would release this process's locks on it.
                path.chmod(0o600)
    with database_errors(path):
        connection = connect(path, journal=schema.journal)
        try:
            prepare(connection, path, schema, create=create)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction, which is rolled back on errors."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def prepare(
    connection: sqlite3.Connection,
    path: Path,
    schema: Schema,
    *,
    create: bool,
) -> None:
    """Make the tables of a new file; raises DataError for an existing one of another kind or version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    has_tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if create and not version and not has_tables:
        connection.executescript(
            f"BEGIN IMMEDIATE; {schema.tables} PRAGMA application_id = {schema.application};"
            f"PRAGMA user_version = {schema.version}; COMMIT;"
        )
        return
    if application != schema.application:
        remedy = "move it away and run again, or use another working folder"
        raise DataError(f"not a {schema.name}: {remedy}", path=path)
    if version != schema.version:
        age = "an older"
        remedy = "move it away"
        if version > schema.version:
            age = "a newer"
            remedy = "update aoe-toolkit"
        raise DataError(
            f"made by {age} version ({version}, here {schema.version}): {remedy}, or choose another working"
            " folder",
            path=path,
        )
