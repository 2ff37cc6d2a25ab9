"""SQLite files of ours."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from pairkit.database import Schema, connect, database_errors, prepare, touch_private
from pairkit.errors import ConfigError, DataError

SCHEMA = Schema("toy store", 0x544F5931, 2, "CREATE TABLE toys (name TEXT);")


def opened(path: Path, schema: Schema = SCHEMA, *, create: bool = False) -> sqlite3.Connection:
    with database_errors(path):
        connection = connect(path)
        prepare(connection, path, schema, create=create)
    return connection


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "toys.sqlite"
    touch_private(path)
    opened(path, create=True).close()
    return path


def test_a_new_file_is_private_and_can_be_opened_again(store: Path) -> None:
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    connection = opened(store)
    connection.execute("INSERT INTO toys VALUES ('bear')")
    connection.close()
    assert opened(store).execute("SELECT name FROM toys").fetchall() == [("bear",)]


def test_files_of_another_kind_or_version(store: Path) -> None:
    with pytest.raises(DataError, match="not a doll store"):
        opened(store, Schema("doll store", 1, 2, ""))
    with pytest.raises(DataError, match="newer version"):
        opened(store, Schema("toy store", SCHEMA.application, 1, ""))


def test_what_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "no.sqlite"
    path.write_bytes(b"nothing of the kind" * 60)
    with pytest.raises(DataError, match="move it away"):
        opened(path)


def test_a_file_that_another_process_writes_to(store: Path) -> None:
    first, second = opened(store), opened(store)
    second.execute("PRAGMA busy_timeout = 10")
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigError, match="another process writes"), database_errors(store):
        second.execute("BEGIN IMMEDIATE")


def test_a_read_only_connection_writes_nothing(store: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read or written"), database_errors(store):
        connect(store, read_only=True).execute("INSERT INTO toys VALUES ('bear')")
