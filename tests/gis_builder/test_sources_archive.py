"""Hours of GH Archive: what they propose, and what is said of what can't be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gis_builder.crawling.sources.archive import ArchiveScan, archive_files, read_candidates
from pairkit.app.errors import ConfigError, DataError

HOURS = Path(__file__).resolve().parents[3] / "shared" / "data" / "gharchive"
REPO = "Acme/Rocket"


def says_duplicate(text: str) -> bool:
    return "dup" in text.lower()


def event(kind: str, number: int, repo: str = "acme/rocket", **payload: Any) -> dict[str, Any]:
    issue = {
        "number": number,
        "title": "Crash",
        "labels": [],
        "body": "no duplicate found",
        **payload.pop("issue", {}),
    }
    return {
        "id": "1",
        "type": kind,
        "actor": {"login": "max"},
        "repo": {"id": 1, "name": repo, "url": "https://x"},
        "payload": {"issue": issue, **payload},
    }


def comment(number: int, body: str | None, **more: Any) -> dict[str, Any]:
    return event("IssueCommentEvent", number, action="created", comment={"body": body}, **more)


def closing(number: int, **issue: Any) -> dict[str, Any]:
    return event("IssuesEvent", number, action="closed", issue=issue)


EVENTS = [
    comment(1, "Duplicate of #9"),
    comment(2, "thanks"),
    comment(3, "dup", issue={"pull_request": {"url": "x"}}),
    comment(4, "dup", repo="acme/other"),
    comment(5, None),
    closing(6, labels=[{"name": "Duplicate"}]),
    closing(7, state_reason="duplicate"),
    closing(8),
    event("IssuesEvent", 9, action="opened", issue={"title": "duplicate rows"}),
    {"type": "PushEvent", "repo": {"name": "acme/rocket"}, "payload": {"commits": "dup"}},
]


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in events)


def scan(path: Path, data: bytes) -> ArchiveScan:
    path.write_bytes(data)
    return read_candidates([path], [REPO], says_duplicate)


@pytest.mark.parametrize("compact", [True, False])
def test_candidates(tmp_path: Path, compact: bool) -> None:
    separators = (",", ":") if compact else None
    data = "\n".join(json.dumps(value, separators=separators) for value in EVENTS).encode()
    found = scan(tmp_path / "2020-01-01-0.json.gz", gzip.compress(data))
    assert found.numbers == {REPO: {1, 6, 7}}
    assert (found.files, found.events, found.warnings) == (1, 8, [])


@pytest.mark.parametrize("number", [10**30, -5, 0, 7.5, "7", None, True])
def test_a_number_that_is_none_is_a_broken_line(tmp_path: Path, number: Any) -> None:
    found = scan(tmp_path / "2020-01-01-0.json", lines([comment(number, "dup"), comment(7, "dup")]))
    assert found.numbers == {REPO: {7}}
    assert found.broken_lines == {"2020-01-01-0.json": 1}


def test_broken_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    wrong = [
        b'{"type": "IssuesEvent", "repo": {"name": "acme/rocket"}, "payl\n',
        b'{"type": "IssuesEvent", "repo": {"name": "acme/rocket"}, "payload": 1}\n',
        b'{"type": "IssuesEvent", "repo": {"name": "acme/rocket"}, "payload": {"issue": {}}}\n',
        b'{"type":"IssueCommentEvent","repo":{"name":"acme/rocket"},"payload":{"issue":{"number":1},}}\n',
        b"\n",
        b"\xff\xfe\n",
    ]
    found = scan(tmp_path / "2020-01-01-0.json", b"".join(wrong) + lines(EVENTS))
    assert found.numbers == {REPO: {1, 6, 7}}
    assert found.warnings == ["2020-01-01-0.json: 5 broken lines were left out"]


@pytest.mark.parametrize("cut", [20, 200, -12])
def test_what_a_broken_file_still_gives_is_taken(tmp_path: Path, cut: int) -> None:
    data = gzip.compress(lines(EVENTS))
    found = scan(tmp_path / "2020-01-01-0.json.gz", data[:cut])
    assert found.numbers[REPO] <= {1, 6, 7}
    (words,) = [words for words in found.warnings if "end can't be read" in words]
    assert words.startswith("2020-01-01-0.json.gz")
    whole = scan(tmp_path / "2020-01-01-1.json.gz", data + b"rubbish after the end")
    assert whole.numbers == {REPO: {1, 6, 7}}
    assert len(whole.warnings) == 1
    assert len(scan(tmp_path / "2020-01-01-2.json.gz", b"no gzip at all").warnings) == 1


def test_events_older_than_2015_have_no_texts(tmp_path: Path) -> None:
    old = {
        "type": "IssueCommentEvent",
        "repository": {"owner": "acme", "name": "rocket", "url": "https://x"},
        "payload": {"issue_id": 77, "comment_id": 5},
    }
    found = scan(tmp_path / "2014-01-01-0.json.gz", gzip.compress(lines([old, *EVENTS])))
    assert found.numbers == {REPO: {1, 6, 7}}
    assert found.warnings == ["1 events are older than 2015 and hold no text to judge by"]


def test_files(tmp_path: Path) -> None:
    names = ["2020-01-01-1.json.gz", "2020-01-01-10.json.gz", "notes.txt"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    assert archive_files([tmp_path, tmp_path / names[0]]) == [tmp_path / name for name in names[:2]]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no hour"):
        archive_files([tmp_path / "empty"])
    with pytest.raises(ConfigError, match="no such file"):
        archive_files([tmp_path / "absent.json.gz"])
    with pytest.raises(DataError, match="can't be read"):
        read_candidates([tmp_path / "absent.json.gz"], [REPO], says_duplicate)


def test_hours_in_the_published_layout(tmp_path: Path) -> None:
    """With all that the real ones hold of an event; most are of other kinds, and of others' repositories."""
    about = {"gravatar_id": "", "avatar_url": "https://x/u/1?", "url": "https://x/users/max"}
    events: list[dict[str, Any]] = [
        {
            "type": "PushEvent",
            "payload": {"push_id": 1, "commits": [{"message": "dup of #1", "distinct": True}]},
        },
        {"type": "CreateEvent", "payload": {"ref": None, "ref_type": "repository", "description": None}},
        {"type": "WatchEvent", "payload": {"action": "started"}, "org": {"id": 7, "login": "acme"}},
        closing(117, user={"login": "max"}, locked=False, milestone=None, closed_at="2015-01-01T00:10:00Z"),
        comment(9, "dup", issue={"pull_request": {"url": "https://x/pulls/9", "html_url": "https://x"}}),
    ]
    for hour in range(2):
        named = [
            {
                **value,
                "id": f"{hour}{row}",
                "actor": {"id": 1, "login": "max", **about},
                "repo": {"id": row, "name": ("acme/rocket", "ada/notes")[hour], "url": "https://x"},
                "public": True,
                "created_at": f"2015-01-01T0{hour}:00:00Z",
            }
            for row, value in enumerate(events)
        ]
        (tmp_path / f"2015-01-01-{hour}.json.gz").write_bytes(gzip.compress(lines(named)))
    found = read_candidates(archive_files([tmp_path]), [REPO, "ada/other"], lambda _text: True)
    assert (found.files, found.broken_lines, found.broken_files, found.textless) == (2, {}, {}, 0)
    assert found.numbers == {
        REPO: {117},
        "ada/other": set(),
    }  # a comment on a pull request is none on an issue
    assert found.events == 2


@pytest.mark.skipif(
    not HOURS.is_dir(), reason="extra: no hours of GH Archive are at ../shared/data/gharchive"
)
def test_real_hours() -> None:
    files = archive_files([HOURS])
    found = read_candidates(files, ["uwarc/website", "selfhub/selfhub"], lambda _text: True)
    assert (found.files, found.broken_lines, found.broken_files, found.textless) == (2, {}, {}, 0)
    assert found.numbers["selfhub/selfhub"] >= {117}  # closed
    assert found.numbers["uwarc/website"] == set()  # a comment on a pull request
    assert found.events >= 2
