"""Inside an archive: what changes no bytes, what is judged again, names of files, and failing tasks."""

from __future__ import annotations

import ast
import errno
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gis_builder
from gis_builder.gh_archive.archive_run import DRAW, EXTRACT, JUDGE, SORT
from gis_builder.gh_archive.judge_threads import RepoThreads, threads_of
from gis_builder.gh_archive.runners import FileTask, OnRay, Pool
from pairkit import DataError
from tests.gis_builder.archive_world import (
    HOURS,
    MORE,
    RANGE,
    Thread,
    build,
    command,
    events_of,
    files,
    lines_of,
    world,
    write_hours,
)
from tests.gis_builder.test_archive_extract import comment, comments_in, event, read
from tests.two_nodes import two_nodes

PACKAGE = Path(gis_builder.__file__).parent


def test_workers_and_buckets_do_not_change_the_dataset(
    built: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files(build(source, tmp_path / "two", workers=2).out) == files(built.out)
    for buckets, size in ((1, 1 << 30), (1, 4000)):  # one bucket, and a number that depends on the size
        monkeypatch.setattr("gis_builder.gh_archive.archive_run._MIN_BUCKETS", buckets)
        monkeypatch.setattr("gis_builder.gh_archive.archive_run._BUCKET_BYTES", size)
        monkeypatch.setattr("gis_builder.gh_archive.archive_run._SORT_BYTES", 20_000)
        other = build(source, tmp_path / f"of-{size}")
        assert files(other.out) == files(built.out)
        (rows,) = other.work.glob("rows-*")
        assert (len(list(rows.iterdir())) == 1) == (size > 4000)


def test_only_repositories_with_changed_rows_are_judged_again(
    threads: dict[str, list[Thread]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []

    def recorded(rows: Any) -> RepoThreads:
        judged.append((repo := threads_of(rows)).repo_id)
        return repo

    monkeypatch.setattr("gis_builder.gh_archive.judge_threads.threads_of", recorded)
    source, out = tmp_path / "hours", tmp_path / "gis"
    first, second = threads.values()
    write_hours(source, world(threads), HOURS)
    build(source, out)
    steps = (
        (RANGE, lines_of(events_of(7, first[:90])), {7}, 3),  # an hour is added,
        (RANGE, lines_of(events_of(7, first[:50]) + events_of(101, second[:9])), {7, 101}, 3),  # replaced,
        (RANGE, [b'{"id":"9","type":"WatchEvent"}'], {101}, 2),  # emptied,
        (RANGE.replace("-2", "-1"), [], set(), 2),  # and left out
    )
    for hours, lines, changed, count in steps:
        if lines:
            write_hours(source, lines, [MORE])
        judged.clear()
        again = gis_builder.archive(hours, source, out, workers=1, progress=False, fresh=True)
        assert (set(judged), len(judged)) == (changed, len(changed))
        scratch = gis_builder.archive(
            *(hours, source, tmp_path / "scratch"), work=tmp_path / hours / str(changed), workers=1,
            progress=False, fresh=True,
        )  # fmt: skip
        assert files(again.out) == files(scratch.out)
        assert again.statistics["archive_repositories"]["with_duplicates"] == count


def test_statistics_name_some_repositories_and_count_all(
    built: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gis_builder.gh_archive.write._MAX_NAMED", 1)
    made = build(source, tmp_path / "gis")
    assert made.statistics["repository_count"] == built.statistics["repository_count"] == 2
    assert "2 repositories." in (made.out / "README.md").read_text()
    detail = pl.read_parquet(made.work / "repositories.parquet")
    for split, named in made.statistics["repositories"].items():
        own = detail.filter(pl.col("split") == split)
        ((repo, counts),) = named.items()
        (row,) = own.filter(pl.col("repo") == repo).rows(named=True)
        assert counts == {"positive": own["positive"].max(), "negative": row["negative"]}
    assert detail["positive"].sum() == made.positives


@pytest.mark.parametrize(
    ("parts", "own"),
    [
        (EXTRACT, ["extract", "archive_rows"]),
        (SORT, ["archive_rows"]),
        (JUDGE, ["archive_rows", "judge_threads"]),
        (DRAW, ["settle"]),
    ],
    ids=["extract", "sort", "judge", "draw"],
)
def test_file_names_hash_all_imported_code(parts: Sequence[str], own: list[str]) -> None:
    # Settings are hashed separately; `maps` does not affect contents.
    known = {part.removesuffix(".py") for part in parts} | {"settings", "gh_archive/runners"}
    trees = [ast.parse((PACKAGE / f"gh_archive/{name}.py").read_text(encoding="utf-8")) for name in own]
    imported = {
        f"{path}/{alias.name}" if (PACKAGE / path / f"{alias.name}.py").exists() else path
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gis_builder.")
        for path in [str(node.module).removeprefix("gis_builder.").replace(".", "/")]
        for alias in node.names
    }
    assert imported
    assert not {name for name in imported if not any(f"{name}/".startswith(f"{one}/") for one in known)}


def test_memory_of_an_hour_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [comment(n % 60, 1 + n % 7, f"{n:05d} " * 100, id=n) for n in range(100)]
    rows, _ = read(tmp_path, lines)
    inside = "gis_builder.gh_archive.extract"
    for name, size in {"_CHUNK_BYTES": 2000, "_COMPACT_BYTES": 20_000, "_COMPACT_AGAIN": 5000}.items():
        monkeypatch.setattr(f"{inside}.{name}", size)
    assert read(tmp_path, lines)[0] == rows  # compacted repeatedly
    monkeypatch.setattr(f"{inside}._MAX_BYTES", 30_000)
    rows, counts = read(tmp_path, [*lines, event(1, "PullRequestEvent", {"number": 90})])
    assert 10 < comments_in(rows) < 90
    assert counts["broken_lines"]["the hour exceeds the size limit"] > 10
    assert counts["events"] + sum(counts["broken_lines"].values()) == 101
    assert any(row["kind"] == "pull" for row in rows)  # takes little memory


def attempted(log: Path, failures: int, signal_number: int) -> Iterator[bytes]:
    """Fail a number of times, with an error or by a signal, then write."""
    with log.open("a") as file:
        file.write(".")
    if len(log.read_text()) <= failures:
        if signal_number:
            os.kill(os.getpid(), signal_number)
        raise OSError(errno.EIO, "Input/output error")
    yield b"done"


@pytest.mark.parametrize("how", [0, signal.SIGKILL], ids=["an error", "a killed worker"])
def test_failed_tasks_are_repeated_and_at_last_listed(tmp_path: Path, how: int) -> None:
    def tasks(*failures: int) -> list[FileTask]:
        folder = tmp_path / "-".join(map(str, failures))
        folder.mkdir()
        return [
            FileTask((folder / f"{n}.out",), attempted, (folder / f"{n}.log", count, how))
            for n, count in enumerate(failures)
        ]

    why = "worker lost (killed), probably for lack of memory; use fewer" if how else "Input/output"
    given = tasks(0, 2, 0, 0, 9)
    with Pool(2) as pool, pytest.raises(DataError, match=rf"1 of 5 tasks failed \(4\).*{re.escape(why)}"):
        list(pool.run(given))
    assert [task.outs[0].exists() for task in given] == [True, True, True, True, False]


@pytest.mark.slow
def test_a_ray_cluster_makes_the_same_bytes(built: Any, source: Path, tmp_path: Path) -> None:
    """Kill a node during the run. Slow, because a cluster takes half a minute to start."""
    with two_nodes() as (cluster, second):
        ray = {"engine": "ray", "address": cluster.address, "workers": None}
        assert files(build(source, tmp_path / "gis", **ray).out) == files(built.out)
        out = tmp_path / "again"
        driver = subprocess.Popen(command(source, out, "--engine", "ray", "--address", cluster.address))
        while not list((tmp_path / "again.work").glob("hours/*.parquet")) and driver.poll() is None:
            time.sleep(0.01)
        cluster.remove_node(second, allow_graceful=False)
        assert driver.wait() == 0
        assert files(out) == files(built.out)


@pytest.mark.slow
def test_a_cluster_without_its_largest_machine_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gis_builder.gh_archive.runners._REREAD_S", 0.2)
    tasks = [
        FileTask((tmp_path / f"{n}.out",), attempted, (tmp_path / f"{n}.log", n % 3, 0), 3 << 30)
        for n in range(9)
    ]
    with two_nodes(head=1 << 30) as (cluster, second), OnRay(cluster.address) as ray:
        ray.check_shared(tmp_path, None)
        for place, _ in enumerate(ray.run(tasks)):
            if place == 1:
                cluster.remove_node(second, allow_graceful=False)
        assert all(task.outs[0].exists() for task in tasks)
        (tmp_path / ".shared").write_text("that of another machine")
        with pytest.raises(DataError, match=rf"host {socket.gethostname()}: {tmp_path} is not shared"):
            list(ray.run([FileTask((tmp_path / "last.out",), attempted, (tmp_path / "last.log", 0, 0))]))
    assert "state-dump" not in "".join(capsys.readouterr())
