"""Saved trackers: their layouts, and imports that equal a crawl."""

import gzip
import json
import shutil
from contextlib import suppress
from math import nan
from pathlib import Path

import gis_builder
from pairkit import DataError
from tests.support.github import serve
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import config_error, data_error, parametrize, table

from .conftest import DATA, closed, comment, event, issue, write_tracker
from .crawl_world import crawled
from .working_folder import contents, imported, stored, verdicts

HOME = "acme/probe"
LAYOUTS = {
    "paginated": "pages of issues and of comments, and events of unknown kinds",
    "gh_list": "an answer of `gh issue list`",
    "github_backup": "a file for each issue",
    "graphql": "an answer to a query, whose lists are connections",
    "perceval": "JSON lines of Perceval, with comments and timelines",
    "bundles": "files of a script: an issue with its comments and events, and lists of all",
}
# Marks of duplicates in a layout; the others have only the kind of the event.
MARKS = {"gh_list": [], "graphql": [1]}


def copied(layout, root):
    """A saved tracker, with pages of comments as gzip files."""
    shutil.copytree(DATA / "layouts" / layout, root)
    for path in root.glob("messages.json"):
        path.with_name("messages.json.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    # PowerShell writes UTF-16.
    for path in root.glob("issues.json"):
        path.write_text(path.read_text("utf-8"), "utf-16")
    return root


@parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_verdicts(layout, tmp_path, capsys):
    root, work = copied(layout, tmp_path / "saved"), tmp_path / "work"
    # Of backups: a tool's state, labels, milestones.
    shutil.copytree(DATA / "other_files", root, dirs_exist_ok=True)
    (root / "a.csv").write_text("name,mail\n")
    (row,) = imported(root, work, progress=True).repositories
    skipped = [
        line for line in capsys.readouterr().err.splitlines() if "skipped" in line
    ]
    names = ", ".join(
        f"{root}/{name}" for name in ("a.csv", "labels.json", "milestone.json")
    )
    assert [line.partition(":")[0] for line in skipped] == [f"{names} and 1 more"]
    assert (row.full_name, row.issue_count) == (HOME, 3)
    found = verdicts(work)
    assert sorted(found) == [f"{HOME}#{number}" for number in (1, 2, 4)]
    assert found[f"{HOME}#2"][:2] == ("duplicate", [f"{HOME}#1"])
    assert found[f"{HOME}#4"][0] != "duplicate"  # its target is a pull request
    texts = stored(work, "SELECT body FROM comments WHERE number <> 3 ORDER BY number")
    assert texts == ["Duplicate of #1", "Dup of #3, closing"]
    marks = stored(
        work, "SELECT target_number FROM events WHERE kind = 'marked_as_duplicate'"
    )
    assert marks == MARKS.get(layout, [None])


def test_a_folder_of_what_the_api_returns(work):
    """Other kinds of events are ignored, and comments that issues state but that are missing are reported."""
    warnings = imported(DATA / "layouts" / "api", work).status.warnings
    assert [
        text
        for _, text in warnings
        if "1 issues state comments that are missing" in text
    ]
    kinds = stored(work, "SELECT number, kind FROM events ORDER BY number, place")
    assert kinds == [(2, "closed"), (2, "marked_as_duplicate"), (4, "closed")]


def test_an_address_takes_linear_time(tmp_path):
    def refused(url):
        (tmp_path / "x.json").write_text(
            json.dumps({"number": 1, "title": "x", "url": url})
        )
        with suppress(DataError):
            gis_builder.preview_import(tmp_path / "x.json", tmp_path / "work")

    assert_linear(refused, repeated("/repos/owner/name/issues/1", after="\n."))


ROCKET = "acme/rocket"


@parametrize("name", ["tiny", "station"])
def test_an_import_equals_a_sweep(name, tiny_dump, station_dump, work, tmp_path):
    folder = {"tiny": tiny_dump, "station": station_dump}[name]
    rows = imported(folder, work).repositories
    homes = sorted(row.full_name for row in rows if row.is_crawlable)
    with serve(folder) as server:
        crawled(
            server,
            tmp_path / "swept",
            homes,
            strategy="all",
            comments_inline=30,
            thread_batch=49,
        )
    inside = f"WHERE repo IN ({', '.join(map(repr, homes))}) AND repo || number NOT IN (SELECT repo || number"
    for name in ("issues", "comments", "events"):
        sql = (
            f"SELECT * FROM {name} {inside} FROM issues WHERE is_pull) ORDER BY 1, 2, 3"
        )
        assert stored(work, sql) == stored(tmp_path / "swept", sql) != []
    times = "SELECT full_name, as_of, newest_at FROM repos WHERE name = full_name AND outcome = 'ok'"
    assert stored(work, times) == stored(tmp_path / "swept", times)
    assert verdicts(work).items() >= verdicts(tmp_path / "swept").items() != []


def test_outcomes_kinds_and_former_names(tiny_dump, work):
    outcomes = {
        row.name: row.outcome.value for row in imported(tiny_dump, work).repositories
    }
    others = {
        "acme/quiet": "issues_disabled",
        "acme/vault": "private",
        "acme/void": "empty",
    }
    assert outcomes == {ROCKET: "ok", "acme/fuel": "ok", **others}
    names = "SELECT name, full_name FROM repos WHERE NOT listed"
    assert stored(work, names) == [("acme/missile", ROCKET)]
    assert stored(work, "SELECT repo, number FROM issues WHERE is_pull") == [
        (ROCKET, 3)
    ]
    assert contents(work)["missing"] == [
        (ROCKET, 7, "deleted", ""), (ROCKET, 8, "transferred", "acme/fuel#2")
    ]  # fmt: skip
    assert stored(work, "SELECT * FROM issues WHERE repo = 'acme/vault'") == []


def test_a_repeated_import_replaces_the_first(tmp_path, tiny_dump, work):
    """Also one that ended at a damaged line, which leaves no store."""
    saved = Path(shutil.copytree(tiny_dump, tmp_path / "saved"))
    events = saved / ROCKET / "events.jsonl"
    whole = events.read_text()
    events.write_text(whole + "{\n")
    with data_error(r"events\.jsonl:11: "):
        imported(saved, work)
    assert not [*work.glob("store.*")]
    for use in (gis_builder.status, gis_builder.detect):
        with config_error("no such store; run `gis import`"):
            use(work)
    events.write_text(whole)
    imported(saved, work)
    once = contents(work)
    imported(saved, tmp_path / "other")
    assert contents(tmp_path / "other") == once
    events.write_text(whole + "{\n")
    with data_error(r"events\.jsonl:11: "):
        imported(saved, work)
    with data_error("the last import was stopped; run it again"):
        gis_builder.detect(work)
    events.write_text(whole)
    imported(saved, work)
    assert contents(work) == once


def test_a_mark_may_name_an_issue_of_an_earlier_import(tmp_path, work):
    for number, target in ((1, "o/r#2"), (3, f"{ROCKET}#1")):
        events = [
            event(ROCKET, number, kind, 5, canonical=target, state_reason="duplicate")
            for kind in ("marked_as_duplicate", "closed")
        ]
        rows = [issue(ROCKET, number, **closed("max", 5))]
        write_tracker(tmp_path / str(number), ROCKET, issues=rows, events=events)
        imported(tmp_path / str(number), work)
    found = [outcome for outcome, *_ in verdicts(work).values()]
    assert found == ["uncertain", "duplicate"]
    assert stored(work, "SELECT issue_count FROM repos") == [2]
    write_tracker(tmp_path / "5", ROCKET, issues=[])
    with data_error("contains no issue"):
        imported(tmp_path / "5", work)


def test_closings_are_implied_without_events(tmp_path, work, capsys):
    rows = [issue(ROCKET, 1, **closed("max", 5)), issue(ROCKET, 2)]
    write_tracker(
        tmp_path / "dump", ROCKET, issues=rows, comments=[comment(ROCKET, 9, 1, "lost")]
    )
    (tmp_path / "dump" / "more.json").touch()
    ((_, message),) = imported(tmp_path / "dump", work, progress=True).status.warnings
    assert message.startswith("1 comments and events skipped")
    assert "/more.json: not read beside" in capsys.readouterr().err
    assert stored(work, "SELECT number, kind, actor FROM events") == [
        (1, "closed", "max")
    ]
    assert stored(work, "SELECT closed_by FROM issues ORDER BY number") == ["max", None]


def test_accounts_are_named_as_in_graphql(tmp_path, work):
    bot = issue(ROCKET, 1, user={"login": "fix[bot]"}, **closed("ghost", 5))
    gone = issue(ROCKET, 3, user={"login": "Ghost"})  # of Gitea
    reopened = issue(
        ROCKET, 2, user={"login": "ci", "type": "Bot"}, closed_by={"login": "eve"}
    )
    write_tracker(tmp_path / "dump", ROCKET, issues=[bot, reopened, gone])
    imported(tmp_path / "dump", work)
    people = stored(
        work, "SELECT author, is_bot, closed_by FROM issues ORDER BY number"
    )
    assert people == [("fix", 1, None), ("ci", 1, None), (None, 0, None)]


def test_a_folder_without_a_tracker(tmp_path, work):
    with data_error("contains no tracker"):
        imported(tmp_path, work)


@parametrize("name", ["issues.jsonl", "all.json"])
@table(
    """
    fields, kept
    nans | []
    {'pull_request': None, 'event': None, 'createdAt': None, 'comments': None} | []
    {'created_at': 1704103200000, 'updated_at': 1704103200000, 'closed_at': None} | []
    {'comments': ['Me too.', 'Duplicate of #2']} | ['Me too.', 'Duplicate of #2']
    {'user': 77, 'closed_by': 'max'} | []
    {'comments': [{'body': 'Me too.', 'id': 7, 'created_at': '2024-01-05T00:00:00Z'}]} | ['Me too.']
    {'pull_request': {'html_url': None, 'diff_url': None, 'patch_url': None}} | []
    {'pull_request': {'diff_url': None, 'url': 'https://api.github.com/repos/o/r/pulls/1'}} | None
""",
    nans=dict.fromkeys(("body", "user", "closed_at", "pull_request"), nan)
    | {"closed_by": ""},
)
def test_issues_that_pandas_or_datasets_saved(tmp_path, work, name, fields, kept):
    """Absent keys become null, times milliseconds; comments are embedded. None: it is a pull request."""
    lines = [issue(ROCKET, 1) | fields, issue(ROCKET, 2)]
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / name).write_text("\n".join(map(json.dumps, lines)))
    imported(tmp_path / "saved", work)
    pulls = "SELECT number FROM issues WHERE is_pull"
    assert stored(work, pulls) == ([1] if kept is None else [])
    texts = stored(work, f"SELECT body FROM comments WHERE number NOT IN ({pulls})")
    assert texts == (kept or [])
