"""Conversion of rows to threads: versions, names, associations, lost closings; hours and exclusions."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gis_builder.crawling.github.negative_sample import number_order
from gis_builder.gh_archive import archive_rows as r
from gis_builder.gh_archive.hours import hours_between
from gis_builder.gh_archive.judge_threads import (
    Exclusions,
    RepoThreads,
    read_exclusions,
    sample_order,
    threads_of,
)
from gis_builder.store.issue_records import Comment, Event, Issue, IssueRef, Kind
from pairkit import DataError

from .detect_threads import thread


def place(minute: int, event_id: int | None = None) -> r.Source:
    return r.Source(r.key_of(7), 7, f"2015-01-01T00:{minute:02d}:00Z", event_id or minute)


def at(minute: int) -> str:
    return f"2015-01-01T00:{minute:02d}:00Z"


def issue(number: int, minute: int, **more: Any) -> Issue:
    still_open = {"state": "open", "state_reason": None, "closed_at": None, "closed_by": None}
    given = {"title": "t", "body": "", "created_at": at(0), "updated_at": at(minute), **still_open, **more}
    return thread(repo="acme/rocket", number=number, **given).issue


def shown(number: int, minute: int, association: str | None = "NONE", **more: Any) -> r.Row:
    own = issue(number, minute, **more)
    return r.row(place(minute), r.ISSUE, own, changed_at=own.updated_at, association=association)


def said(number: int, minute: int, author: str, association: str | None) -> r.Row:
    own = Comment(minute, author, "NONE", at(minute), f"by {author}")
    return r.row(place(minute), r.COMMENT, own, number=number, association=association)


def done(number: int, minute: int, kind: str = "closed", actor: str = "max") -> r.Row:
    values = {"number": number, "id": minute, "created_at": at(minute)}
    return r.row(place(minute), r.EVENT, action=kind, author=actor, **values)


def named(minute: int, name: str) -> r.Row:
    return r.row(place(minute), r.REPO, name=name)


def repo(rows: Sequence[r.Row]) -> RepoThreads:
    return threads_of(r.table_of([named(0, "acme/rocket"), *rows]).iter_rows(named=True))


def test_the_newest_version_counts_in_any_order() -> None:
    early, late = shown(1, 5, title="was"), shown(1, 9, title="is")
    assert repo([early, late]).threads[1].issue.title == "is"
    assert repo([late, early]).threads[1].issue.title == "is"
    table = pl.concat([r.table_of([late]), r.table_of([early])])
    assert r.newest(table)["title"].to_list() == ["is"]


def test_the_latest_name_of_a_repository_counts() -> None:
    found = repo([named(9, "acme/Comet"), named(4, "acme/probe"), shown(1, 2)])
    assert found.name == found.threads[1].issue.repo == "acme/Comet"
    assert found.rules.former_names == {"acme/rocket", "acme/probe"}
    assert found.kind_of(IssueRef("Acme/Rocket", 1)) is Kind.ISSUE
    assert found.named_at == (at(9), 9)


def test_kinds_of_references() -> None:
    found = repo([shown(1, 2), r.row(place(3), r.PULL, number=5)])
    kinds = [found.kind_of(IssueRef("acme/rocket", number)) for number in (1, 5, 6)]
    assert kinds == [Kind.ISSUE, Kind.PULL, Kind.UNKNOWN]
    assert found.kind_of(IssueRef("acme/other", 1)) is Kind.UNKNOWN
    assert found.highest == 5


def test_pushers_and_owners_are_members_without_an_association() -> None:
    member = r.row(place(1), r.MEMBER, name="max")
    comments = [
        said(1, 2, "max", None),
        said(1, 3, "Acme", None),
        said(1, 4, "eve", None),
        said(1, 5, "max", "NONE"),
    ]
    thread = repo([shown(1, 1), member, *comments]).threads[1]
    assert [c.author_association for c in thread.comments] == ["MEMBER", "OWNER", "NONE", "NONE"]


def test_the_last_closing_decides_closed_by() -> None:
    closed = shown(1, 8, state="closed", closed_at=at(8))
    thread = repo([closed, done(1, 3), done(1, 5, "reopened"), done(1, 8, actor="eve")]).threads[1]
    assert thread.issue.closed_by == "eve"
    assert [event.kind for event in thread.events] == ["closed", "reopened", "closed"]


def test_a_lost_closing_event_is_restored() -> None:
    closed = shown(1, 9, state="closed", closed_at=at(8))
    thread = repo([closed, done(1, 3), done(1, 5, "reopened")]).threads[1]
    assert thread.issue.closed_by is None
    assert thread.events[-1] == Event("closed", None, at(8))
    # Within a minute it is the same closing.
    near = repo([shown(1, 9, state="closed", closed_at="2015-01-01T00:08:30Z"), done(1, 8)]).threads[1]
    assert near.issue.closed_by == "max"
    assert len(near.events) == 1


def test_hours_of_a_range() -> None:
    hours = [f"2015-01-{hour}" for hour in ("31-22", "31-23")] + [f"2015-02-01-{hour}" for hour in "01"]
    assert hours_between("2015-01-31-22..2015-02-01-1") == hours
    assert len(hours_between("2016-02-28..2016-03-01")) == 72
    assert hours_between("2015-01-01-7") == ["2015-01-01-7"]
    assert len(hours_between("2025-05-23..2025-05-24")) == 48
    spellings = ("2015-01-01..2015-01-31", "2015-01-01-0..2015-01-31-23", "2015-01-01 .. 2015-01-31")
    ends = {(hours[0], hours[-1]) for hours in map(hours_between, spellings)}
    assert ends == {("2015-01-01-0", "2015-01-31-23")}


def test_exclusions(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("# asked on 3 May\nAcme/Rocket#3  # a person\nacme/*\n\n@Ann\n@Helper[bot]\nfoo/bar\n")
    assert read_exclusions(path) == ("@ann", "@helper", "acme/*", "acme/rocket#3", "foo/bar")
    out = Exclusions(["@ann", "acme/rocket#3", "foo/bar", "baz/*"])
    assert out.has_repo("Foo/Bar")
    assert out.has_repo("new/name", "baz/old")
    assert not out.has_repo("acme/rocket")
    found = [issue(3, 1, author="eve"), issue(4, 1), issue(4, 1, author="eve")]
    assert list(map(out.has_issue, found)) == [True, True, False]
    for entry in ("foo bar", "foo/bar#012"):
        path.write_text(f"foo/bar\n{entry}\n")
        with pytest.raises(DataError, match=r"out\.txt:2: expected owner/name"):
            read_exclusions(path)


def test_a_forged_number_does_not_exhaust_memory() -> None:
    honest = repo([shown(number, 2) for number in range(1, 9)])
    as_crawled = [n for n in number_order(8, "acme/rocket", 42) if n in honest.threads]
    assert list(sample_order(honest, 42)) == as_crawled
    forged = repo([*(shown(number, 2) for number in range(1, 9)), r.row(place(3), r.PULL, number=9_999_999)])
    tracemalloc.start()
    assert sorted(sample_order(forged, 42)) == list(range(1, 9))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert list(sample_order(forged, 42)) != list(sample_order(forged, 43))
