from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from pairkit import ConfigError, DataError
from pairkit.base.system import database
from pairkit.base.system.database import Schema, connect, database_errors, open_database

SCHEMA = Schema("toy store", 0x544F5931, 2, "CREATE TABLE toys (name TEXT);")


def opened(path: Path, schema: Schema = SCHEMA) -> sqlite3.Connection:
    return open_database(path, schema, create=False, absent="nothing is here")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "toys.sqlite"
    open_database(path, SCHEMA, create=True, absent="").close()
    return path


def test_new_file_is_private(store: Path) -> None:
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    connection = opened(store)
    connection.execute("INSERT INTO toys VALUES ('bear')")
    connection.close()
    assert opened(store).execute("SELECT name FROM toys").fetchall() == [("bear",)]


def test_other_kinds_and_versions(store: Path) -> None:
    with pytest.raises(DataError, match="not a doll store"):
        opened(store, Schema("doll store", 1, 2, ""))
    with pytest.raises(DataError, match="newer version"):
        opened(store, Schema("toy store", SCHEMA.application, 1, ""))
    with pytest.raises(DataError, match="an older version"):
        opened(store, Schema("toy store", SCHEMA.application, 3, ""))


def test_invalid_database(tmp_path: Path) -> None:
    path = tmp_path / "no.sqlite"
    path.write_bytes(b"nothing of the kind" * 60)
    with pytest.raises(DataError, match="move it away"):
        opened(path)


def test_busy_database(store: Path) -> None:
    first, second = opened(store), opened(store)
    second.execute("PRAGMA busy_timeout = 10")
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigError, match="another process writes"), database_errors(store):
        second.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize(("kind", "mode"), [("nfs4", "delete"), ("fuse.sshfs", "delete"), ("ext4", "wal")])
def test_write_ahead_log_only_on_local_disks(
    store: Path, kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, shared = store.with_name("mounts"), store.parent / "my files"
    place = str(shared).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/home {place} {kind} rw 0 0\n")
    monkeypatch.setattr(database, "_MOUNTS", mounts)
    shared.mkdir()
    for name in ("new.sqlite", "old.sqlite"):
        if name == "old.sqlite":
            store.rename(shared / name)
        with closing(open_database(shared / name, SCHEMA, create=True, absent="")) as connection:
            connection.execute("INSERT INTO toys VALUES ('bear')")
            assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)
            names = {path.name for path in shared.glob(f"{name}-*")}
            assert names == (set() if mode == "delete" else {f"{name}-wal", f"{name}-shm"})


def test_read_only_connection(store: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read or written"), database_errors(store):
        connect(store, read_only=True).execute("INSERT INTO toys VALUES ('bear')")
    with pytest.raises(ConfigError, match="nothing is here"):
        opened(store.with_name("none"))
