"""The import of a saved tracker equals a sweep of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gis_builder.crawling import import_dump as dump
from gis_builder.crawling.crawl import crawl
from gis_builder.crawling.import_dump import import_dump
from gis_builder.settings import BuildSettings, DetectSettings
from gis_builder.store import RepoOutcome, Store
from gis_builder.store.issue_records import IssueRef, Kind
from pairkit import DataError
from tests.support.github import serve

from .conftest import closed, comment, issue, judge, write_tracker
from .crawl_world import open_github, quick

ROCKET = "acme/rocket"


def ignore(message: str) -> None:
    pass


@pytest.mark.parametrize("name", ["tiny", "station"])
def test_an_import_equals_a_sweep(
    name: str, tiny_dump: Path, station_dump: Path, store: Store, tmp_path: Path
) -> None:
    folder = {"tiny": tiny_dump, "station": station_dump}[name]
    messages: list[str] = []
    rows = import_dump(folder, store, messages.append)
    homes = sorted(row.full_name for row in rows if row.is_crawlable)
    assert len(messages) == len(rows)
    with serve(folder) as server, Store.open(tmp_path / "swept.sqlite", create=True) as swept:
        settings = quick(server.url, comments_inline=30, thread_batch=49, strategy="all")
        with open_github(settings, swept) as github:
            crawl(github, swept, homes, BuildSettings(crawl=settings))
        for home in homes:
            assert list(store.threads(home)) == list(swept.threads(home))
            assert store.repo(home).max_number >= swept.repo(home).max_number > 0
            assert store.repo(home).as_of == swept.repo(home).as_of
            assert store.repo(home).newest_at == swept.repo(home).newest_at
        verdicts = [list(judge(which, homes, DetectSettings())) for which in (store, swept)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]


def test_outcomes_kinds_and_former_names(tiny_dump: Path, store: Store) -> None:
    rows = import_dump(tiny_dump, store, ignore)
    outcomes = {row.name: row.outcome.value for row in rows}
    assert outcomes == {
        "acme/fuel": "ok",
        "acme/quiet": "issues_disabled",
        ROCKET: "ok",
        "acme/vault": "private",
        "acme/void": "empty",
    }
    assert [row.name for row in store.repos()] == sorted(outcomes)
    kinds = [store.kind(IssueRef("acme/missile", number)) for number in (2, 3, 7, 8, 10)]
    assert kinds == [Kind.ISSUE, Kind.PULL, Kind.MISSING, Kind.MISSING, Kind.UNKNOWN]
    assert list(store.issues("acme/vault")) == []


def test_a_repeated_import_replaces_the_first(
    tiny_dump: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_dump(tiny_dump, store, ignore)
    once = store.content_hash()
    import_dump(tiny_dump, store, ignore)
    assert store.content_hash() == once
    with Store.open(tmp_path / "killed.sqlite", create=True) as killed:
        with monkeypatch.context() as patch:
            patch.setattr(dump, "_read_events", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                import_dump(tiny_dump, killed, ignore)
        assert killed.repos() == []
        assert list(killed.threads(ROCKET)) == []  # all are incomplete
        import_dump(tiny_dump, killed, ignore)
        assert killed.content_hash() == once


def test_closings_are_implied_without_events(tmp_path: Path, store: Store) -> None:
    rows = [issue(ROCKET, 1, **closed("max", 5)), issue(ROCKET, 2)]
    write_tracker(tmp_path / "dump", ROCKET, issues=rows, comments=[comment(ROCKET, 9, 1, "lost")])
    (row,) = import_dump(tmp_path / "dump", store, ignore)
    assert row.outcome is RepoOutcome.OK
    first, second = store.threads(ROCKET)
    assert [(event.kind, event.actor) for event in first.events] == [("closed", "max")]
    assert (first.issue.closed_by, second.events) == ("max", ())
    ((_, message),) = store.warnings()
    assert message.startswith("1 comments and events skipped")


def test_accounts_are_named_as_in_graphql(tmp_path: Path, store: Store) -> None:
    bot = issue(ROCKET, 1, user={"login": "fix[bot]"}, **closed("ghost", 5))
    reopened = issue(ROCKET, 2, user={"login": "ci", "type": "Bot"}, closed_by={"login": "eve"})
    write_tracker(tmp_path, ROCKET, issues=[bot, reopened])
    import_dump(tmp_path, store, ignore)
    assert [(thread.author, thread.is_bot, thread.closed_by) for thread in store.issues(ROCKET)] == [
        ("fix", True, None),
        ("ci", True, None),
    ]


def test_a_folder_without_a_tracker(tmp_path: Path, store: Store) -> None:
    with pytest.raises(DataError, match="contains no tracker"):
        import_dump(tmp_path, store, ignore)


NO_LINKS = {"html_url": None, "diff_url": None, "patch_url": None}


@pytest.mark.parametrize("name", ["issues.jsonl", "all.json"])
@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"pull_request": None, "event": None, "createdAt": None, "comments": None}, []),
        ({"pull_request": NO_LINKS}, []),
        ({"pull_request": NO_LINKS | {"url": "https://api.github.com/repos/o/r/pulls/1"}}, None),
        ({"created_at": 1704103200000, "updated_at": 1704103200000, "closed_at": None}, []),
        ({"comments": ["Me too.", "Duplicate of #2"]}, ["Me too.", "Duplicate of #2"]),
        ({"comments": [{"body": "Me too.", "id": 7, "created_at": "2024-01-05T00:00:00Z"}]}, ["Me too."]),
    ],
)
def test_issues_that_pandas_or_datasets_saved(
    tmp_path: Path, store: Store, name: str, fields: dict[str, object], kept: list[str] | None
) -> None:
    """Absent keys become null, times milliseconds; comments are embedded. None: it is a pull request."""
    lines = [issue(ROCKET, 1) | fields, issue(ROCKET, 2)]
    (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    import_dump(tmp_path, store, ignore)
    bodies = {thread.issue.number: [c.body for c in thread.comments] for thread in store.threads(ROCKET)}
    assert bodies == ({} if kept is None else {1: kept}) | {2: []}
