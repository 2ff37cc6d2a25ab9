"""`gis archive` from hours to a dataset: the same bytes whoever works on it, whenever it is stopped."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gis_builder
from gis_builder._archive.engine import Local
from gis_builder._archive.judged import Ties, pack, unpack
from gis_builder._archive.tasks import Task
from gis_builder._records import Thread
from gis_builder._store import Store
from pairkit.errors import ConfigError, DataError
from tests.gis_builder.archive_world import SOURCES, events_of, files, lines_of, write_hours
from tests.two_nodes import two_nodes

RANGE = "2015-01-01-0..2015-02-01-1"
HOURS = [*(f"2015-01-01-{hour}" for hour in range(4)), "2015-02-01-0", "2015-02-01-1"]


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Thread]]:
    """Threads of two sample trackers."""
    work = tmp_path_factory.mktemp("archive") / "gis.work"
    gis_builder.import_tracker(SOURCES, work, progress=False)
    with Store.open(work / "store.sqlite") as store:
        return {row.full_name: list(store.threads(row.full_name)) for row in store.repos()[:2]}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, threads: dict[str, list[Thread]]) -> Path:
    folder = tmp_path_factory.mktemp("archive") / "hours"
    write_hours(folder, world(threads), HOURS)
    return folder


def world(threads: dict[str, list[Thread]]) -> list[bytes]:
    events = [event for place, own in enumerate(threads.values()) for event in events_of(100 + place, own)]
    return lines_of(events)


def build(source: Path, out: Path, **more: Any) -> Any:
    given = {"workers": 1, "partitions": 3, "progress": False, **more}
    return gis_builder.archive(RANGE, source, out, **given)


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build(source, tmp_path_factory.mktemp("archive") / "gis")


def test_the_dataset_says_what_it_is(built: Any) -> None:
    assert built.positives > 30
    built.audit.check()
    card = (built.out / "README.md").read_text()
    assert "GH Archive" in card
    assert "| 2015-01 | 744 | 740 |" in card  # hours asked for, and missing
    assert "6 hours; 740 hours missing, 0 broken off" in built.notes()[-1]
    run = json.loads((built.out / "run.json").read_text())
    assert run["settings"]["hours"] == RANGE
    assert "workers" not in json.dumps(run)
    assert str(built.work) not in json.dumps(run)
    assert built.statistics["months"]["2015-02"]["events"] > 0
    assert built.to_dict()["positives"] == built.positives
    assert (built.work / "dropped.parquet").exists()


def test_verdicts_and_pairs_are_those_of_a_build_of_the_same_threads(
    built: Any, threads: dict[str, list[Thread]], tmp_path: Path
) -> None:
    """An import of what the archive can know: threads without marks."""
    dump = tmp_path / "dump"
    for repo, own in threads.items():
        save_dump(dump / repo, own)
    work = tmp_path / "gis.work"
    gis_builder.import_tracker(dump, work, progress=False)
    gis_builder.detect(work, progress=False)
    other = gis_builder.pair(work, tmp_path / "gis", progress=False)
    mine = {(row["url1"], row["url2"]): row for row in built.pairs.to_dicts() if row["label"]}
    theirs = {(row["url1"], row["url2"]): row for row in other.pairs.to_dicts() if row["label"]}
    both = mine.keys() & theirs.keys()
    assert len(both) >= 0.97 * max(len(mine), len(theirs))
    for key in both:
        for name in ("text1", "text2", "cluster", "relation", "reason", "evidence"):
            assert mine[key][name] == theirs[key][name]


def save_dump(folder: Path, threads: list[Thread]) -> None:
    folder.mkdir(parents=True)
    with (
        (folder / "issues.jsonl").open("w") as issues,
        (folder / "comments.jsonl").open("w") as comments,
        (folder / "events.jsonl").open("w") as events,
    ):
        for thread in threads:
            issue = thread.issue
            url = f"https://api.github.com/repos/{issue.repo}"
            item = {
                "repository_url": url,
                "number": issue.number,
                "title": issue.title,
                "body": issue.body,
                "state": issue.state,
                "state_reason": issue.state_reason,
                "user": {"login": issue.author or "ghost"},
                "author_association": issue.author_association,
                "labels": [{"name": name} for name in issue.labels],
                "created_at": issue.created_at,
                "updated_at": issue.updated_at,
                "closed_at": issue.closed_at,
            }
            issues.write(json.dumps(item) + "\n")
            home = {"issue_url": f"{url}/issues/{issue.number}"}
            for comment in thread.comments:
                user = {"login": comment.author or "ghost", "type": "Bot" if comment.is_bot else "User"}
                said = {
                    "id": comment.id,
                    "user": user,
                    "author_association": comment.author_association,
                    "created_at": comment.created_at,
                    "body": comment.body,
                }
                comments.write(json.dumps(home | said) + "\n")
            for event in thread.events:
                if event.kind in ("closed", "reopened"):
                    done = {
                        "event": event.kind,
                        "actor": {"login": event.actor or "ghost"},
                        "created_at": event.created_at,
                        "state_reason": event.state_reason,
                    }
                    events.write(json.dumps(home | done) + "\n")


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 40])
def test_the_number_of_partitions_changes_nothing(
    built: Any, source: Path, tmp_path: Path, partitions: int
) -> None:
    other = build(source, tmp_path / "gis", partitions=partitions)
    assert files(other.out) == files(built.out)


def test_shards_on_several_machines_change_nothing(built: Any, source: Path, tmp_path: Path) -> None:
    left, rounds = 1, 0
    while left:
        rounds += 1
        done = [build(source, tmp_path / "gis", shard=f"{place}/3") for place in (3, 1, 2)]
        left = done[-1].left
        assert rounds <= 4
    assert rounds > 1  # some had to wait for others
    assert "without --shard" in done[-1].summary()
    other = build(source, tmp_path / "gis")
    assert files(other.out) == files(built.out)
    again = build(source, tmp_path / "gis", shard="1/3")
    assert (again.left, again.waiting) == (0, 0)


def test_how_events_are_dealt_to_hours_changes_no_pair(
    built: Any, threads: dict[str, list[Thread]], tmp_path: Path
) -> None:
    lines = world(threads)
    shuffled = sorted(lines, key=lambda line: line[::-1])
    write_hours(tmp_path / "hours", [*shuffled, *lines[::7]], HOURS[::2])
    other = build(tmp_path / "hours", tmp_path / "gis")
    mine, theirs = files(built.out), files(other.out)
    assert {name: mine[name] for name in mine if name.endswith(".parquet")} == {
        name: theirs[name] for name in theirs if name.endswith(".parquet")
    }


def test_what_is_done_is_not_done_again(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "gis")
    work = tmp_path / "gis.work"
    before = {
        path: path.stat().st_mtime_ns for path in work.rglob("*") if path.suffix in (".zlib", ".parquet")
    }
    first = files(tmp_path / "gis")
    build(source, tmp_path / "gis")
    after = {path: path.stat().st_mtime_ns for path in before}
    for name in ("dropped.parquet", "repositories.parquet"):
        del before[work / name], after[work / name]
    assert before == after
    assert files(tmp_path / "gis") == first
    # Another hour brings tasks of its own; those of other hours stay.
    more = tmp_path / "more"
    shutil.copytree(source, more)
    shutil.copy(more / "2015-01-01-0.json.gz", more / "2015-01-01-9.json.gz")
    with pytest.raises(ConfigError, match="--fresh"):
        build(more, tmp_path / "gis")
    build(more, tmp_path / "gis", fresh=True)
    assert len(list((work / "hours").iterdir())) == len(HOURS) + 1


def test_one_range_written_otherwise_is_the_same_dataset(source: Path, tmp_path: Path) -> None:
    given: Any = {"workers": 1, "partitions": 3, "progress": False}
    made = gis_builder.archive("2015-01-01..2015-02-01", source, tmp_path / "gis", **given)
    first = files(made.out)
    gis_builder.archive("2015-01-01-0 .. 2015-02-01-23", source, tmp_path / "gis", **given)
    assert files(made.out) == first


def test_what_killed_processes_left_is_removed_once_it_is_old(source: Path, tmp_path: Path) -> None:
    work = tmp_path / "gis.work"
    build(source, tmp_path / "gis")
    done = next((work / "hours").iterdir()).name
    (work / "downloaded").mkdir()
    left = [
        work / "hours" / f".{done}.abcd_012",
        work / "downloaded" / ".2015-01-01-0.0123456789ab.json.gz",
        work / ".dropped.parquet.abcdefgh",
    ]
    others = [
        work / "hours" / ".mine",
        work / ".git",
        work / "notes.abcdefgh",
        work / "hours" / f".{done}.new_0123",
    ]
    for path in (*left, *others):
        path.touch()
        os.utime(path, (1, 1))
    others[-1].touch()  # somebody may be writing it
    (work / "judged" / f".{done}.abcd_012").symlink_to(others[0])
    build(source, tmp_path / "gis")
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


def test_statistics_name_some_repositories_and_count_all(
    built: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gis_builder._archive.write._NAMED", 1)
    made = build(source, tmp_path / "gis")
    repos = set(made.pairs.rows["repo"])
    assert len(repos) == 2
    assert made.statistics["repository_count"] == built.statistics["repository_count"] == 2
    assert "2 repositories." in (made.out / "README.md").read_text()
    detail = pl.read_parquet(made.work / "repositories.parquet")
    for split, named in made.statistics["repositories"].items():
        own = detail.filter(pl.col("split") == split)
        assert len(named) == 1
        for repo, counts in named.items():
            (row,) = own.filter(pl.col("repo") == repo).rows(named=True)
            assert counts == {"positive": own["positive"].max(), "negative": row["negative"]}
    assert detail["positive"].sum() == made.positives


def test_limits_and_takedowns(built: Any, source: Path, tmp_path: Path) -> None:
    rows = built.pairs.rows.filter(pl.col("label") == 1)
    repo = rows["repo"].sort()[0]
    others = sorted(set(rows["repo"]) - {repo})
    url = rows.filter(pl.col("repo") == others[0])["url1"][0]
    number = url.rpartition("/")[2]
    (tmp_path / "out.txt").write_text(f"{repo.upper()}\n{others[0]}#{number}\n")
    other = build(source, tmp_path / "gis", exclude=tmp_path / "out.txt", per_repo_max=5)
    texts = other.pairs.rows
    assert repo not in set(texts["repo"])
    assert url not in {*texts["url1"], *texts["url2"]}
    counts = texts.filter(pl.col("label") == 1)["repo"].value_counts()["count"]
    assert counts.max() == 5
    assert other.statistics["archive_repositories"]["excluded"] == 1
    assert other.statistics["rejected_issues"]["excluded"] == 1
    assert other.statistics["dropped_positives"]["per_repo_max"] > 0
    assert "gives more than 5 positives" in (other.out / "README.md").read_text()
    with pytest.raises(DataError, match="no pairs"):
        build(source, tmp_path / "none", min_closed=10_000)


def test_bots_by_their_texts(threads: dict[str, list[Thread]], tmp_path: Path) -> None:
    own = next(iter(threads.values()))
    told = [
        replace(own[0], issue=replace(own[0].issue, number=number, title=f"Build {number}", author="ci"))
        for number in range(80_001, 80_012)
    ]
    write_hours(tmp_path / "hours", lines_of(events_of(1, [*own, *told])), HOURS)
    sets = {"pool.at_least": 10_000}
    made = build(tmp_path / "hours", tmp_path / "gis", settings=sets)
    assert made.statistics["rejected_issues"]["template_author"] == len(told)
    assert f"template ({len(told)})" in (made.out / "README.md").read_text().replace("\n  ", " ")
    other = build(tmp_path / "hours", tmp_path / "all", settings={**sets, "limits.template_bots": 0})
    assert "template_author" not in other.statistics["rejected_issues"]


def test_languages(threads: dict[str, list[Thread]], tmp_path: Path) -> None:
    """Of two repositories one is C++ by now, and of the other nothing tells it."""
    first, second = threads
    pulls = [(first, number, f"2019-01-0{day}T00:00:00Z") for number, day in ((90_001, 1), (90_002, 2))]
    events = [*events_of(100, threads[first], pulls), *events_of(101, threads[second])]
    about_pulls = [event for event in events if event["type"] == "PullRequestEvent"]
    for event, language in zip(about_pulls, ("C", "C++"), strict=True):
        event["payload"]["pull_request"] = {"base": {"repo": {"language": language}}}
    write_hours(tmp_path / "hours", lines_of(events), HOURS)
    made = build(tmp_path / "hours", tmp_path / "gis", language="c++, Rust")
    assert set(made.pairs.rows["repo"]) == {first}
    assert made.statistics["archive_repositories"]["unknown_language"] == 1
    assert made.statistics["archive_repositories"]["other_language"] == 0
    assert "mostly written in c++ or rust" in (made.out / "README.md").read_text()
    build(tmp_path / "hours", tmp_path / "gis", language=["Rust", "C++"])  # the same dataset
    with pytest.raises(DataError, match="no pairs"):
        build(tmp_path / "hours", tmp_path / "none", language="C")
    with pytest.raises(ConfigError, match="such as Rust"):
        build(tmp_path / "hours", tmp_path / "none", language=3)


def test_of_two_repositories_of_one_name_the_later_has_it(
    threads: dict[str, list[Thread]], tmp_path: Path
) -> None:
    own = next(iter(threads.values()))
    before = [replace(t, issue=replace(t.issue, title="Older: " + t.issue.title)) for t in own]
    late = events_of(1, own)
    early = events_of(2, before)
    for event in early:
        event["created_at"] = "2014" + event["created_at"][4:]
    write_hours(tmp_path / "hours", lines_of([*late, *early]), HOURS)
    made = build(tmp_path / "hours", tmp_path / "gis")
    texts = [*made.pairs.rows["text1"], *made.pairs.rows["text2"]]
    assert not any(text.startswith("Older") for text in texts)
    assert made.statistics["archive_repositories"]["name_taken_over"] == 1
    build(tmp_path / "hours", tmp_path / "one", partitions=1)  # both in one partition
    assert files(tmp_path / "one") == files(tmp_path / "gis")


def test_a_broken_hour_and_a_missing_one_are_told(source: Path, tmp_path: Path) -> None:
    hurt = tmp_path / "hours"
    shutil.copytree(source, hurt)
    (hurt / f"{HOURS[0]}.json.gz").unlink()
    path = hurt / f"{HOURS[1]}.json.gz"
    path.write_bytes(path.read_bytes()[:-2000])
    path = hurt / f"{HOURS[2]}.json.gz"
    path.write_bytes(gzip.compress(b"junk\n" + gzip.decompress(path.read_bytes()), mtime=0))
    made = build(hurt, tmp_path / "gis")
    month = made.statistics["months"]["2015-01"]
    assert HOURS[0] in month["missing_hours"]
    assert list(month["hours_broken_off"]) == [HOURS[1]]
    assert month["broken_lines"] == {"the line is cut off": 1}
    assert "1 broken off, 1 broken lines" in made.notes()[-1]


def test_what_a_damaged_task_file_ends_in(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "gis")
    first = files(tmp_path / "gis")
    for room in ("months", "judged", "ties", "negatives"):
        for path in (tmp_path / "gis.work" / room).iterdir():
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) // 2])
            if room == "months":  # else what was made of it stands
                shutil.rmtree(tmp_path / "gis.work" / "judged")
            with pytest.raises(DataError, match=rf"{path.name}: .*; delete it and run again"):
                build(source, tmp_path / "gis")
            path.unlink()
            build(source, tmp_path / "gis")
            break
    assert files(tmp_path / "gis") == first


@pytest.mark.parametrize("first", [[0], [10**9] * 500, [-1] * 500], ids=["too few", "too high", "negative"])
def test_a_file_of_near_identical_texts_that_others_wrote(
    first: list[int], source: Path, tmp_path: Path
) -> None:
    build(source, tmp_path / "gis")
    (path,) = (tmp_path / "gis.work" / "ties").iterdir()
    count = len(unpack(path, Ties).first) // 8
    path.write_bytes(pack(Ties(np.array(first[:count], np.int64).tobytes())))
    with pytest.raises(DataError, match=rf"{path.name}: damaged .of other texts.; delete it and run again"):
        build(source, tmp_path / "gis")


def test_no_such_hours(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        build(tmp_path / "none", tmp_path / "gis")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"2015-01-01-0\.json\.gz"):
        build(tmp_path / "empty", tmp_path / "gis")
    os.mkfifo(tmp_path / "empty" / "2015-01-01-1.json.gz")
    with pytest.raises(DataError, match="not a regular file"):
        build(tmp_path / "empty", tmp_path / "gis")
    with pytest.raises(ConfigError, match="random, hard or mixed"):
        build(tmp_path, tmp_path / "gis", negatives=len)
    with pytest.raises(ConfigError, match="one by one"):
        build(tmp_path, tmp_path / "gis", settings={"detect.allow_cross_repository": True})
    with pytest.raises(ConfigError, match="--engine ray"):
        build(tmp_path, tmp_path / "gis", address="10.0.0.1:6379")
    with pytest.raises(ConfigError, match="needs --address"):
        build(tmp_path, tmp_path / "gis", engine="ray", workers=None)
    with pytest.raises(ConfigError, match="no Ray cluster answers"):
        build(tmp_path, tmp_path / "gis", engine="ray", address="127.0.0.1:1", workers=None)
    for address in ("auto", "ray://head", "10.0.0.1"):
        with pytest.raises(ConfigError, match="expected HOST:PORT"):
            build(tmp_path, tmp_path / "gis", engine="ray", address=address, workers=None)
    with pytest.raises(ConfigError, match="workers = 0"):
        build(tmp_path, tmp_path / "gis", workers=0)


def write_own(path: str, kill: bool) -> bytes:
    """A task that kills its worker the first time."""
    mark = Path(path)
    if kill and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return b"done"


def fail(_: str) -> bytes:
    raise DataError("a fault of its own")


def always_die(_: str) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_killed_workers_are_replaced(tmp_path: Path) -> None:
    tasks = [Task(tmp_path / f"{n}.out", write_own, (str(tmp_path / "mark"), n == 2)) for n in range(6)]
    with Local(2) as engine:
        assert len(list(engine.run(tasks))) == 6
        assert all(task.out.read_bytes() == b"done" for task in tasks)
        # One that has nothing to do is missed no more than one at work.
        for worker in multiprocessing.active_children():
            worker.kill()
            worker.join()
        more = [Task(tmp_path / f"{n}.more", write_own, (str(tmp_path / "mark"), False)) for n in range(3)]
        assert len(list(engine.run(more))) == 3
        with pytest.raises(DataError, match="a fault of its own"):
            list(engine.run([Task(tmp_path / "a.out", fail, ("",))]))
        with pytest.raises(DataError, match="killed again and again"):
            list(engine.run([Task(tmp_path / "b.out", always_die, ("",))]))
    assert not (tmp_path / "a.out").exists()


def note_and_await(notes: str, other: str) -> bytes:
    """A task that says that it has begun, and ends when another's file is there."""
    with Path(notes).open("a") as file:
        file.write("begun\n")
    until = time.monotonic() + 60
    while not Path(other).exists() and time.monotonic() < until:
        time.sleep(0.02)
    return b"done"


def test_a_killed_worker_costs_no_work_but_its_own(tmp_path: Path) -> None:
    killed = Task(tmp_path / "killed.out", write_own, (str(tmp_path / "mark"), True))
    other = Task(tmp_path / "other.out", note_and_await, (str(tmp_path / "notes"), str(killed.out)))
    with Local(2) as engine:
        assert len(list(engine.run([other, killed]))) == 2
    assert killed.out.exists()
    assert other.out.exists()
    assert (tmp_path / "notes").read_text() == "begun\n"


def test_a_task_travels_to_a_cluster_as_bytes(tmp_path: Path) -> None:
    task = Task(tmp_path / "a.out", write_own, (str(tmp_path / "mark"), False))
    code = (
        "import os, sys; from gis_builder._archive.on_ray import _do; assert 'polars' not in sys.modules;"
        "_do(bytes.fromhex(sys.argv[1])); assert os.environ['POLARS_MAX_THREADS'] == '1'"
    )
    subprocess.run([sys.executable, "-c", code, pickle.dumps(task).hex()], check=True, cwd=Path.cwd())
    assert task.out.read_bytes() == b"done"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_worker_without_a_word(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tasks = [Task(tmp_path / f"{n}.out", write_own, (str(tmp_path / "mark"), False)) for n in range(3)]
    with Local(2) as engine:
        list(engine.run(tasks))
        worker, *_ = multiprocessing.active_children()
        os.kill(worker.ident or 0, signal.SIGINT)
        until = time.monotonic() + 60
        while worker.is_alive() and time.monotonic() < until:  # a thread of its executor's may be told first
            time.sleep(0.01)
        assert not worker.is_alive()
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_worker_that_begins_without_a_word(tmp_path: Path) -> None:
    """The first is begun beside the process that looks after semaphores, which lets the signal through."""
    code = """
import multiprocessing, os, re, signal, sys, threading, time
from pathlib import Path
from gis_builder._archive.engine import Local
from gis_builder._archive.tasks import Task

def interrupt():
    while len(workers := multiprocessing.active_children()) < 2:
        time.sleep(0.001)
    for worker in workers:
        status = Path(f"/proc/{worker.pid}/status")
        until = time.monotonic() + 5
        while not int(re.search("SigCgt:(.*)", status.read_text())[1], 16) & 2 and time.monotonic() < until:
            time.sleep(0.001)  # it isn't Python's yet
        os.kill(worker.pid, signal.SIGINT)

thread = threading.Thread(target=interrupt)
thread.start()
with Local(2) as engine:
    list(engine.run([Task(Path(sys.argv[1], f"{n}.out"), str.encode, ("done",)) for n in range(2)]))
    thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.read_bytes() for path in tmp_path.glob("*.out")] == [b"done"] * 2


def test_killed_and_run_again_it_has_the_same_bytes(built: Any, source: Path, tmp_path: Path) -> None:
    """The driver is killed while its workers are at it; nobody is left behind."""
    out = tmp_path / "gis"
    command = [
        *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(source)),
        *("--out", str(out), "--workers", "2", "--partitions", "3", "-q"),
    ]
    for place in ("hours", "months"):
        driver = subprocess.Popen(command, env={**os.environ, "RUN_OF": str(out)})
        until = time.monotonic() + 120
        while not list((tmp_path / "gis.work" / place).glob("*.parquet")) and time.monotonic() < until:
            time.sleep(0.02)
        driver.kill()
        driver.wait()
    assert not out.exists()
    other = build(source, out)
    assert files(other.out) == files(built.out)
    while list(_with_mark(f"RUN_OF={out}")) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(_with_mark(f"RUN_OF={out}"))


def _with_mark(mark: str) -> Iterator[int]:
    """Processes in whose environment the mark stands."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in variables:
            yield int(process.name)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_in_one_line(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "gis"
    driver = subprocess.Popen(
        [
            *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(source)),
            *("--out", str(out), "--workers", "2", "-q"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not list((tmp_path / "gis.work" / "hours").glob("*.parquet")) and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does it
    assert driver.communicate()[1] == "interrupted; run the same command again to continue\n"
    assert driver.returncode == 130
    assert not out.exists()


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_file_that_can_not_be_written_ends_in_one_line(
    built: Any, source: Path, tmp_path: Path, workers: str
) -> None:
    out = tmp_path / "gis"
    command = [
        *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(source)),
        *("--out", str(out), "--workers", workers, "--partitions", "3", "-q"),
    ]
    limited = ["bash", "-c", 'ulimit -S -f 24; exec "$@"', "bash", *command]
    # Python would cut its own compiled files off at the limit, and leave them so.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for name in [name for name in environment if name.startswith("COVERAGE")]:
        del environment[name]  # whose file would be too large as well
    done = subprocess.run(limited, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "larger than a file may be there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
    other = build(source, out)
    assert files(other.out) == files(built.out)


def test_without_the_engine_ray_nothing_of_ray_is_imported(source: Path, tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise SystemExit('ray was imported')")
    code = (
        "import sys, gis_builder; sys.path.insert(0, sys.argv[3]);"
        "gis_builder.archive('2015-01-01-0', *sys.argv[1:3], workers=1, partitions=1, progress=False)"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "gis"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "no pairs" in done.stderr or done.returncode == 0
    assert "ray was imported" not in done.stderr


@pytest.mark.slow
def test_on_a_ray_cluster_of_two_nodes_it_has_the_same_bytes(
    built: Any, source: Path, tmp_path: Path
) -> None:
    """A worker and then a whole node are killed meanwhile. Slow: a cluster takes half a minute to start."""
    with two_nodes() as (cluster, second):
        address = cluster.address
        other = build(source, tmp_path / "gis", engine="ray", address=address, workers=None)
        assert files(other.out) == files(built.out)
        out = tmp_path / "again"
        command = [
            *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(source)),
            *("--out", str(out), "--engine", "ray", "--address", address, "--partitions", "3", "-q"),
        ]
        driver = subprocess.Popen(command)
        until = time.monotonic() + 120
        while not list((tmp_path / "again.work" / "hours").glob("*.parquet")) and time.monotonic() < until:
            time.sleep(0.02)
        cluster.remove_node(second, allow_graceful=False)
        assert driver.wait(timeout=300) == 0
        assert files(out) == files(built.out)
