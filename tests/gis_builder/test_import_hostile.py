"""Hostile saved trackers end in a one-line message or a readable store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gis_builder.crawling.import_dump import import_dump
from gis_builder.crawling.status import read_status
from gis_builder.store import Store
from pairkit.app.errors import DataError

from .conftest import comment, event, issue, write_tracker
from .import_fuzz import fuzz_import
from .test_saved import HOME, ISSUES, listed

HUGE = "9" * 5000
LISTED = listed(ISSUES[0])


def import_into(folder: Path, store: Path) -> list[str]:
    """Import a tracker and read the store; returns the messages."""
    messages: list[str] = []
    with Store.open(store, create=True) as opened:
        import_dump(folder, opened, messages.append)
        read_status(opened)
        for row in opened.all_repos():
            list(opened.threads(row.name, only_complete=False))
    return messages


def refused(folder: Path, store: Path) -> str:
    """The one-line error of an import."""
    with pytest.raises(DataError) as caught:
        import_into(folder, store)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"full_name": "o/r", "x": ' + "[" * 200_000,
        " " * (1 << 20) + '{"full_name": "o/r"}',
        '{"full_name": "../.."}',
        '{"full_name": "o/.."}',
        *(
            json.dumps({"full_name": HOME} | wrong)
            for wrong in (
                {"previous_names": 5},
                {"previous_names": True},
                {"previous_names": [".."]},
                {"previous_names": ["a/b", [1]]},
                {"created_at": 5},
                {"created_at": "\ud800"},
                {"created_at": "0001-01-01T00:00:00Z"},
                {"private": {}},
            )
        ),
    ],
    ids=lambda text: text[:60],
)
def test_invalid_repo_files(tmp_path: Path, text: str) -> None:
    write_tracker(tmp_path, HOME, issues=[issue(HOME, 1)])
    (tmp_path / HOME / "repo.json").write_text(text, encoding="utf-8")
    assert "repo.json: " in refused(tmp_path, tmp_path / "s.sqlite")


@pytest.mark.parametrize(
    ("stem", "row"),
    [
        ("issues", issue(HOME, 1) | {"state": [1]}),
        ("issues", issue(HOME, 2**31 - 1)),
        ("issues", issue(HOME, 10_000_001)),
        ("missing", {"number": 5, "status": {}}),
        ("missing", {"number": 5, "status": "transferred", "to": f"o/r#{HUGE}"}),
        ("missing", {"number": 5, "status": "transferred", "to": "o/r#0"}),
        ("missing", {"number": 5, "status": "transferred", "to": "../..#9"}),
        ("events", event(HOME, 1, "marked_as_duplicate", 3, canonical="o\x1b/r#9")),
        ("events", event(HOME, 1, "marked_as_duplicate", 3) | {"event": [1]}),
        ("comments", comment(HOME, 1, 5, "x") | {"issue_url": f"https://x/repos/{HOME}/issues/{HUGE}"}),
    ],
)
def test_invalid_lines(tmp_path: Path, stem: str, row: dict[str, Any]) -> None:
    write_tracker(tmp_path, HOME, **({"issues": [issue(HOME, 1)]} | {stem: [row]}))
    assert f"{stem}.jsonl:1: " in refused(tmp_path, tmp_path / "s.sqlite")


def test_odd_but_valid_values_are_imported(tmp_path: Path) -> None:
    messages = {"url": f"x#issuecomment-{HUGE}", "body": "x\ud800", "createdAt": LISTED["createdAt"]}
    (tmp_path / "a.json").write_text(json.dumps([[LISTED | {"comments": [messages]}]]))  # like --slurp
    (tmp_path / "b\n.json").write_text("[5]")
    passed, done = import_into(tmp_path, tmp_path / "s.sqlite")
    assert "\n" not in passed
    assert done == f"{HOME}: 1 issues, 1 comments"


def test_an_import_without_an_issue_is_an_error(tmp_path: Path) -> None:
    write_tracker(tmp_path / "void", HOME)
    assert "contains no issue (acme/probe: no issues); save" in refused(
        tmp_path / "void", tmp_path / "s.sqlite"
    )
    (tmp_path / "empty.json").write_text("[]")
    assert "contains no issue; save" in refused(tmp_path / "empty.json", tmp_path / "t.sqlite")


@pytest.mark.parametrize("seed", range(20))
def test_random_trackers_end_in_success_or_a_one_line_error(tmp_path: Path, seed: int) -> None:
    fuzz_import(tmp_path, seed)
