"""Files, folders, databases, servers and clusters."""

import asyncio
import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from pairkit import DataError, RemoteError
from pairkit.base.system import database
from pairkit.base.system.cluster import Cluster, WorkerLost, joined
from pairkit.base.system.database import Schema, connect, database_errors, open_database
from pairkit.base.system.files import (
    open_in_place,
    whole_folder,
    write_errors,
    write_text,
)
from pairkit.base.system.folders import check_apart, differing, lock_folder
from pairkit.base.system.http_server import LOOPBACK, HttpServer, listening_socket
from pairkit.base.system.machine import is_out_of_memory
from tests.support.shorthand import (
    config_error,
    data_error,
    each_line,
    parametrize,
    raises,
    remote_error,
    table,
)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk():
    path = Path("/dev/full")
    with config_error("No space left"), write_errors(path), path.open("wb") as file:
        file.write(b"x" * 10_000)


@table("""
    message, reason
    Error while serializing: I/O error: No space left on device (os error 28) | No space left
    [enforce fail at inline_container.cc:672] . unexpected pos 9760 vs 9652 | most likely no space
    # an OSError of numpy
    288000 requested and 30688 written | most likely no space
""")
def test_disk_errors_wrapped_by_libraries(message, reason):
    with config_error(rf"a: can't be written \({reason}"), write_errors(Path("a")):
        raise OSError(message) if "requested" in message else RuntimeError(message)


def test_killed_writer_keeps_the_old_folder(tmp_path):
    out = tmp_path / "out"
    with whole_folder(out) as partial:
        (partial / "a").write_text("1")
    program = (
        "import sys, time; from pathlib import Path; from pairkit.base.system.files import whole_folder\n"
        "with whole_folder(Path(sys.argv[1])) as p:\n"
        "    (p / 'b').write_text('2'); print('ready', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(out)], stdout=subprocess.PIPE
    )
    if process.stdout is None:
        pytest.fail("no pipe")
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert [p.name for p in out.iterdir()] == ["a"]
    with whole_folder(out) as partial:
        assert list(partial.iterdir()) == []
        (partial / "c").touch(0o600)  # as safetensors writes
    (partial := tmp_path / "usual").touch()
    assert (out / "c").stat().st_mode == partial.stat().st_mode
    partial.unlink()
    with raises(ZeroDivisionError), whole_folder(out) as partial:
        (partial / "d").write_text(str(1 // 0))
    assert [p.name for p in out.iterdir()] == ["c"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    disk = tmp_path / "disk"
    (disk / "folder").mkdir(parents=True)
    (disk / "folder/old").touch()
    (disk / "file").write_text("old")
    for name in ("folder", "file", "absent"):
        (tmp_path / name).symlink_to(disk / name)
    with whole_folder(tmp_path / "folder") as partial:
        (partial / "new").touch()
    for name in ("file", "absent"):
        write_text(tmp_path / name, "new")
        assert (disk / name).read_text() == "new"
        assert (tmp_path / name).is_symlink()
    assert [path.name for path in (disk / "folder").iterdir()] == ["new"]
    assert (tmp_path / "folder").is_symlink()
    assert {path.name for path in disk.iterdir()} == {"folder", "file", "absent"}


def test_open_in_place(tmp_path):
    path = tmp_path / "a"
    with open_in_place(path) as file:
        file.write(b"one")
    with open_in_place(path) as file:
        file.seek(3)
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    open_in_place(path, empty=True).close()
    assert path.read_bytes() == b""


@parametrize("work", ["pairs", "pairs/work", "pairs/a/b"])
def test_working_folder_in_the_dataset_folder(work):
    with config_error("would replace"):
        check_apart(Path("pairs"), Path(work))
    check_apart(Path("work/pairs"), Path("work"))


def test_lock(tmp_path):
    with (
        lock_folder(tmp_path / "w", "busy; wait"),
        config_error("w: busy; wait"),
        lock_folder(tmp_path / "w", "busy; wait"),
    ):
        pass
    with lock_folder(tmp_path / "w", "busy; wait"):
        pass


def test_differing():
    there = {"seed": 1, "model": {"name": "a", "layers": [1, 2]}, "gone": True}
    here = {"seed": 2, "model": {"name": "a", "layers": (1, 2)}}
    assert differing(there, here) == [
        "gone (True there, unset now)",
        "seed (1 there, 2 now)",
    ]
    assert differing(there, there) == []


TOYS = Schema("toy store", 0x544F5931, 2, "CREATE TABLE toys (name TEXT);")


def opened(path, schema=TOYS):
    return open_database(path, schema, create=False, absent="nothing is here")


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "deep" / "toys.sqlite"
    open_database(path, TOYS, create=True, absent="").close()
    return path


def test_new_file_is_private(store):
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    connection = opened(store)
    connection.execute("INSERT INTO toys VALUES ('bear')")
    connection.close()
    assert opened(store).execute("SELECT name FROM toys").fetchall() == [("bear",)]


def test_other_versions(store):
    for version, words in ((1, "newer version"), (3, "an older version")):
        with data_error(words):
            opened(store, Schema("toy store", TOYS.application, version, ""))


def test_invalid_database(tmp_path):
    path = tmp_path / "no.sqlite"
    path.write_bytes(b"nothing of the kind" * 60)
    with data_error("move it away"):
        opened(path)


def test_busy_database(store):
    first, second = opened(store), opened(store)
    with config_error("can't be read or written"), database_errors(store):
        connect(store, read_only=True).execute("INSERT INTO toys VALUES ('bear')")
    second.execute("PRAGMA busy_timeout = 10")
    first.execute("BEGIN IMMEDIATE")
    with config_error("another process writes"), database_errors(store):
        second.execute("BEGIN IMMEDIATE")


@each_line("""
    kind, mode
    nfs4 | delete
    fuse.sshfs | delete
    ext4 | wal
""")
def test_write_ahead_log_only_on_local_disks(store, kind, mode, monkeypatch):
    mounts, shared = store.with_name("mounts"), store.parent / "my files"
    place = str(shared).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/home {place} {kind} rw 0 0\n")
    monkeypatch.setattr(database, "_MOUNTS", mounts)
    shared.mkdir()
    for name in ("new.sqlite", "old.sqlite"):
        if name == "old.sqlite":
            store.rename(shared / name)
        path = shared / name
        with closing(open_database(path, TOYS, create=True, absent="")) as connection:
            connection.execute("INSERT INTO toys VALUES ('bear')")
            assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)
            beside = {each.name for each in shared.glob(f"{name}-*")}
            logs = {f"{name}-wal", f"{name}-shm"}
            assert beside == (set() if mode == "delete" else logs)


def test_ray_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    message = r"engine='ray' needs ray, .* 'aoe-toolkit\[ray\]'"
    with socket.create_server(("127.0.0.1", 0)) as listening, config_error(message):
        joined(f"127.0.0.1:{listening.getsockname()[1]}").__enter__()


class RayError(Exception):
    # Of an error of a task.
    cause = DataError("a fault of its own", path="a.json", row=3)


# Errors of tasks are also of the class of the cause.
KINDS = {"RayTaskError": (OSError,), "LocalRayletDiedError": (), "RaySystemError": ()}
RAY = SimpleNamespace(RayError=RayError)
vars(RAY).update(
    {name: type(name, (RayError, *more), {}) for name, more in KINDS.items()}
)


@parametrize(
    "raised, expected, words",
    [
        (RAY.RayTaskError(), DataError, "^a.json:3: a fault of its own$"),
        (RAY.LocalRayletDiedError(), RemoteError, "run the same command again"),
        (BrokenPipeError(), RemoteError, "run the same command again"),
        (RayError(), WorkerLost, "RayError"),
    ],
)
def test_errors_of_tasks_and_workers(raised, expected, words):
    def fail(*_, **__):
        raise raised

    cluster = Cluster(SimpleNamespace(get=fail, wait=fail, exceptions=RAY), "auto")
    with raises(expected, match=words):
        cluster.fetched(object())
    if expected is RemoteError:
        with remote_error(words):
            cluster.first([object()])
        with remote_error(words):
            cluster.begun(fail, 1)


def test_first_finished_call():
    ray = SimpleNamespace(
        wait=lambda references, timeout: (references[1:2], []), exceptions=RAY
    )
    assert Cluster(ray, "auto").first(["a", "b"], 1.0) == "b"
    assert Cluster(ray, "auto").first(["a"], 1.0) is None


@each_line("""
    message
    [enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory
    CUDA out of memory. Tried to allocate 2.00 GiB.
    could not create a memory object
    CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
""")
def test_out_of_memory_messages(message):
    assert is_out_of_memory(RuntimeError(message))


def test_other_errors():
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("size mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))


def get(port):
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    connection.request("GET", "/")
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def test_close_finishes_requests_and_frees_the_port():
    begun, free = threading.Event(), threading.Event()

    async def application(scope, receive, send):
        begun.set()
        while not free.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    listening = listening_socket(LOOPBACK, 0)
    port = listening.getsockname()[1]
    server = HttpServer(
        application, listening, name="test", connections=8, receive_s=30, stop_s=30
    )
    with config_error(f"port {port} of 127.0.0.1 can't be used"):
        listening_socket(LOOPBACK, port)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(get(port)))
    asking.start()
    assert begun.wait(30)
    closing = threading.Thread(target=server.close)
    closing.start()
    free.set()
    closing.join(30)
    asking.join(30)
    status, body, headers = answers[0]
    assert (status, body) == (200, b"done")
    assert "server" not in headers
    server.close()
    server.wait()
    listening_socket(LOOPBACK, port).close()


@parametrize("port", [-1, 65_536, 99_999])
def test_ports_out_of_range_are_refused(port):
    with config_error(rf"port=.*{port}.*: expected 0 .* to 65535"):
        listening_socket(LOOPBACK, port)
