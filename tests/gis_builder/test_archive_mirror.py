"""Hours from a server: the same bytes as from a folder, whatever goes wrong on the way."""

from __future__ import annotations

import pickle
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gis_builder
from gis_builder._archive.extract import extract_hour
from gis_builder._archive.hours import hours_between
from gis_builder._archive.mirror import tries
from gis_builder._archive.mirror.download import ChangedOnServer
from gis_builder._archive.mirror.listing import Listed
from gis_builder._archive.mirror.server import mirror_at
from gis_builder._archive.mirror.slots import connection
from gis_builder._archive.mirror.wire import USER_AGENT
from gis_builder._archive.tasks import do
from gis_builder._store import Store
from pairkit.errors import ConfigError, DataError, RemoteError
from tests.gis_builder.archive_world import SOURCES, events_of, lines_of, write_hours
from tests.gis_builder.hour_server import Hours, serving
from tests.gis_builder.test_archive import files

RANGE = "2015-01-01-0..2015-01-01-4"
HOURS = ["2015-01-01-0", "2015-01-01-1", "2015-01-01-3"]  # 2 and 4 are missing
FIRST = "2015-01-01-0.json.gz"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = tries.Patience(failures=4, backoff_s=0.001, most_wait_s=2.0, answer_s=20.0)
    monkeypatch.setattr(tries, "PATIENCE", patience)
    for module in ("listing", "download"):
        monkeypatch.setattr(f"gis_builder._archive.mirror.{module}.PATIENCE", patience)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    work = tmp_path_factory.mktemp("mirror") / "gis.work"
    gis_builder.import_tracker(SOURCES, work, progress=False)
    with Store.open(work / "store.sqlite") as store:
        threads = list(store.threads(store.repos()[0].full_name))
        return lines_of(events_of(1, threads[:150]))


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> Path:
    folder = tmp_path_factory.mktemp("mirror") / "hours"
    write_hours(folder, lines, HOURS)
    return folder


@pytest.fixture(scope="module")
def expected(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return files(build(origin, tmp_path_factory.mktemp("mirror") / "gis").out)


@pytest.fixture
def server(origin: Path, tmp_path: Path) -> Iterator[Hours]:
    folder = tmp_path / "hours"
    shutil.copytree(origin, folder)
    with serving(folder) as hours:
        yield hours


@pytest.fixture(scope="module")
def rows(origin: Path) -> dict[str, bytes]:
    """What each hour's task makes of the folder's file."""
    return {hour: extract_hour(origin / f"{hour}.json.gz", hour) for hour in HOURS}


def extracted(server: Hours, tmp_path: Path, *, keep: bool = False) -> dict[str, bytes]:
    """What the tasks of the hours make of the server's files."""
    mirror = mirror_at(server.url, tmp_path / "work", tmp_path / "work", 4, keep=keep)
    asked = hours_between(RANGE)
    for task in mirror.tasks(asked):
        do(task)
    return {hour.hour: hour.function(*hour.arguments) for hour in mirror.find(asked)}


def build(source: Path | str, out: Path, **more: Any) -> Any:
    return gis_builder.archive(
        RANGE, source, out, **{"workers": 1, "partitions": 2, "progress": False, **more}
    )


def test_the_same_bytes_as_from_a_folder(
    server: Hours, origin: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    made = build(server.url, tmp_path / "gis")
    assert files(made.out) == expected
    assert made.statistics["months"]["2015-01"]["missing_hours"] == ["2015-01-01-2", "2015-01-01-4"]
    assert server.agents == {USER_AGENT}
    assert "aoe-toolkit" in USER_AGENT
    assert [server.asked[f"{hour}.json.gz"] for hour in HOURS] == [1, 1, 1]
    assert not list((made.work / "downloaded").iterdir())
    asked = server.asked.total()
    assert files(build(server.url, tmp_path / "gis").out) == expected  # nothing is asked for twice
    assert server.asked.total() == asked
    # Tasks are named alike, so that a folder goes on with what a server began.
    names = {path.name for path in (made.work / "hours").iterdir()}
    build(origin, tmp_path / "gis")
    assert {path.name for path in (made.work / "hours").iterdir()} == names


DATED = {"Retry-After": "1"}
FAULTS: dict[str, list[Any]] = {
    "dropped in the middle": [1500, 700, 0],
    "overloaded": [(503, DATED), (429, {}), (500, {})],
    "a wrong length, cut off": [900, (502, {})],
    "garbage": ["garbage", "garbage"],
    "begins over and over": [(416, {"Content-Range": "bytes */1"}), 100],
}


@pytest.mark.parametrize(
    ("fault", "names_versions"),
    [*((fault, True) for fault in FAULTS), ("dropped in the middle", False), ("garbage", False)],
)
def test_faults_change_nothing(
    server: Hours, rows: dict[str, bytes], tmp_path: Path, fault: str, names_versions: bool
) -> None:
    server.has_md5 = server.has_version = names_versions
    server.faults = {FIRST: list(FAULTS[fault]), f"{FIRST} end": [(503, {}), 3]}
    if fault == "garbage" and not names_versions:  # its end tells
        server.faults = {FIRST: ["garbage"]}
        with pytest.raises(ChangedOnServer, match="changed on the server meanwhile"):
            extracted(server, tmp_path)
    assert extracted(server, tmp_path) == rows
    if fault == "dropped in the middle":
        size = (server.folder / FIRST).stat().st_size
        assert (server.sent[FIRST] == size) == names_versions  # it went on where it broke off


def test_a_digest_of_the_whole_answer_counts_too(
    server: Hours, rows: dict[str, bytes], tmp_path: Path
) -> None:
    """One that comes with the body alone, as `Content-MD5`: damaged alike twice, it is still damaged."""
    server.has_md5, server.names_content_md5 = False, True
    server.faults = {FIRST: ["damaged", "damaged"]}
    assert extracted(server, tmp_path) == rows
    assert server.asked[FIRST] == 3


def test_a_download_that_was_killed_goes_on(
    server: Hours, expected: dict[str, bytes], tmp_path: Path
) -> None:
    held = threading.Event()
    size = (server.folder / FIRST).stat().st_size
    server.faults = {FIRST: [size // 2, (503, {"Retry-After": "500"}), lambda _: held.wait(30)]}
    command = [
        *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", server.url),
        *("--out", str(tmp_path / "gis"), "--workers", "1", "--partitions", "2", "-q"),
    ]
    driver = subprocess.Popen(command)
    until = time.monotonic() + 120
    while server.asked[FIRST] < 2 and time.monotonic() < until:
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    (part,) = (tmp_path / "gis.work" / "downloaded").iterdir()
    assert part.stat().st_size == size // 2
    server.faults = {}
    assert files(build(server.url, tmp_path / "gis").out) == expected
    assert server.sent[FIRST] == size
    held.set()


def test_a_file_that_changes_meanwhile_is_begun_anew(
    server: Hours, origin: Path, lines: list[bytes], tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    write_hours(changed, lines[: len(lines) * 9 // 10], HOURS)

    def change(path: Path) -> None:
        shutil.copy(changed / path.name, path)

    server.faults = {FIRST: [800, change]}
    made = build(server.url, tmp_path / "gis")
    mixed = tmp_path / "mixed"
    shutil.copytree(origin, mixed)
    shutil.copy(changed / FIRST, mixed / FIRST)
    assert files(made.out) == files(build(mixed, tmp_path / "other").out)
    server.faults = {"2015-01-01-1.json.gz": [lambda path: path.unlink()]}
    shutil.rmtree(tmp_path / "gis.work")
    made = build(server.url, tmp_path / "gis", fresh=True)
    assert "2015-01-01-1" in made.statistics["months"]["2015-01"]["missing_hours"]


@pytest.mark.parametrize("has_md5", [True, False])
def test_an_hour_that_is_broken_on_the_server_is_the_hour_of_a_folder(
    server: Hours, tmp_path: Path, has_md5: bool
) -> None:
    server.has_md5 = has_md5
    path = server.folder / FIRST
    path.write_bytes(path.read_bytes()[:-2000])
    (server.folder / "2015-01-01-2.json.gz").write_bytes(b"<html>")
    (server.folder / "2015-01-01-4.json.gz").write_bytes(b"")
    hours = [name.name.partition(".")[0] for name in sorted(server.folder.iterdir())]
    assert extracted(server, tmp_path) == {
        hour: extract_hour(server.folder / f"{hour}.json.gz", hour) for hour in hours
    }
    assert server.asked[FIRST] == (1 if has_md5 else 2)  # it came alike twice


def test_hours_may_be_kept_and_are_a_folder_then(
    server: Hours, origin: Path, rows: dict[str, bytes], tmp_path: Path
) -> None:
    assert extracted(server, tmp_path, keep=True) == rows
    kept = tmp_path / "work" / "downloaded"
    assert files(kept) == files(origin)
    asked = server.asked[FIRST]
    assert extracted(server, tmp_path) == rows
    assert server.asked[FIRST] == asked
    assert files(kept) == files(origin)


def test_shards_download_their_own_hours(server: Hours, expected: dict[str, bytes], tmp_path: Path) -> None:
    left = 1
    while left:
        left = [build(server.url, tmp_path / "gis", shard=f"{place}/2") for place in (1, 2)][-1].left
    assert [server.asked[f"{hour}.json.gz"] for hour in HOURS] == [1, 1, 1]
    assert files(build(server.url, tmp_path / "gis").out) == expected


@pytest.mark.slow
def test_workers_share_the_connections_that_are_allowed(
    server: Hours, expected: dict[str, bytes], tmp_path: Path
) -> None:
    made = build(server.url, tmp_path / "gis", workers=2, parallel=1)
    assert server.most_at_once == 1
    assert files(made.out) == expected


def test_no_more_connections_at_once_than_allowed(tmp_path: Path) -> None:
    held: list[bool] = []
    with connection(tmp_path / "slots", 2), connection(tmp_path / "slots", 2):
        waiting = threading.Thread(target=_hold, args=(tmp_path / "slots", held))
        waiting.start()
        waiting.join(0.2)
        assert not held
    waiting.join(30)
    assert held


def _hold(folder: Path, held: list[bool]) -> None:
    with connection(folder, 2):
        held.append(True)


def test_what_a_server_is_not_followed_to(server: Hours, tmp_path: Path) -> None:
    key = f"{FIRST} end"
    places = ("http://10.0.0.1/x", "file:///etc/passwd", "https://example.org/x", "//10.0.0.1/x", "//[", "")
    for location in places:
        server.faults = {key: [(302, {"Location": location})] * 9}
        with pytest.raises(RemoteError, match=r"not followed|again and again"):
            build(server.url, tmp_path / "gis")
    server.faults = {key: [(302, {"Location": f"/{FIRST}"})]}
    extracted(server, tmp_path)
    assert not any("Authorization" in headers or "Cookie" in headers for headers in server.headers)


def test_what_can_not_be_a_source(server: Hours, tmp_path: Path) -> None:
    for url, words in {
        "http://data.gharchive.org": "use https",
        "file:///hours": "expected a server's root",
        "ftp://example.org": "expected a server's root",
        "https://me:secret@example.org": "user or password",
        "https://example.org/?a=1": "query",
    }.items():
        with pytest.raises(ConfigError, match=words) as caught:
            build(url, tmp_path / "gis")
        assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="parallel = 0"):
        build(server.url, tmp_path / "gis", parallel=0)
    for status in (401, 403, 418):
        server.faults = {f"{FIRST} end": [(status, {})]}
        with pytest.raises(RemoteError, match=f"{FIRST}: HTTP {status}"):
            build(server.url, tmp_path / "gis")
    server.faults = {f"{FIRST} end": [(503, {"Retry-After": "86400"})]}
    with pytest.raises(RemoteError, match="left alone for 86400 s"):
        build(server.url, tmp_path / "gis")
    server.faults = {f"{FIRST} end": [(503, {})] * 9}
    with pytest.raises(RemoteError, match="failed 4 times in a row"):
        build(server.url, tmp_path / "gis")
    server.faults = {}
    server.has_ranges = False
    with pytest.raises(RemoteError, match="parts of files"):
        build(server.url, tmp_path / "gis")
    (tmp_path / "empty").mkdir()
    with serving(tmp_path / "empty") as other, pytest.raises(DataError, match="none of the hours"):
        build(other.url, tmp_path / "gis")
    with pytest.raises(RemoteError, match="failed 4 times"):
        build("http://127.0.0.1:1", tmp_path / "gis")


def test_a_server_that_drips_is_given_up(
    server: Hours, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("listing", "download"):
        monkeypatch.setattr(
            f"gis_builder._archive.mirror.{module}.PATIENCE", tries.PATIENCE._replace(answer_s=0.2)
        )
    server.faults = {f"{FIRST} end": [lambda _: time.sleep(0.6)] * 9}
    with pytest.raises(RemoteError, match="no answer in time"):
        build(server.url, tmp_path / "gis")


def test_of_an_end_that_never_ends_no_more_is_read(server: Hours, tmp_path: Path) -> None:
    server.faults = {f"{FIRST} end": ["endless"] * 9}
    with pytest.raises(RemoteError, match="another part of the file"):
        build(server.url, tmp_path / "gis")
    assert server.sent[f"{FIRST} end"] < 4 * 8 << 20


def test_a_disk_that_is_full_in_the_middle_of_a_download(
    server: Hours, rows: dict[str, bytes], tmp_path: Path
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (server.folder / FIRST).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limit[1]))
    try:
        with pytest.raises(ConfigError, match="larger than a file may be there"):
            extracted(server, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert extracted(server, tmp_path) == rows
    assert server.sent[FIRST] <= 2 * size


def test_what_workers_tell_one_another_survives_the_way() -> None:
    error = pickle.loads(pickle.dumps(ChangedOnServer("2015-01-01-0")))
    assert error.hour in str(error)
    listed = Listed("2015-01-01-0", 9, "00" * 8)
    assert pickle.loads(pickle.dumps(listed)) == listed
    assert hash(listed)
