"""`gis archive --work s3://…`: the dataset of a folder, whoever works at it, and whatever the store does."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gis_builder
from gis_builder._archive import objects, rows
from gis_builder._archive.compact import ledgers_of
from gis_builder._archive.extract import extract_hour
from gis_builder._archive.objects import ObjectPath, existing, location_at, several
from gis_builder._store import Store as Crawl
from pairkit.errors import AuthError, ConfigError, DataError, PairkitError, RemoteError
from tests.gis_builder.archive_world import SOURCES, events_of, files, lines_of, write_hours
from tests.gis_builder.hour_server import serving
from tests.gis_builder.object_server import BUCKET, KEY, SECRET, Store, storing
from tests.two_nodes import two_nodes

pytest.importorskip("obstore")
pytest.importorskip("moto.server", exc_type=ImportError)

RANGE = "2015-01-31-22..2015-02-01-1"
HOURS = ["2015-01-31-22", "2015-01-31-23", "2015-02-01-0", "2015-02-01-1"]
PARTITIONS = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("objects")
    gis_builder.import_tracker(SOURCES, home / "gis.work", progress=False)
    with Crawl.open(home / "gis.work" / "store.sqlite") as crawl:
        own = list(crawl.threads(crawl.repos()[0].full_name))
    write_hours(home / "hours", lines_of(events_of(100, own)), HOURS)
    return home / "hours"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with storing() as served, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in served.environment.items():
            patch.setenv(name, value)
        yield served


@pytest.fixture
def work(store: Store, request: pytest.FixtureRequest) -> Iterator[ObjectPath]:
    """A place of the test's own."""
    store.begin_anew()
    yield ObjectPath(BUCKET, f"runs/{abs(hash(request.node.name))}")
    store.fault = ""


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clients of little patience."""
    monkeypatch.setattr(objects, "PATIENCE", objects.Patience(answer_s=0.4, retries=2, in_all_s=1.5))
    objects._opened.cache_clear()
    yield
    objects._opened.cache_clear()


def build(source: Path | str, out: Path, **more: Any) -> Any:
    given = {"workers": 1, "partitions": PARTITIONS, "progress": False, **more}
    return gis_builder.archive(RANGE, source, out, **given)


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build(source, tmp_path_factory.mktemp("objects") / "gis")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_dataset_has_the_bytes_of_one_made_in_a_folder(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path, workers: int
) -> None:
    made = build(source, tmp_path / "gis", work=f"{work}/", workers=workers)
    assert files(made.out) == files(built.out)
    # What is a machine's own stays with it; the rest is named as in a folder.
    assert {path.name for path in made.work.iterdir()} == {"lock", "dropped.parquet", "repositories.parquet"}
    mine = {f"{room}/{name}" for room in ROOMS for name in (work / room).names()}
    assert mine == {name for name in files(built.work) if "/" in name}
    assert set(store.put.values()) == {1}
    assert len(store.put) == len(mine)


ROOMS = ("hours", "months", "judged", "ties", "placed", "negatives")


def test_what_is_done_is_listed_and_not_done_again(
    source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    build(source, tmp_path / "gis", work=str(work))
    first = files(tmp_path / "gis")
    store.begin_anew()
    build(source, tmp_path / "gis", work=str(work))
    assert files(tmp_path / "gis") == first
    assert not store.put
    assert store.asked["LIST"] == 5  # hours twice, months, partitions, negatives
    assert store.asked["HEAD"] == PARTITIONS + 1  # what is placed, and ties
    assert store.asked.keys() == {"LIST", "HEAD", "GET"}
    build(source, tmp_path / "other", work=str(work))  # from another machine
    assert files(tmp_path / "other") == first
    assert not store.put


def test_shards_need_no_common_folder(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    """Hours come from a server, so that machines have nothing in common but it and the store."""
    with serving(source) as server:
        left, rounds = 1, 0
        while left:
            rounds += 1
            for place in (2, 1):
                home = tmp_path / f"machine-{place}"
                done = build(server.url, home / "gis", work=str(work), shard=f"{place}/2")
                assert done.work == str(work)
                assert done.to_dict()["work"] == str(work)
                assert {path.name for path in (home / "gis.work").iterdir()} <= {"connections", "downloaded"}
            left = done.left
            assert rounds <= 4
        made = build(server.url, tmp_path / "gis", work=str(work))
    assert files(made.out) == files(built.out)
    assert set(store.put.values()) == {1}
    assert sum(server.asked[f"{hour}.json.gz"] for hour in HOURS) == len(HOURS)
    assert (work / "listed").names()


def command(source: Path | str, out: Path, work: ObjectPath, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(source)),
        *("--out", str(out), "--work", str(work), "--partitions", str(PARTITIONS), "-q", *more),
    ]


def kill_once_something_is_there(driver: subprocess.Popen[bytes], folder: ObjectPath) -> None:
    until = time.monotonic() + 120
    while not folder.names() and driver.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    driver.kill()
    driver.wait()


def test_a_killed_run_goes_on_and_does_nothing_twice(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    run = command(source, tmp_path / "gis", work, "--workers", "1")
    kill_once_something_is_there(subprocess.Popen(run), work / "hours")
    assert not (tmp_path / "gis").exists()
    before = len(store.put)
    assert 0 < before < len(files(built.work)) - 3
    made = build(source, tmp_path / "gis", work=str(work))
    assert files(made.out) == files(built.out)
    assert set(store.put.values()) == {1}


@pytest.mark.slow
def test_killed_drivers_and_workers_change_no_byte(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    psutil = pytest.importorskip("psutil")
    run = command(source, tmp_path / "gis", work, "--workers", "2")
    for room in ("hours", "months", "judged"):
        kill_once_something_is_there(subprocess.Popen(run), work / room)
    driver = subprocess.Popen(command(source, tmp_path / "gis", work / "again", "--workers", "2"))
    until, killed = time.monotonic() + 120, 0
    while driver.poll() is None and time.monotonic() < until:
        workers = [
            process
            for process in psutil.Process(driver.pid).children()
            if "spawn_main" in " ".join(process.cmdline())
        ]
        if killed < 2 and workers and (work / "again" / "hours").names():
            os.kill(workers[0].pid, signal.SIGKILL)
            killed += 1
        time.sleep(0.2)
    assert killed
    assert driver.wait() == 0
    assert files(tmp_path / "gis") == files(built.out)
    made = build(source, tmp_path / "gis", work=str(work))
    assert files(made.out) == files(built.out)


def test_two_drivers_at_one_place_make_the_same(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    """What a task makes is the same whoever does it, so that nobody has to wait for another."""
    other = subprocess.Popen(command(source, tmp_path / "other", work, "--workers", "1"))
    made = build(source, tmp_path / "gis", work=str(work))
    assert other.wait(timeout=120) == 0
    assert files(made.out) == files(tmp_path / "other") == files(built.out)
    assert set(store.put.values()) <= {1, 2}


@pytest.mark.slow
def test_a_ray_cluster_needs_no_common_folder(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    """A node is lost meanwhile. Slow: a cluster takes half a minute to start."""
    with two_nodes() as (cluster, second):
        with serving(source) as server:
            where = ["--engine", "ray", "--address", cluster.address]
            driver = subprocess.Popen(command(server.url, tmp_path / "gis", work, *where))
            until = time.monotonic() + 120
            while not (work / "hours").names() and time.monotonic() < until:
                time.sleep(0.02)
            cluster.remove_node(second, allow_graceful=False)
            assert driver.wait(timeout=300) == 0
        assert files(tmp_path / "gis") == files(built.out)


def test_a_store_that_refuses_now_and_then_is_asked_again(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path
) -> None:
    store.fault = "flaky"
    made = build(source, tmp_path / "gis", work=str(work))
    assert files(made.out) == files(built.out)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("503", RemoteError, "HTTP 503 SlowDown"),
        ("silent", RemoteError, "no answer"),
        ("drip", RemoteError, "breaks off"),
        ("403", AuthError, "SignatureDoesNotMatch; check AWS_ACCESS_KEY_ID"),
    ],
)
def test_a_store_that_fails_ends_in_one_line_and_soon(
    source: Path, store: Store, work: ObjectPath, tmp_path: Path, fault: str, kind: type, words: str
) -> None:
    (work / "hours" / "any").write_bytes(b"any")
    store.fault = fault
    for do in (
        lambda: build(source, tmp_path / "gis", work=str(work)),
        lambda: (work / "hours" / "any").read_bytes() if fault != "drip" else (work / "hours").names(),
        lambda: (work / "hours" / "other").write_bytes(b"other") if fault != "drip" else work.names(),
    ):
        start = time.monotonic()
        with pytest.raises(kind, match=words) as told:
            do()
        assert time.monotonic() - start < 10
        assert len(str(told.value).splitlines()) == 1
        assert str(work) in str(told.value)
        assert KEY not in str(told.value)
        assert SECRET not in str(told.value)
        assert isinstance(told.value, PairkitError)
        assert told.value.exit_code == 4


@pytest.mark.usefixtures("hasty")
def test_what_is_wrong_with_the_environment_is_said(
    source: Path, store: Store, work: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="no such bucket"):
        build(source, tmp_path / "gis", work="s3://none-of-ours/gis")
    with pytest.raises(ConfigError, match="no such bucket"):
        ObjectPath("none-of-ours", "gis").write_bytes(b"any")
    for address, words in (
        ("http://10.0.0.1:9000", "over plain http"),
        ("https://user:word@example.org", "holds a user or password"),
        ("ftp://example.org", "AWS_ENDPOINT_URL is"),
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(ConfigError, match=words) as told:
            build(source, tmp_path / "gis", work=str(work))
        assert "word@" not in str(told.value)
    for name, value, words in (
        ("AWS_ACCESS_KEY_ID", f"{KEY}\r", "AWS_ACCESS_KEY_ID holds a line break"),
        ("AWS_SESSION_TOKEN", "a\nb", "AWS_SESSION_TOKEN holds a line break"),
        ("AWS_CHECKSUM_ALGORITHM", "none", "not a valid checksum algorithm; check the variables"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", store.url)
            patch.setenv(name, value)
            objects._opened.cache_clear()
            with pytest.raises(ConfigError, match=words) as told:
                build(source, tmp_path / "gis", work=str(work))
        assert len(str(told.value).splitlines()) == 1
        assert KEY not in str(told.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(RemoteError, match="no answer"):
        build(source, tmp_path / "gis", work=str(work))
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    objects._opened.cache_clear()
    with pytest.raises(AuthError, match="no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        build(source, tmp_path / "gis", work=str(work))
    assert not (tmp_path / "gis").exists()


@pytest.mark.parametrize(
    "url",
    [
        *("s3://", "s3:///gis", "s3://B_/gis", "gs://bucket/gis", "https://bucket/gis", "file:///gis"),
        *("s3://bucket/a b", "s3://bucket/a%20b", "s3://bucket/ü", "s3://bucket/*", "s3://bucket/a\n"),
        *("s3://bucket/..", "s3://bucket/a/../b", "s3://bucket/./a", "s3://bucket//a", "s3://bucket/a//b"),
        *("s3://key:word@bucket/a", "s3://bucket/a@b", "s3://bucket/a?versionId=1", "s3://bucket/a#b"),
    ],
)
def test_urls_that_are_not_taken(source: Path, tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"^work (is|holds) ") as told:
        build(source, tmp_path / "gis", work=url)
    assert "word@" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["out", "work", "exclude"])
def test_a_url_where_a_path_is_expected(source: Path, tmp_path: Path, flag: str) -> None:
    given = {"work": tmp_path / "w", flag: Path("s3://bucket/all")}
    with pytest.raises(ConfigError, match=rf"^{flag} = s3:/bucket/all: is a URL"):
        gis_builder.archive("2015-01-01", source, given.pop("out", tmp_path / "gis"), **given, progress=False)


def test_a_place_in_a_store_is_like_a_path() -> None:
    assert location_at("s3://bucket", "work") == ObjectPath("bucket") == location_at("s3://bucket//", "work")
    folder = location_at("s3://bucket/a/b-1_2.c=3/", "work")
    file = folder / "hours" / "x.parquet"
    assert str(file) == "s3://bucket/a/b-1_2.c=3/hours/x.parquet"
    assert (file.name, file.parent.parent) == ("x.parquet", folder)
    assert str(ObjectPath("bucket") / "hours") == "s3://bucket/hours"
    assert pickle.loads(pickle.dumps(file)) in {file}


def test_one_listing_tells_of_all_files_of_a_folder(
    store: Store, work: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "100")  # a page of the store; of Amazon's 1,000
    there = [work / "hours" / f"{place}.parquet" for place in range(110)]
    several(lambda file: file.write_bytes(b"any"), there)
    (tmp_path / "here").touch()
    store.begin_anew()
    absent = [work / "hours" / "none", work / "months" / "none", tmp_path / "none"]
    assert existing([*there, *absent, tmp_path / "here"]) == {*there, tmp_path / "here"}
    assert store.asked == {"LIST": 3}  # two pages, and another folder
    (there[0]).unlink(missing_ok=True)
    (there[0]).unlink(missing_ok=True)
    assert not there[0].exists()
    assert there[1].exists()


@pytest.mark.parametrize("damages", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_what_others_left_there(
    built: Any, source: Path, store: Store, work: ObjectPath, tmp_path: Path, damages: int
) -> None:
    """Objects at names like ours are passed over; one at a name of ours is told, with what to do."""
    for name in ("hours", "hours/x.parquet", "hours/2015-01-31-22.parquet/part", "judged/00000/of", "lock"):
        ObjectPath(BUCKET, f"{work.key}/{name}").write_bytes(b"junk")
    made = build(source, tmp_path / "gis", work=str(work))
    first = files(made.out)
    assert first == files(built.out)
    rooms = (("hours", "months"), ("months", "judged"), ("judged", ""), ("negatives", ""))
    for place, (room, later) in enumerate(rooms):
        name = sorted(name for name in (work / room).names() if "." in name and name != "x.parquet")[0]
        whole = (work / room / name).read_bytes()
        kinds = 2 * [b"", b"PAR1", whole[: len(whole) // 2], b"\0" * (2 << 20)]
        for junk in kinds[place : place + damages]:
            (work / room / name).write_bytes(junk)
            for file in (work / later).names() if later else ():  # else what was made of it stands
                (work / later / file).unlink(missing_ok=True)
            with pytest.raises(DataError, match=rf"{work}/{room}/{name}: .*; delete it and run again"):
                build(source, tmp_path / "gis", work=str(work))
        (work / room / name).unlink(missing_ok=True)
        build(source, tmp_path / "gis", work=str(work))
        assert files(tmp_path / "gis") == first


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("400 Bad Request: <Code>ExpiredToken</Code>", AuthError, "ExpiredToken; check AWS_ACCESS_KEY_ID"),
        ("403 Forbidden: ", AuthError, "HTTP 403; check AWS_ACCESS_KEY_ID"),
        ("400 Bad Request: <Code>RequestTimeout</Code>", RemoteError, "RequestTimeout"),
        ("400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>", ConfigError, "check AWS_REGION"),
        ("301 Moved: <Code>PermanentRedirect</Code>", ConfigError, "check AWS_REGION"),
        ("400 Bad Request: ", ConfigError, "check AWS_REGION"),  # to HEAD
        ("507 Insufficient Storage: ", RemoteError, "HTTP 507"),
    ],
)
def test_refusals_are_told_apart(said: str, kind: type[PairkitError], words: str) -> None:
    """As clients quote what stores answer that moto does not."""
    told = objects.failure_of(ObjectPath("bucket"), f"Server returned non-2xx status code: {said}")
    assert type(told) is kind
    assert words in str(told)


def test_an_object_whose_name_is_no_path_is_told(store: Store, work: ObjectPath) -> None:
    import requests

    requests.put(
        f"{store.url}/{BUCKET}/{work.key}/hours/%2E%2E/x", data=b"any", timeout=30
    ).raise_for_status()
    requests.put(f"{store.url}/{BUCKET}/{work.key}/hours//x", data=b"any", timeout=30).raise_for_status()
    with pytest.raises(ConfigError, match=r"holds an object whose name is no path, such as a/\.\./b"):
        (work / "hours").names()


@pytest.mark.parametrize("small", [objects.SMALL, 0])
def test_a_share_of_tables_is_read_whole_or_by_ranges(
    source: Path, store: Store, work: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(rows, "SMALL", small)
    here, there = [], []
    for hour in HOURS:
        here.append(tmp_path / hour)
        there.append(work / "hours" / hour)
        for file in (here[-1], there[-1]):
            file.write_bytes(extract_hour(source / f"{hour}.json.gz", hour))
    for place in range(4):
        low, high = rows.bounds(place, 4)
        assert rows.read_share(there, low, high).equals(rows.read_share(here, low, high))
    assert ledgers_of(there) == ledgers_of(here)
    other = work / "hours" / "other"
    pl.DataFrame({"key": [1], "repo_id": [1]}).write_parquet(tmp_path / "other")
    for junk in ((tmp_path / "other").read_bytes(), b"PAR1" * 100):
        other.write_bytes(junk)
        for read in (lambda: rows.read_share([other], 0, rows.KEYS), lambda: ledgers_of([other])):
            with pytest.raises(DataError, match=r"/hours/other: .*; delete it and run again"):
                read()


def test_both_clients_take_the_same_of_the_environment(
    source: Path, store: Store, work: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a profile says."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("[default]\nregion = eu-west-3\n")
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = other\naws_secret_access_key = other\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(rows, "SMALL", 0)
    file = work / "hours" / HOURS[0]
    for region in ("", "eu-north-1"):
        store.begin_anew()
        monkeypatch.setenv("AWS_REGION", region)
        file.write_bytes(extract_hour(source / f"{HOURS[0]}.json.gz", HOURS[0]))
        assert rows.read_share([file], 0, rows.KEYS).height
        assert store.asked["GET"] > 2
        assert store.signed == {(KEY, region or "us-east-1")}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", ["503", "silent", "403"])
def test_what_fails_while_parts_are_read_is_no_damage(
    source: Path, store: Store, work: ObjectPath, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    file = work / "hours" / HOURS[0]
    file.write_bytes(extract_hour(source / f"{HOURS[0]}.json.gz", HOURS[0]))
    monkeypatch.setattr(ObjectPath, "read_up_to", lambda *_: None)  # the first request, which does not fail
    store.fault = fault
    start = time.monotonic()
    with pytest.raises(RemoteError, match=f"{file}: ") as told:
        rows.read_share([file], 0, rows.KEYS)
    assert time.monotonic() - start < 10
    assert KEY not in str(told.value)


def test_without_a_url_nothing_of_stores_is_imported(source: Path, tmp_path: Path) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('obstore was imported', name='obstore')")
    code = (
        "import sys, gis_builder; sys.path.insert(0, sys.argv[4]);"
        "gis_builder.archive(sys.argv[1], *sys.argv[2:4], work=sys.argv[5] or None, workers=1, partitions=1,"
        " progress=False)"
    )
    for work, words in (("", ""), ("s3://bucket/gis", "pip install 'aoe-toolkit[s3]'")):
        given = [RANGE, str(source), str(tmp_path / "gis"), str(tmp_path), work]
        done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True)
        assert (done.returncode == 0) == (not words)
        assert words in done.stderr
    shutil.rmtree(tmp_path / "gis")
