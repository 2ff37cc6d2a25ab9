"""Inside an archive: threads from rows, what is judged again, names of files, and failing tasks."""

import re
import signal
import socket
import subprocess
import time
import tracemalloc

import pytest

from gis_builder.crawling.github.fetch import number_order
from gis_builder.gh_archive import archive_rows as r
from gis_builder.gh_archive.judge_threads import (
    Exclusions,
    judge_bucket,
    read_exclusions,
    read_judged,
    sample_order,
    threads_of,
)
from gis_builder.gh_archive.runners import FileTask, OnRay, Pool
from gis_builder.settings import ArchiveSettings
from gis_builder.store.issue_records import Comment, Event, IssueRef, Kind
from tests.gis_builder.archive_world import build, command, files
from tests.gis_builder.failing_task import attempted, count_threads
from tests.gis_builder.test_archive_extract import comment, comments_in, event, read
from tests.support.shorthand import data_error, parametrize
from tests.two_nodes import two_nodes

from .detect_threads import thread


def test_workers_and_buckets_do_not_change_the_dataset(
    built, source, tmp_path, monkeypatch
):
    assert files(build(source, tmp_path / "two", workers=2).out) == files(built.out)
    # One bucket, and a number that depends on the size.
    for size in (1 << 30, 4000):
        sizes = {"_MIN_BUCKETS": 1, "_BUCKET_BYTES": size, "_SORT_BYTES": 20_000}
        for name, value in sizes.items():
            monkeypatch.setattr(f"gis_builder.gh_archive.archive_run.{name}", value)
        other = build(source, tmp_path / f"of-{size}")
        assert files(other.out) == files(built.out)
        (rows,) = other.work.glob("rows-*")
        assert (len(list(rows.iterdir())) == 1) == (size > 4000)


def test_memory_of_an_hour_is_bounded(tmp_path, monkeypatch):
    lines = [comment(n % 60, 1 + n % 7, f"{n:05d} " * 100, id=n) for n in range(100)]
    rows, _ = read(tmp_path, lines)
    inside = "gis_builder.gh_archive.extract"
    for name, size in {
        "_CHUNK_BYTES": 2000,
        "_COMPACT_BYTES": 20_000,
        "_COMPACT_AGAIN": 5000,
    }.items():
        monkeypatch.setattr(f"{inside}.{name}", size)
    assert read(tmp_path, lines)[0] == rows  # compacted repeatedly
    monkeypatch.setattr(f"{inside}._MAX_BYTES", 30_000)
    rows, counts = read(
        tmp_path, [*lines, event(1, "PullRequestEvent", {"number": 90})]
    )
    assert 10 < comments_in(rows) < 90
    assert counts["broken_lines"]["the hour exceeds the size limit"] > 10
    assert counts["events"] + sum(counts["broken_lines"].values()) == 101
    assert any(row["kind"] == "pull" for row in rows)  # takes little memory


@parametrize("how", [0, signal.SIGKILL], ids=["an error", "a killed worker"])
def test_failed_tasks_are_repeated_and_at_last_listed(tmp_path, how):
    def tasks(*failures):
        folder = tmp_path / "-".join(map(str, failures))
        folder.mkdir()
        return [
            FileTask(
                (folder / f"{n}.out",), attempted, (folder / f"{n}.log", count, how)
            )
            for n, count in enumerate(failures)
        ]

    why = (
        "worker lost (killed), probably for lack of memory; use fewer"
        if how
        else "Input/output"
    )
    given = tasks(0, 2, 0, 0, 9)
    with Pool(2) as pool, data_error(rf"1 of 5 tasks failed \(4\).*{re.escape(why)}"):
        list(pool.run(given))
    assert [task.outs[0].exists() for task in given] == [True, True, True, True, False]


def test_a_worker_has_one_thread_of_polars(tmp_path, monkeypatch):
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    out = tmp_path / "threads"
    with Pool(2) as pool:
        list(pool.run([FileTask((out,), count_threads, ())]))
    assert out.read_bytes() == b"1"


@pytest.mark.slow
def test_a_ray_cluster_makes_the_same_bytes(built, source, tmp_path):
    """Kill a node during the run. Slow, because a cluster takes half a minute to start."""
    with two_nodes() as (cluster, second):
        ray = {"engine": "ray", "address": cluster.address, "workers": None}
        assert files(build(source, tmp_path / "gis", **ray).out) == files(built.out)
        out = tmp_path / "again"
        driver = subprocess.Popen(
            command(source, out, "--engine", "ray", "--address", cluster.address)
        )
        while (
            not list((tmp_path / "again.work").glob("hours/*.parquet"))
            and driver.poll() is None
        ):
            time.sleep(0.01)
        cluster.remove_node(second, allow_graceful=False)
        assert driver.wait() == 0
        assert files(out) == files(built.out)


@pytest.mark.slow
def test_a_cluster_without_its_largest_machine_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gis_builder.gh_archive.runners._REREAD_S", 0.2)
    given = [(n, (tmp_path / f"{n}.log", n % 3, 0)) for n in range(9)]
    tasks = [
        FileTask((tmp_path / f"{n}.out",), attempted, arguments, 3 << 30)
        for n, arguments in given
    ]
    with two_nodes(head=1 << 30) as (cluster, second), OnRay(cluster.address) as ray:
        ray.check_shared(tmp_path, None)
        for place, _ in enumerate(ray.run(tasks)):
            if place == 1:
                cluster.remove_node(second, allow_graceful=False)
        assert all(task.outs[0].exists() for task in tasks)
        (tmp_path / ".shared").write_text("that of another machine")
        with data_error(rf"host {socket.gethostname()}: {tmp_path} is not shared"):
            last = tmp_path / "last.log", 0, 0
            list(ray.run([FileTask((tmp_path / "last.out",), attempted, last)]))
    assert "state-dump" not in "".join(capsys.readouterr())


def at(minute):
    return f"2015-01-01T00:{minute:02d}:00Z"


def place(minute):
    return r.Source(r.key_of(7), 7, at(minute), minute)


def issue(number, minute, **more):
    given = {
        "title": "t",
        "body": "",
        "created_at": at(0),
        "updated_at": at(minute),
        "state": "open",
    }
    empty = dict.fromkeys(("state_reason", "closed_at", "closed_by"))
    given |= empty | more
    return thread(repo="acme/rocket", number=number, **given).issue


def shown(number, minute, association="NONE", **more):
    own = issue(number, minute, **more)
    return r.row_of(
        place(minute), r.ISSUE, own, changed_at=own.updated_at, association=association
    )


def said(number, minute, author, association, body="hm"):
    own = Comment(minute, author, "NONE", at(minute), body)
    return r.row_of(
        place(minute), r.COMMENT, own, number=number, association=association
    )


def done(number, minute, kind="closed", actor="max"):
    values = {"number": number, "id": minute, "created_at": at(minute)}
    return r.row_of(place(minute), r.EVENT, action=kind, author=actor, **values)


def named(minute, name):
    return r.row_of(place(minute), r.REPO, name=name)


def repo(rows):
    return threads_of(
        r.table_of([named(0, "acme/rocket"), *rows]).iter_rows(named=True)
    )


def test_the_latest_name_of_a_repository_counts():
    pull = r.row_of(place(3), r.PULL, number=5)
    found = repo([named(9, "acme/Comet"), named(4, "acme/probe"), shown(1, 2), pull])
    assert found.name == found.threads[1].issue.repo == "acme/Comet"
    assert found.former_names == {"acme/rocket", "acme/probe"}
    kinds = [found.kind_of(IssueRef("Acme/Rocket", number)) for number in (1, 5, 6)]
    assert kinds == [Kind.ISSUE, Kind.PULL, Kind.UNKNOWN]
    assert found.kind_of(IssueRef("acme/other", 1)) is Kind.UNKNOWN
    assert (found.named_at, found.highest) == ((at(9), 9), 5)


def test_pushers_and_owners_are_members_without_an_association():
    member = r.row_of(place(1), r.MEMBER, name="max")
    given = (("max", None), ("Acme", None), ("eve", None), ("max", "NONE"))
    comments = [said(1, minute, *each) for minute, each in enumerate(given, 2)]
    thread = repo([shown(1, 1), member, *comments]).threads[1]
    assert [c.author_association for c in thread.comments] == [
        "MEMBER",
        "OWNER",
        "NONE",
        "NONE",
    ]


def test_the_last_closing_decides_closed_by():
    """A lost closing is restored, but not within a minute of another."""
    closed = shown(1, 9, state="closed", closed_at=at(8))
    events = [closed, done(1, 3), done(1, 5, "reopened")]
    thread = repo([*events, done(1, 8, actor="eve")]).threads[1]
    assert thread.issue.closed_by == "eve"
    assert [event.kind for event in thread.events] == ["closed", "reopened", "closed"]
    thread = repo(events).threads[1]
    assert thread.issue.closed_by is None
    assert thread.events[-1] == Event("closed", None, at(8))
    later = shown(1, 9, state="closed", closed_at="2015-01-01T00:08:30Z")
    near = repo([later, done(1, 8)]).threads[1]
    assert (near.issue.closed_by, len(near.events)) == ("max", 1)


def test_exclusions(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text(
        "# asked on 3 May\nAcme/Rocket#3  # a person\nacme/*\n\n@Ann\n@Helper[bot]\nfoo/bar\n"
    )
    assert read_exclusions(path) == (
        "@ann",
        "@helper",
        "acme/*",
        "acme/rocket#3",
        "foo/bar",
    )
    out = Exclusions(["@ann", "acme/rocket#3", "foo/bar", "baz/*"])
    assert out.has_repo("Foo/Bar")
    assert out.has_repo("new/name", "baz/old")
    assert not out.has_repo("acme/rocket")
    found = [issue(3, 1, author="eve"), issue(4, 1), issue(4, 1, author="eve")]
    assert list(map(out.has_issue, found)) == [True, True, False]
    for entry in ("foo bar", "foo/bar#012"):
        path.write_text(f"foo/bar\n{entry}\n")
        with data_error(r"out\.txt:2: expected owner/name"):
            read_exclusions(path)


def test_a_forged_number_does_not_exhaust_memory():
    issues = [shown(number, 2) for number in range(1, 9)]
    honest = repo(issues)
    as_crawled = [n for n in number_order(8, "acme/rocket", 42) if n in honest.threads]
    assert list(sample_order(honest, 42)) == as_crawled
    forged = repo([*issues, r.row_of(place(3), r.PULL, number=9_999_999)])
    tracemalloc.start()
    assert sorted(sample_order(forged, 42)) == list(range(1, 9))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert list(sample_order(forged, 42)) != list(sample_order(forged, 43))


def test_comments_of_excluded_people_are_no_mentions(tmp_path):
    body = "The wind blows over the old hill and takes the roof away."
    about = {"state": "closed", "closed_at": at(8), "title": "A roof", "body": body}
    rows = [
        named(0, "acme/rocket"),
        *(shown(number, 9, **about) for number in (1, 2, 3)),
        said(2, 7, "mia", "MEMBER", "Duplicate of #1"),
        said(3, 6, "Eve", "NONE", "See #1"),
    ]
    path = tmp_path / "rows.parquet"
    path.write_bytes(r.serialise(r.table_of(rows), []))
    settings = ArchiveSettings.model_validate({"limits": {"min_closed": 1}})
    links = []
    for excluded in ([], ["@eve"]):
        (packed,) = judge_bucket([path], settings.model_dump_json(), excluded, None)
        out = tmp_path / "judged"
        out.write_bytes(packed)
        (judged,) = read_judged(out)
        assert judged.verdicts[0][0] == "duplicate"
        links.append([(first.number, second.number) for first, second in judged.links])
    assert links == [[(2, 1), (3, 1)], [(2, 1)]]
