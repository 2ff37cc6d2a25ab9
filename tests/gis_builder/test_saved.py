"""Trackers saved by other tools give the same verdicts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import gis_builder
from pairkit import DataError
from tests.support.linear import assert_linear, repeated

from .conftest import closed, comment, event, issue
from .working_folder import imported, stored, verdicts

HOME = "acme/probe"
ISSUES = [
    issue(HOME, 1, title="It fails"),
    issue(HOME, 2, title="It stops", **closed("max", 21, "duplicate")),
    issue(HOME, 3, title="A change", pull_request={}, **closed("max", 9)),
    issue(HOME, 4, title="It hangs", **closed("max", 22)),
]
COMMENTS = [comment(HOME, 2, 7, "Duplicate of #1", day=21), comment(HOME, 4, 8, "Dup of #3, closing", day=22)]
EVENTS = [
    event(HOME, 2, "closed", 21),
    event(HOME, 2, "marked_as_duplicate", 21),
    event(HOME, 4, "closed", 22),
]


def paginated(root: Path) -> None:
    """Two pages of issues as `][`, one of comments, and events with unknown kinds."""
    pages = json.dumps(ISSUES[:2]) + json.dumps(ISSUES[2:])
    (root / "whatever.json").write_text(pages)
    with gzip.open(root / "messages.json.gz", "wt") as file:
        json.dump(COMMENTS, file)
    nested = [{"issue": {"number": 2, "url": e["issue_url"]}} | e for e in EVENTS]
    (root / "e.json").write_text(json.dumps([*nested, {"event": "labeled", "id": 1}]))


def listed(value: dict[str, Any]) -> dict[str, Any]:
    number = value["number"]
    own = [c for c in COMMENTS if c["issue_url"].endswith(f"/{number}")]
    return {
        "number": number,
        "title": value["title"],
        "body": value["body"],
        "state": value["state"].upper(),
        "stateReason": (value["state_reason"] or "").upper(),
        "author": {"login": value["user"]["login"], "is_bot": False},
        "createdAt": value["created_at"],
        "updatedAt": value["updated_at"],
        "closedAt": value["closed_at"],
        "labels": [{"name": "a bug"}],
        "url": f"https://github.com/{HOME}/issues/{number}",
        "comments": [
            {
                "author": {"login": c["user"]["login"]},
                "authorAssociation": "MEMBER",
                "body": c["body"],
                "createdAt": c["created_at"],
                "url": f"https://github.com/{HOME}/issues/2#issuecomment-{c['id']}",
            }
            for c in own
        ],
    }


def gh_list(root: Path) -> None:
    (root / "issues.json").write_text(json.dumps([listed(i) for i in ISSUES if i["number"] != 3]))


def own(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["issue_url"].endswith(f"/{number}")]


def github_backup(root: Path) -> None:
    folder = root / "repositories" / "probe" / "issues"
    folder.mkdir(parents=True)
    for value in ISSUES:
        number = value["number"]
        inside = {"comment_data": own(COMMENTS, number), "event_data": own(EVENTS, number)}
        (folder / f"{number}.json").write_text(json.dumps(value | inside))


# Other files of backups: a tool's state, labels, milestones.
OTHERS = {
    "labels.json": [{"id": 7, "name": "a bug", "color": "d73a4a"}],
    "milestone.json": {
        "number": 1,
        "title": "Soon",
        "url": f"https://api.github.com/repos/{HOME}/milestones/1",
        "state": "open",
        "created_at": "2024-01-01T00:00:00Z",
    },
    "state.json": {"version": 2, "last_backup": "2024-01-01T00:00:00Z", "failed_issues": []},
}


@pytest.mark.parametrize("save", [paginated, gh_list, github_backup])
def test_every_layout_gives_the_same_verdicts(
    save: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, work = tmp_path / "saved", tmp_path / "work"
    root.mkdir()
    save(root)
    for name, other in OTHERS.items():
        (root / name).write_text(json.dumps(other))
    (row,) = imported(root, work, progress=True).repositories
    skipped = [line for line in capsys.readouterr().err.splitlines() if "skipped" in line]
    assert [Path(line.partition(":")[0]).name for line in skipped] == sorted(OTHERS)
    assert (row.full_name, row.issue_count) == (HOME, 3)
    found = verdicts(work)
    assert sorted(found) == [f"{HOME}#{number}" for number in (1, 2, 4)]
    assert found[f"{HOME}#2"][:2] == ("duplicate", [f"{HOME}#1"])
    assert found[f"{HOME}#4"][0] != "duplicate"  # its target is a pull request
    texts = stored(work, "SELECT body FROM comments WHERE number <> 3 ORDER BY number")
    assert texts == ["Duplicate of #1", "Dup of #3, closing"]


def test_a_single_file(tmp_path: Path) -> None:
    gh_list(tmp_path)
    assert imported(tmp_path / "issues.json", tmp_path / "work").repositories[0].issue_count == 3


def test_an_address_takes_linear_time(tmp_path: Path) -> None:
    def refused(url: str) -> None:
        (tmp_path / "x.json").write_text(json.dumps({"number": 1, "title": "x", "url": url}))
        with suppress(DataError):
            gis_builder.preview_import(tmp_path / "x.json", tmp_path / "work")

    assert_linear(refused, repeated("/repos/owner/name/issues/1", after="\n."))
