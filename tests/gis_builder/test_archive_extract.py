"""Rows of an hour of the archive, and counts of its unreadable lines."""

import gzip
import json

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gis_builder
from tests.pairkit.peak import peak_mib
from tests.support.shorthand import data_error

HOUR = "2015-01-01-0"
AT = "2015-01-01T00:{:02d}:00Z"


def issue(number, **more):
    texts = {
        "title": "Crash",
        "body": "it crashes",
        "user": {"login": "ann"},
        "state": "open",
    }
    times = {"created_at": AT.format(0), "updated_at": AT.format(0), "closed_at": None}
    return (
        {"number": number, "author_association": "NONE", "labels": [{"name": "bug"}]}
        | texts
        | times
        | more
    )


def event(number, kind, payload, repo="acme/rocket", **more):
    head = {
        "id": str(number),
        "type": kind,
        "actor": {"login": "max"},
        "repo": {"id": 7, "name": repo},
    }
    whole = (
        head
        | {"payload": payload, "public": True, "created_at": AT.format(number)}
        | more
    )
    return json.dumps(whole, separators=(",", ":")).encode()


def opened(number, shown, **more):
    return event(number, "IssuesEvent", {"action": "opened", "issue": shown}, **more)


def comment(number, on, body="me too", **more):
    said = {
        "id": 50 + number,
        "user": {"login": "bob"},
        "author_association": "MEMBER",
        "body": body,
    }
    said |= {"created_at": AT.format(number), **more}
    return event(
        number,
        "IssueCommentEvent",
        {"action": "created", "issue": issue(on), "comment": said},
    )


STARTED = event(60, "WatchEvent", {"action": "started"})


def extracted(folder):
    """The rows of the only hour of a folder, and its counts."""
    work = folder / f"work-{len(list(folder.glob('work-*')))}"
    read = gis_builder.read_hours(HOUR, folder, work=work, workers=1)
    (rows,) = work.glob("hours/*.parquet")
    return pl.read_parquet(rows).rows(named=True), read.months["2015-01"]


def read(folder, lines):
    data = b"".join(line + b"\n" for line in lines)
    (folder / f"{HOUR}.json.gz").write_bytes(gzip.compress(data))
    return extracted(folder)


def comments_in(rows):
    return sum(row["kind"] == "comment" for row in rows)


def test_an_issue_with_its_comment_and_closing(tmp_path):
    closed = issue(3, state="closed", closed_at=AT.format(9), updated_at=AT.format(9))
    closing = event(9, "IssuesEvent", {"action": "closed", "issue": closed})
    rows, counts = read(
        tmp_path,
        [opened(1, issue(3)), comment(2, 3, "Duplicate of #1"), closing, STARTED],
    )
    assert (
        counts.items() >= {"events": 4, "issue_events": 3, "broken_lines": {}}.items()
    )
    said = {"kind": "comment", "number": 3, "id": 52, "author": "bob"}
    at = AT.format(9)
    expected = [
        said | {"body": "Duplicate of #1"},
        {"kind": "event", "action": "closed", "author": "max", "created_at": at},
        {"kind": "issue", "state": "closed", "labels": ["bug"], "changed_at": at},
        {"kind": "repo", "name": "acme/rocket", "repo_id": 7, "event_at": at},
    ]
    assert [row | part for row, part in zip(rows, expected, strict=True)] == rows
    assert len({row["key"] for row in rows}) == 1


def test_only_the_number_of_a_pull_request_is_kept(tmp_path):
    on_pull = {
        "action": "created",
        "issue": issue(5, pull_request={"url": "x"}),
        "comment": None,
    }
    lines = [
        event(1, "PullRequestEvent", {"number": 4}),
        event(2, "IssueCommentEvent", on_pull),
    ]
    rows, counts = read(tmp_path, lines)
    assert [(r["kind"], r["number"], r["body"]) for r in rows] == [
        ("pull", 4, None),
        ("pull", 5, None),
    ]
    assert counts["issue_events"] == 0


def test_pushers_are_kept_if_events_lack_associations(tmp_path):
    pushes = [
        event(2, "PushEvent", {"commits": []}),
        event(3, "MemberEvent", {"member": {"login": "eve"}}),
        event(4, "PushEvent", {}, actor={"login": "ci[bot]"}),
    ]
    silent = issue(1)
    del silent["author_association"]
    for shown, members in ((silent, ["eve", "max"]), (issue(1), [])):
        rows, counts = read(tmp_path, [opened(1, shown), *pushes])
        assert [row["name"] for row in rows if row["kind"] == "member"] == members
        assert counts["events_without_association"] == len(members) // 2


def test_malformed_lines_are_counted_by_reason(tmp_path):
    good, deep = comment(1, 3), b"[" * 100_000 + b"]" * 100_000
    broken = [
        good[:-20],
        b"not json",
        b'{"id":"8","type":"IssuesEvent","payload":7}',
        b"\xff\xfe}",
        good.replace(b'"public":true', b'"public":' + deep),
        comment(4, 3, user=[1]),
        opened(6, issue(0)),
        opened(7, issue(2), repo="/"),
        opened(7, issue(3, state="neither open nor closed")),
        event(8, "IssuesEvent", {"action": "opened"}),
        event(9, "PullRequestEvent", {}),
        b'{"type":"PushEvent"}',
    ]
    rows, counts = read(
        tmp_path, [*[STARTED] * 20, good, b"", comment(5, 3, body=None), *broken]
    )
    assert comments_in(rows) == 2
    assert counts["events"] == 22
    assert sum(counts["broken_lines"].values()) == len(broken)
    assert counts["broken_lines"]["truncated line"] == 2
    # What is counted does not have the value.
    assert counts["broken_lines"]["payload.issue.state: invalid enum value"] == 1
    assert any("nested" in reason for reason in counts["broken_lines"])
    assert any(
        reason.startswith("payload.comment.user") for reason in counts["broken_lines"]
    )


def test_the_number_of_reasons_is_bounded(tmp_path):
    lines = [
        opened(1, issue(1, labels=[{"name": "x"}] * place + [1])) for place in range(40)
    ]
    _, counts = read(tmp_path, [*lines, *[STARTED] * 40])
    assert sum(counts["broken_lines"].values()) == 40
    assert len(counts["broken_lines"]) <= 21


def test_an_hour_that_is_mostly_lost_is_refused(tmp_path):
    half = [b"junk"] * 4 + [STARTED] * 4
    assert read(tmp_path, half)[1]["broken_lines"] == {"truncated line": 4}
    with data_error("4 of 7 lines are broken, most of them with: truncated line; down"):
        read(tmp_path, half[:-1])


def test_a_truncated_file_is_read_to_its_end(tmp_path):
    whole = gzip.compress(b"".join(comment(n % 60, n) + b"\n" for n in range(1, 2000)))
    path = tmp_path / f"{HOUR}.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    rows, counts = extracted(tmp_path)
    assert comments_in(rows) > 100
    assert counts["issue_events"] == counts["events"] < 1999
    assert "not readable" in counts["hours_broken_off"][HOUR]
    for data, why in (
        (whole[:-4] + b"\0\0\0\0", ""),  # a wrong checksum
        (b"no gzip at all", ""),
        (b"", "no line"),
        (gzip.compress(b"\n"), "no line"),
    ):
        path.write_bytes(data)
        rows, counts = extracted(tmp_path)
        assert why in counts["hours_broken_off"][HOUR]
        assert bool(rows) is (len(data) > 99)


def test_a_too_long_line_is_skipped_and_counted(tmp_path):
    with gzip.open(tmp_path / f"{HOUR}.json.gz", "wb", 1) as file:
        file.write(comment(1, 3) + b"\n")
        for _ in range(40):
            file.write(b'{"text":"' + b"0123456789abcdef" * 65536)
        file.write(b"\n" + comment(2, 3) + b"\n")
    rows, counts = extracted(tmp_path)
    assert comments_in(rows) == 2
    assert counts["broken_lines"] == {"the line is too long": 1}
    hour = "gis_builder.read_hours('2015-01-01-0', sys.argv[1], work=sys.argv[1] + '/w', workers=1)"
    done, peak = peak_mib("import gis_builder", hour, tmp_path)
    assert done == "done"
    assert peak < 150  # the line has 40 MiB


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 60))
def test_every_line_is_counted_as_event_or_broken(tmp_path_factory, noise, at, cut):
    line = comment(1, 3)
    broken = (line[:at] + noise + line[at + cut :]).replace(b"\n", b"")
    rows, counts = read(
        tmp_path_factory.mktemp("hour"), [comment(2, 4), broken, comment(3, 5)]
    )
    assert {4, 5} <= {row["number"] for row in rows}
    assert counts["events"] + sum(counts["broken_lines"].values()) == 2 + bool(
        broken.strip()
    )
