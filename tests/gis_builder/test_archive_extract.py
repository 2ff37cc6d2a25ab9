"""Extraction of rows from an hour of the archive, and counts of unreadable lines."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.gh_archive import archive_rows as r
from gis_builder.gh_archive.archive_rows import HourTally, read_tallies
from gis_builder.gh_archive.extract import extract_hour
from pairkit import DataError
from tests.pairkit.peak import peak_mib

HOUR = "2015-01-01-0"
HOURS = Path(__file__).resolve().parents[3] / "shared" / "data" / "gharchive"


def issue(number: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "title": "Crash",
        "body": "it crashes",
        "user": {"login": "ann", "type": "User"},
        "author_association": "NONE",
        "labels": [{"name": "bug"}],
        "state": "open",
        "created_at": "2015-01-01T00:00:00Z",
        "updated_at": "2015-01-01T00:00:00Z",
        "closed_at": None,
        **more,
    }


def event(number: int, kind: str, payload: dict[str, Any], repo: str = "acme/rocket", **more: Any) -> bytes:
    whole = {
        "id": str(number),
        "type": kind,
        "actor": {"id": 1, "login": "max"},
        "repo": {"id": 7, "name": repo},
        "payload": payload,
        "public": True,
        "created_at": f"2015-01-01T00:{number:02d}:00Z",
        **more,
    }
    return json.dumps(whole, separators=(",", ":")).encode()


def comment(number: int, on: int, body: str | None = "me too", **more: Any) -> bytes:
    said = {
        "id": 50 + number,
        "user": {"login": "bob"},
        "author_association": "MEMBER",
        "created_at": f"2015-01-01T00:{number:02d}:00Z",
        "body": body,
        **more,
    }
    return event(number, "IssueCommentEvent", {"action": "created", "issue": issue(on), "comment": said})


def extracted(path: Path) -> tuple[list[dict[str, Any]], HourTally]:
    made = path.with_name("rows.parquet")
    made.write_bytes(b"".join(extract_hour(path, HOUR)))
    (tally,) = read_tallies([made])
    return pl.read_parquet(made).rows(named=True), tally


def read(tmp_path: Path, lines: Sequence[bytes]) -> tuple[list[dict[str, Any]], HourTally]:
    path = tmp_path / f"{HOUR}.json.gz"
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    return extracted(path)


def test_an_issue_with_its_comment_and_closing(tmp_path: Path) -> None:
    closed = issue(3, state="closed", closed_at="2015-01-01T00:09:00Z", updated_at="2015-01-01T00:09:00Z")
    rows, tally = read(
        tmp_path,
        [
            event(1, "IssuesEvent", {"action": "opened", "issue": issue(3)}),
            comment(2, 3, "Duplicate of #1"),
            event(9, "IssuesEvent", {"action": "closed", "issue": closed}),
            event(10, "WatchEvent", {"action": "started"}),
        ],
    )
    assert tally == HourTally(HOUR, lines=4, events=4, issue_events=3)
    assert [row["kind"] for row in rows] == ["comment", "event", "issue", "repo"]
    said, done, shown, named = rows
    assert (said["number"], said["id"], said["author"], said["body"]) == (3, 52, "bob", "Duplicate of #1")
    assert (done["action"], done["author"], done["created_at"]) == ("closed", "max", "2015-01-01T00:09:00Z")
    assert (shown["state"], shown["labels"], shown["changed_at"]) == (
        "closed",
        ["bug"],
        "2015-01-01T00:09:00Z",
    )
    assert (named["name"], named["repo_id"], named["event_at"]) == ("acme/rocket", 7, "2015-01-01T00:09:00Z")
    assert {row["key"] for row in rows} == {r.key_of(7)}


def test_only_the_number_of_a_pull_request_is_kept(tmp_path: Path) -> None:
    on_pull = {"action": "created", "issue": issue(5, pull_request={"url": "x"}), "comment": None}
    rows, tally = read(
        tmp_path, [event(1, "PullRequestEvent", {"number": 4}), event(2, "IssueCommentEvent", on_pull)]
    )
    assert [(row["kind"], row["number"], row["body"]) for row in rows] == [
        ("pull", 4, None),
        ("pull", 5, None),
    ]
    assert tally.issue_events == 0


def test_pushers_are_kept_if_events_lack_associations(tmp_path: Path) -> None:
    pushes = [
        event(2, "PushEvent", {"commits": []}),
        event(3, "MemberEvent", {"member": {"login": "eve"}}),
        event(4, "PushEvent", {}, actor={"login": "ci[bot]"}),
    ]
    silent = issue(1)
    del silent["author_association"]
    rows, tally = read(tmp_path, [event(1, "IssuesEvent", {"action": "opened", "issue": silent}), *pushes])
    assert [row["name"] for row in rows if row["kind"] == "member"] == ["eve", "max"]
    assert tally.without_association == 1
    rows, _ = read(tmp_path, [event(1, "IssuesEvent", {"action": "opened", "issue": issue(1)}), *pushes])
    assert not [row for row in rows if row["kind"] == "member"]


def test_malformed_lines_are_counted_by_reason(tmp_path: Path) -> None:
    good = comment(1, 3)
    deep = b"[" * 100_000 + b"]" * 100_000
    rows, tally = read(
        tmp_path,
        [
            *[event(60, "WatchEvent", {"action": "started"})] * 20,
            good,
            b"",
            good[:-20],
            b"not json",
            b'{"id":"8","type":"IssuesEvent","payload":7}',
            good.replace(b'"public":true', b'"public":' + deep),
            comment(4, 3, user=[1]),
            comment(5, 3, body=None),
            event(6, "IssuesEvent", {"action": "opened", "issue": issue(0)}),
            event(7, "IssuesEvent", {"action": "opened", "issue": issue(2)}, repo="/"),
            event(8, "IssuesEvent", {"action": "opened"}),
            event(9, "PullRequestEvent", {}),
            b'{"type":"PushEvent"}',
            b"\xff\xfe}",
        ],
    )
    assert sum(row["kind"] == "comment" for row in rows) == 2
    assert tally.lines == 33
    assert tally.events == 22
    assert sum(tally.broken.values()) == 11
    assert tally.broken["truncated line"] == 2
    assert any("nested" in reason for reason in tally.broken)
    assert any(reason.startswith("payload.comment.user") for reason in tally.broken)


def test_the_number_of_reasons_is_bounded(tmp_path: Path) -> None:
    lines = [
        event(1, "IssuesEvent", {"action": "opened", "issue": issue(1, labels=[{"name": "x"}] * place + [1])})
        for place in range(40)
    ]
    lines += [event(60, "WatchEvent", {"action": "started"})] * 40
    _, tally = read(tmp_path, lines)
    assert sum(tally.broken.values()) == 40
    assert len(tally.broken) <= 21


OLD = {"created_at": "2012-03-11T00:00:00-08:00", "actor": "max", "repository": {"id": 7}, "payload": {}}
OLDER = {"type": "IssuesEvent", "id": "9", "repo": {"id": 7}, "created_at": "2011-02-12T00:00:00Z"}


@pytest.mark.parametrize(
    ("lost", "kept", "why"),
    [
        (b"junk", 3, "4 of 7 lines are broken, most of them with: truncated line; download it again"),
        (json.dumps({"type": "IssuesEvent", **OLD}).encode(), 9, "has the layout of 2011 to 2014"),
        (json.dumps(OLDER).encode(), 9, "has the layout of 2011 to 2014"),
        (b"junk", 4, ""),
    ],
    ids=["most lines", "2012", "2011", "half of the lines"],
)
def test_an_hour_that_is_mostly_lost_is_refused(tmp_path: Path, lost: bytes, kept: int, why: str) -> None:
    lines = [*[lost] * 4, *[event(60, "WatchEvent", {"action": "started"})] * kept]
    if not why:
        assert read(tmp_path, lines)[1].broken == {"truncated line": 4}
        return
    with pytest.raises(DataError, match=why):
        read(tmp_path, lines)


def test_a_truncated_file_is_read_to_its_end(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(comment(n % 60, n) + b"\n" for n in range(1, 2000)))
    path = tmp_path / "hour.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    rows, tally = extracted(path)
    assert sum(row["kind"] == "comment" for row in rows) > 100
    assert tally.issue_events == tally.events < 1999
    assert "not readable" in tally.broke_off
    path.write_bytes(whole[:-4] + b"\0\0\0\0")  # a wrong checksum
    assert extracted(path)[1].broke_off
    path.write_bytes(b"no gzip at all")
    rows, tally = extracted(path)
    assert not rows
    assert tally.broke_off


def test_an_unreadable_file_is_not_a_truncated_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(extract_hour(tmp_path / "hour.json.gz", HOUR))  # such as a machine without the folder
    loop = tmp_path / "loop.json.gz"
    loop.symlink_to(loop)
    with pytest.raises(DataError, match="not readable"):
        list(extract_hour(loop, HOUR))
    pipe = tmp_path / "pipe.json.gz"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="not a regular file"):
        list(extract_hour(pipe, HOUR))


def test_memory_of_an_hour_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"{n:05d} " * 100 for n in range(100)]
    lines = [comment(n % 60, 1 + n % 7, words[n], id=n) for n in range(100)]
    rows, _ = read(tmp_path, lines)
    for name, size in {"_CHUNK_BYTES": 2000, "_COMPACT_BYTES": 20_000, "_COMPACT_AGAIN": 5000}.items():
        monkeypatch.setattr(f"gis_builder.gh_archive.extract.{name}", size)
    assert read(tmp_path, lines)[0] == rows  # compacted repeatedly
    monkeypatch.setattr("gis_builder.gh_archive.extract._MAX_BYTES", 30_000)
    rows, tally = read(tmp_path, [*lines, event(1, "PullRequestEvent", {"number": 90})])
    assert 10 < sum(row["kind"] == "comment" for row in rows) < 90
    assert tally.broken["the hour exceeds the size limit"] > 10
    assert tally.events + sum(tally.broken.values()) == tally.lines
    assert any(row["kind"] == "pull" for row in rows)  # takes little memory


@pytest.mark.parametrize("whole", [b"", gzip.compress(b"\n")], ids=["no byte", "no line"])
def test_an_empty_hour_is_reported(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "hour.json.gz"
    path.write_bytes(whole)
    assert "no line" in extracted(path)[1].broke_off


def test_a_too_long_line_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "hour.json.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(comment(1, 3) + b"\n")
        for _ in range(40):
            file.write(b'{"text":"' + b"0123456789abcdef" * 65536)
        file.write(b"\n" + comment(2, 3) + b"\n")
    rows, tally = extracted(path)
    assert sum(row["kind"] == "comment" for row in rows) == 2
    assert tally.broken == {"the line is too long": 1}
    imports = "from gis_builder.gh_archive.extract import extract_hour"
    done, peak = peak_mib(imports, "list(extract_hour(Path(sys.argv[1]), '2015-01-01-0'))", path)
    assert done == "done"
    assert peak < 100  # the line has 40 MiB


@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 60))
def test_every_line_is_counted_as_event_or_broken(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, cut: int
) -> None:
    line = comment(1, 3)
    broken = (line[:at] + noise + line[at + cut :]).replace(b"\n", b"")
    rows, tally = read(tmp_path_factory.getbasetemp(), [comment(2, 4), broken, comment(3, 5)])
    assert {4, 5} <= {row["number"] for row in rows}
    assert tally.events + sum(tally.broken.values()) == tally.lines


@pytest.mark.skipif(not HOURS.is_dir(), reason="needs ../shared/data/gharchive")
def test_real_hours(tmp_path: Path) -> None:
    counts = [
        read(tmp_path, gzip.decompress(path.read_bytes()).splitlines())[1]
        for path in sorted(HOURS.glob("*.gz"))
    ]
    assert [tally.events for tally in counts] == [7702, 7427]
    assert not any(tally.broken or tally.broke_off for tally in counts)
    assert sum(tally.issue_events for tally in counts) == 703 + 1301 - 451  # events of pull requests
