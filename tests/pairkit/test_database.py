"""SQLite files of ours."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pairkit.database import (
    Schema,
    connect,
    database_errors,
    open_database,
    prepare,
    scratch_database,
    scratch_errors,
)
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
    open_database(path, SCHEMA, create=True, absent="").close()
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
    with pytest.raises(DataError, match="an older version"):
        opened(store, Schema("toy store", SCHEMA.application, 3, ""))


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


def changed(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON toys BEGIN DELETE FROM toys; END;",
        "CREATE VIEW v AS SELECT * FROM toys;",
        "CREATE INDEX i ON toys (name);",
        "CREATE INDEX i ON toys (abs(name));",
        "CREATE TABLE more (x);",
        "DROP TABLE toys;",
        "DROP TABLE toys; CREATE VIEW toys AS SELECT 'bear' AS name;",
        "DROP TABLE toys; CREATE TABLE toys (name INTEGER);",
        "ALTER TABLE toys ADD COLUMN kind TEXT;",
        "ALTER TABLE toys ADD COLUMN twice TEXT GENERATED ALWAYS AS (name || name);",
        "DROP TABLE toys; CREATE TABLE toys (name TEXT CHECK (length(name) < 9));",
        "DROP TABLE toys; CREATE VIRTUAL TABLE toys USING fts5(name);",
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_a_store_with_anything_but_our_tables_is_refused(store: Path, statement: str, create: bool) -> None:
    changed(store, statement)
    with pytest.raises(DataError, match=r"no toy store as this version makes it .* move it away"):
        open_database(store, SCHEMA, create=create, absent="")


def test_functions_of_a_schema_do_not_run(store: Path) -> None:
    changed(store, "CREATE VIEW v AS SELECT load_extension('evil') AS x;")
    connection = connect(store)
    assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT x FROM v").fetchall()


def test_a_damaged_store_is_refused_when_it_is_opened(store: Path) -> None:
    connection = opened(store)
    connection.executemany("INSERT INTO toys VALUES (?)", ((f"bear {i:05d}" * 9,) for i in range(2000)))
    connection.close()
    data = bytearray(store.read_bytes())
    data[4096 * 5 : 4096 * 5 + 200] = b"\xff" * 200
    store.write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        open_database(store, SCHEMA, create=False, absent="")


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_links_are_refused_and_their_targets_left_alone(store: Path, ending: str, create: bool) -> None:
    target = store.with_name("precious")
    target.write_bytes(store.read_bytes())
    target.chmod(0o644)
    before = target.read_bytes()
    link = store.with_name(store.name + ending)
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    with pytest.raises(ConfigError, match=f"sqlite{ending}: is a link"):
        open_database(store, SCHEMA, create=create, absent="")
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (before, 0o644)


def test_a_link_to_nothing_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link"):
        open_database(tmp_path / "a.sqlite", SCHEMA, create=True, absent="")
    assert not (tmp_path / "elsewhere").exists()


def test_a_journal_deletes_no_file(store: Path) -> None:
    """A rollback journal may name a file that SQLite deletes once it has been played back."""
    victim = store.with_name("victim")
    victim.write_bytes(b"precious")
    name = str(victim).encode()
    sums = (sum(name) & 0xFFFFFFFF).to_bytes(4, "big")
    end = len(name).to_bytes(4, "big") + sums + bytes.fromhex("d9d505f920a163d7")
    head = bytes.fromhex("d9d505f920a163d7") + bytes(4) + bytes(4) + (1).to_bytes(4, "big")
    head = (head + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")).ljust(512, b"\0")
    (store.parent / "toys.sqlite-journal").write_bytes(head + (4096).to_bytes(4, "big") + name + end)
    with pytest.raises(DataError, match="journal: no journal of ours"):
        open_database(store, SCHEMA, create=False, absent="")
    assert victim.exists()


def test_rights_are_mended(store: Path) -> None:
    store.chmod(0o644)
    open_database(store, SCHEMA, create=True, absent="").close()
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_a_pipe_is_refused_in_plain_words(tmp_path: Path, ending: str) -> None:
    os.mkfifo(tmp_path / f"toys.sqlite{ending}")
    with pytest.raises(ConfigError, match=f"toys.sqlite{ending}: is no file, where one of ours belongs"):
        open_database(tmp_path / "toys.sqlite", SCHEMA, create=True, absent="")


SCRATCH = """
import os
from pathlib import Path
from pairkit.database import scratch_database

connection = scratch_database("CREATE TABLE toys (name TEXT);")
rows = ((f"{number} {'long ' * 200}",) for number in range(60_000))  # 60 MB, of which 32 in memory
connection.executemany("INSERT INTO toys VALUES (?)", rows)
print(*connection.execute("SELECT count(*), sum(length(name)) FROM toys").fetchone())
print([*Path(os.environ["TMPDIR"]).iterdir()])
for file in Path("/proc/self/fd").glob("*"):
    if os.path.lexists(file):
        print(os.readlink(file))
"""


def test_a_scratch_database_is_a_file_without_a_name(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRATCH],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    said, names, *files = ran.stdout.splitlines()
    assert (said, names) == ("60000 60348890", "[]")
    if files:  # where the kernel tells
        assert any(name.startswith(str(tmp_path)) and name.endswith("(deleted)") for name in files)


@pytest.mark.parametrize("name", ["SQLITE_TMPDIR", "TMPDIR"])
def test_the_folder_of_a_scratch_database_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.delenv("SQLITE_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))

    def told() -> str:
        with pytest.raises(ConfigError) as caught, scratch_errors():
            raise full
        return str(caught.value).partition(":")[0]

    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert told() in ("/var/tmp", "/usr/tmp", "/tmp")  # where no such folder is named
    monkeypatch.setenv(name, str(tmp_path))
    assert told() == str(tmp_path)


def test_a_full_disk_of_a_scratch_database_is_told() -> None:
    with closing(scratch_database("CREATE TABLE toys (name TEXT);")) as connection:
        connection.execute("PRAGMA max_page_count = 9")
        with pytest.raises(ConfigError, match="no space left on the device; free some"), scratch_errors():
            connection.executemany("INSERT INTO toys VALUES (?)", [("long " * 200,)] * 1000)
