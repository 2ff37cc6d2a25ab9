"""Exports of trackers, each with two tickets of which the second duplicates the first, or refused by name."""

import json
from pathlib import Path

import polars as pl

import gis_builder
from tests.support.shorthand import data_error, parametrize, text_table

from .working_folder import imported, stored, verdicts

EXPORTS = Path(__file__).with_name("data") / "exports"
TWO_KINDS = """\
{"id": 1, "title": "a", "created_at": "2024-01-01"}
{"id": 2, "title": "v1", "due_on": null, "tag_name": "v1", "created_at": "2024-01-01"}
"""
DAYS = ("2024-01-30T10:00:00Z", "2024-01-31T10:00:00Z")
PROJECT = "https://gitlab.com/acme/team/app/-/issues/"


# The repository, and the page of the second ticket.
PAGES = {
    "search.json": ("jira.example.com/AB", "https://jira.example.com/browse/AB-2"),
    "cloud.json": ("jira.example.com/AB", "https://jira.example.com/browse/AB-2"),
    "project.json": ("acme-team/app", f"{PROJECT}2"),
    "bugs.json": ("tickets/Core", "2"),
    "uuids.jsonl": ("tickets/uuids", "99913404344"),
    "outward.csv": ("tickets/AB", "AB-2"),
}
OPTIONS = {
    "german.csv": {
        "columns": {
            "title": "Betreff",
            "created_at": "Angelegt",
            "links": "Zugehörige Tickets",
        }
    }
}
ONLY_COMMENTED = (
    "bitbucket.json",
    "freshdesk.json",
    "comments.json",
    "discussions.json",
)
COMMENTED = (
    "search",
    "cloud",
    "bugs",
    "redmine.json",
    "mantis",
    "jira",
    *ONLY_COMMENTED,
)


def save(root, name, content):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@parametrize("name", [*sorted(path.name for path in EXPORTS.iterdir()), "a.parquet"])
def test_exports_are_read(tmp_path, capsys, name):
    export, work = EXPORTS / name, tmp_path / "work"
    options = OPTIONS.get(name, {})
    if name == "a.parquet":
        columns = {"id": [1, 2], "title": ["It prints twice", "Two slips"]}
        columns |= {"body": ["Since Monday.", "Same slip."], "duplicate_of": [None, 1]}
        times = pl.Series("created_at", DAYS).str.to_datetime()
        export = tmp_path / name
        pl.DataFrame(columns).with_columns(times).write_parquet(export)
    crawled = imported(export, work, progress=True, **options)
    repo = crawled.repositories[0].full_name
    issues = stored(
        work, "SELECT created_at, body, state FROM issues ORDER BY created_at"
    )
    assert issues == [
        (DAYS[0], "Since Monday.", "open"),
        (DAYS[1], "Same slip.", "closed"),
    ]
    rendered = gis_builder.render(work, tmp_path / "issues.parquet").out
    first, second = pl.read_parquet(rendered).sort("created_at").rows(named=True)
    if name in PAGES:
        assert (repo, second["url"]) == PAGES[name]
    seen = set(
        stored(work, f"SELECT body FROM comments WHERE number = {second['number']}")
    )
    assert seen <= {"Seen.", "Duplicate of #1"}
    assert bool(seen) is name.startswith(COMMENTED)
    outcome, targets, reason = verdicts(work)[second["id"]]
    preview = gis_builder.preview_import(export, work, **options)
    roles = {role for column in preview.columns for role in column["role"].split(", ")}
    assert ("comments" in roles) is bool(stored(work, "SELECT 1 FROM comments"))
    assert {"title", "created_at"} <= roles
    # These duplicates have no link, but a comment.
    expected = "closer_duplicate" if name in ONLY_COMMENTED else "duplicate_of"
    assert (outcome, targets, reason) == ("duplicate", [first["id"]], expected)
    assert bool(roles & {"links", "duplicate_of", "duplicated_by"}) is (
        expected == "duplicate_of"
    )
    skipped = [
        line
        for line in capsys.readouterr().err.splitlines()
        if line.endswith("; skipped")
    ]
    assert len(skipped) == (name == "gitlab")
    assert all(
        "milestones.ndjson: no issues, comments or events" in line for line in skipped
    )


@parametrize(
    "tickets, pairs, columns, page",
    [
        ("id,title,created\nT-0001,a,2024-01-30\nT-0002,b,2024-01-31\n", "Nr,Of\nT-0002,T-0001\nT-9,T-0001\n",
         {"duplicate_of": "Of"}, "T-0002"),
        (f"Issue ID,Title,Created At (UTC),State,URL\n1,a,2024-01-30,open,{PROJECT}1\n"
         f"2,b,2024-01-31,closed,{PROJECT}2\n", f"id,duplicate_of\n2,{PROJECT}1\n", {}, f"{PROJECT}2"),
        ("Bug ID,Product,Status,Resolution,Summary,Opened,Changed\n1,Core,NEW,---,a,2024-01-30,2024-02-02\n"
         "2,Core,RESOLVED,DUPLICATE,b,2024-01-31,2024-02-02\n", "id1\tid2\n2\t1\n", {}, "2"),
    ],
    ids=["any", "gitlab", "bugzilla"],
)  # fmt: skip
def test_links_in_another_file(tmp_path, tickets, pairs, columns, page):
    links, work = (
        save(tmp_path, "links.tsv" if "\t" in pairs else "links.csv", pairs),
        tmp_path / "work",
    )
    imported(save(tmp_path, "t.csv", tickets), work, links=links, link_columns=columns)
    (first, (outcome, *_)), (_, second) = verdicts(work).items()
    assert outcome == "not"
    assert second == ("duplicate", [first], "duplicate_of")
    (evidence,) = gis_builder.detect(work).verdicts["evidence"][1]
    assert evidence["url"] == page


@parametrize(
    "name, message, content",
    [
        ("lines.jsonl", "lines.jsonl:2: is a release", TWO_KINDS),
        *text_table(r"""
        mr.json | a merge request | {"iid": 1, "title": "a", "created_at": "2024-01-30", "source_branch": "a"}
        ms.json | a milestone | {"iid": 1, "title": "a", "created_at": "2024-01-30", "expired": false}
        tasks.json | a task of Launchpad | {"entries": [{"title": "Bug #1", "bug_link": "https://api.launchpad.net/"}]}
        board.json | of Trello | {"cards": [], "lists": []}
        phabricator.json | of Phabricator | {"result": {"data": [{"phid": "PHID-TASK-1", "fields": {}}]}}
        gh.csv | a row of GitHub's issues | number,title,created_at,pull_request\n1,a,2024-01-01,\n
        asana.csv | give columns={'title': 'NAME'} | Task ID,Created,Name\n1,2024-01-01,a\n
        zh.csv | no column for id, title, created_at; .* columns={'id': 'NAME', 'ti | 编号,标题\n1,a\n
        2024-01-30-10.json | which `gis archive` reads | {"type": "IssuesEvent", "payload": {}}
        notes.zip | archives can't be read; unpack it | PK
        t.tar.gz | unpack it | PK
        t.XML | export CSV or JSON | PK
    """),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, work, name, message, content):
    with data_error(message):
        imported(save(tmp_path, name, content), work)


def test_links_that_are_not_used_and_remarks_without_a_time(tmp_path):
    """GitLab's id in its database is reported; a remark has the time of the ticket."""
    folder, work = tmp_path / "saved", tmp_path / "work"
    save(
        folder,
        "a.jsonl",
        {
            "iid": 1,
            "title": "a",
            "created_at": DAYS[0],
            "duplicated_to_id": 501,
            "notes": [{"body": day, "created_at": day} for day in reversed(DAYS)],
        },
    )
    save(
        folder,
        "b\udce9.csv",
        "id,title,created,comment\n7,b,2024-01-01,called; no answer; again\n",
    )
    warnings = " ".join(words for _, words in imported(folder, work).status.warnings)
    assert (
        "1 to a ticket outside the import; first 1 to duplicated_to_id=501" in warnings
    )
    assert (
        "b?.csv: no column for body, so texts are only titles; if there is one, give"
        in warnings
    )
    sql = "SELECT body, author, created_at FROM comments ORDER BY number, id"
    assert stored(work, sql) == [
        *((day, None, day) for day in DAYS),
        ("called; no answer; again", None, "2024-01-01T00:00:00Z"),
    ]


def test_the_archive_of_an_ietf_group(tmp_path, work):
    comment = {"author": "bo", "body": "Seen.", "createdAt": DAYS[1]}
    issue = {"number": 1, "title": "a", "state": "OPEN", "createdAt": DAYS[0]}
    issue |= {"author": "ana", "labels": []}
    page = "https://github.com/wg/draft/pull/2"
    archive = {
        "repo": "wg/draft",
        "issues": [issue | {"body": "b", "comments": [comment]}],
        "pulls": [issue | {"number": 2, "state": "MERGED", "url": page}],
    }
    imported(save(tmp_path, "archive.json", archive), work)
    found = stored(work, "SELECT repo, author, is_pull FROM issues ORDER BY number")
    assert found == [("wg/draft", "ana", 0), ("wg/draft", None, 1)]
    assert stored(work, "SELECT body FROM comments") == ["Seen."]
