"""Exports of trackers, each with two tickets of which the second duplicates the first, or refused by name."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gis_builder
from pairkit import DataError

from .working_folder import imported, stored, verdicts

DAYS = ("2024-01-30T10:00:00Z", "2024-01-31T10:00:00Z")
DEVOPS = "https://dev.azure.com/o/_apis/wit/workItems/"
LAUNCHPAD = "https://api.launchpad.net/1.0/bugs/"
YOUTRACK = {
    "name": "Duplicate",
    "sourceToTarget": "duplicates",
    "targetToSource": "is duplicated by",
}


def two(*names: str, **more: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Two tickets with these names of id, title, body and time, and further keys."""
    values = (("1", "2"), ("It prints twice", "Two slips"), ("Since Monday.", "Same slip."), DAYS)
    columns = dict(zip(names, values, strict=True)) | more
    return [
        {name: column[n] for name, column in columns.items() if column[n] is not None}
        for n in (0, 1)
    ]


def relation(kind: str, number: int) -> dict[str, str]:
    return {"rel": f"System.LinkTypes.{kind}", "url": f"{DEVOPS}{number}"}


def note(text: str, *, system: bool) -> dict[str, Any]:
    return {"note": text, "system": system, "created_at": DAYS[1], "author": {"name": "ana"}}


REDMINE = two(
    *("id", "subject", "description", "created_on"),
    relations=([{"issue_id": 2, "issue_to_id": 1, "relation_type": "duplicates"}], None),
    journals=(
        None,
        [
            {"notes": "Seen.", "user": {"name": "Bo"}, "created_on": DAYS[1]},
            {"notes": "", "created_on": DAYS[1]},
        ],
    ),
)
AZURE = two(
    *("id", "System.Title", "System.Description", "System.CreatedDate"),
    **{"System.Description": ("<div>Since&nbsp;<b>Monday</b>.</div>", "<p>Same slip.</p>\n")},
    relations=(
        [relation("Duplicate-Forward", 2), relation("Related", 2)],
        [relation("Duplicate-Reverse", 1)],
    ),
)
MANTIS = two(
    *("id", "summary", "description", "created_at"),
    relationships=([{"type": {"name": "has-duplicate"}, "issue": {"id": 2}}], None),
    notes=(None, [{"text": "Seen.", "created_at": DAYS[1]}]),
)
BITBUCKET = two("id", "title", "content", "created_on", status=("new", "duplicate"))
NAMES = ("iid", "title", "description", "created_at")
GITLAB = two(
    *NAMES,
    notes=(
        [note("a duplicate of #2?", system=False)],
        [note("marked this issue as a duplicate of #1", system=True)],
    ),
)


def jira(second: dict[str, Any], **both: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Two tickets of Jira's API, and further fields of the second and of both."""
    tickets = two("key", "summary", "description", "created", key=("AB-1", "AB-2"), **both)
    site = "https://jira.example.com/rest/api/2/issue/"
    return [
        {
            "id": f"1000{n}",
            "key": fields.pop("key"),
            "self": f"{site}1000{n}",
            "fields": fields | (second if n else {}),
        }
        for n, fields in enumerate(tickets)
    ]


def rich(text: str) -> dict[str, Any]:
    """A text of version 3 of Jira's API."""
    words = [{"type": "text", "text": word} for word in re.split("( )", text, maxsplit=1)]
    return {"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": words}]}


BROWSE = "https://jira.example.com/browse/AB-2"
DUPLICATE = {"name": "Duplicate", "inward": "is duplicated by", "outward": "duplicates"}
TURNED = {"name": "Duplicate", "inward": "duplicates", "outward": "is duplicated by"}
CLONES = {"name": "Cloners", "inward": "is cloned by", "outward": "clones"}
RESOLVED = {
    "status": {"name": "Resolved"},
    "resolution": {"name": "Duplicate"},
    "resolutiondate": DAYS[1],
    "comment": {"comments": [{"id": "7", "body": "Seen.", "created": DAYS[1]}]},
}
JIRA = jira(
    RESOLVED,
    issuelinks=(
        [
            {"type": DUPLICATE, "inwardIssue": {"key": "AB-2"}},
            {"type": CLONES, "outwardIssue": {"key": "AB-2"}},
        ],
        [{"type": DUPLICATE, "outwardIssue": {"key": "AB-1"}}],
    ),
)
CLOUD = jira(
    RESOLVED,
    description=(rich("Since Monday."), rich("Same slip.")),
    issuelinks=([], [{"type": TURNED, "inwardIssue": {"key": "AB-1"}}]),
)
PROJECT = "https://gitlab.com/acme/team/app/-/issues/"
GITLAB_API = two(
    *("iid", "title", "description", "created_at"),
    project_id=(9, 9),
    state=("opened", "closed"),
    web_url=(f"{PROJECT}1", f"{PROJECT}2"),
    _links=tuple(
        {"closed_as_duplicate_of": f"https://gitlab.com/api/v4/projects/{project}/issues/1"}
        for project in (8, 9)  # the first is a link to another project
    ),
)
BUGZILLA = two(
    *("id", "summary", "whiteboard", "creation_time"),
    product=("Core", "Core"),
    status=("NEW", "RESOLVED"),
    dupe_of=(None, 1),
    url=("https://example.com/elsewhere", None),
    comments=tuple(
        [{"bug_id": n, "time": DAYS[1], "text": text} for text in texts]
        for n, texts in (
            (1, ["Since Monday."]),
            (2, ["Same slip.", "Seen."]),
        )  # first the description
    ),
)
LONG_ID = "0b5d8c1e-5c8f-4b0e-9f6e-2f6a5c3d1e7f"
GERMAN = """\ufeffNr;Betreff;Text;Angelegt;Zugehörige Tickets
1;It prints twice;Since Monday.;30.01.2024 10:00;Bezieht sich auf #2, Dupliziert durch #2
2;Two slips;Same slip.;31.01.2024 10:00;Duplikat von #1
"""

READ: dict[str, Any] = {
    "search.json": {"startAt": 0, "total": 2, "issues": JIRA},
    "cloud.json": "".join(json.dumps({"issues": [ticket]}) for ticket in CLOUD),
    "project.json": GITLAB_API,
    "bugs.json": {"bugs": BUGZILLA},
    "uuids.jsonl.gz": "\n".join(
        json.dumps(ticket)
        for ticket in two(
            *("id", "title", "body", "created_at"),
            id=(LONG_ID, "99913404344"),
            duplicate_of=("", LONG_ID),
        )
    ),
    "types.parquet": pl.DataFrame(
        two("id", "title", "body", "created_at", id=(1, 2), duplicate_of=(None, 1)),
        infer_schema_length=None,
    ).with_columns(pl.col("created_at").str.to_datetime("%Y-%m-%dT%H:%M:%SZ")),
    "german.csv": GERMAN,
    "outward.csv": "Summary,Issue key,Status,Project key,Created,Outward issue link (Duplicate),"
    "Outward issue link (Duplicate),Description\n"
    "It prints twice,AB-1,Open,AB,30/Jan/24 10:00,,,Since Monday.\n"
    "Two slips,AB-2,Resolved,AB,31/Jan/24 10:00 AM,,AB-1,Same slip.\n",
    "youtrack.json": two(
        *("idReadable", "summary", "description", "created"),
        created=(1706608800000, 1706695200000),
        links=(
            [{"direction": "INWARD", "linkType": YOUTRACK, "issues": [{"idReadable": "2"}]}],
            [
                {
                    "direction": "BOTH",
                    "linkType": {"name": "Relates"},
                    "issues": [{"idReadable": "9"}],
                }
            ],
        ),
        customFields=([], [{"name": "State", "value": {"name": "Duplicate"}}]),
    ),
    "redmine.json": {"issues": REDMINE, "total_count": 2},
    "redmine.csv": "#,Subject,Description,Created,Related issues\n"
    "1,It prints twice,Since Monday.,01/30/2024 10:00 AM,Related to #2\n"
    '2,Two slips,Same slip.,01/31/2024 10:00 AM,"Related to #9, Duplicates #1"\n',
    "azure.json": {
        "value": [
            {"id": fields.pop("id"), "relations": fields.pop("relations"), "fields": fields}
            for fields in AZURE
        ]
    },
    "servicenow.json": {
        "result": two(
            *("number", "short_description", "description", "opened_at"),
            duplicate_of=("", {"display_value": "1", "link": "https://acme.example.com/api"}),
        )
    },
    "launchpad.json": {
        "entries": two(
            *("id", "title", "description", "date_created"),
            duplicate_of_link=(None, f"{LAUNCHPAD}1"),
        )
    },
    "mantis.json": {"issues": MANTIS},
    "bitbucket.json": {
        "issues": BITBUCKET,
        "comments": [{"issue": "2", "content": "Duplicate of #1", "created_on": DAYS[1]}],
    },
    "freshdesk.json": two(
        *("id", "subject", "description_text", "created_at"),
        description=("<p>It</p>", "<p>It</p>"),
        status=(2, 5),
        stats=(None, {"closed_at": DAYS[1]}),
        conversations=(
            [],
            [{"body": "<p>", "body_text": "Duplicate of #1", "created_at": DAYS[1]}],
        ),
    ),
    "linear.csv": "ID,Title,Description,Created,Duplicate of\n"
    "T-1,It prints twice,Since Monday.,Tue Jan 30 2024 10:00:00 GMT+0000 (GMT+00:00),\n"
    "T-2,Two slips,Same slip.,Wed Jan 31 2024 11:00:00 GMT+0100 (Mitteleuropäische Zeit),T-1\n",
    "jira.csv": "Issue key,Summary,Description,Created,Inward issue link (Duplicate),Comment,Comment\n"
    "T-1,It prints twice,Since Monday.,30/Jan/24 10:00 AM,T-2,,\n"
    "T-2,Two slips,Same slip.,31/Jan/24 10:00 AM,,31/Jan/24 11:00 AM;ana;Seen.,\n",
    "comments.json": {
        "data": {
            "project": {
                "issues": {
                    "nodes": two(
                        *("iid", "title", "description", "createdAt"),
                        notes=(
                            {"nodes": []},
                            {"nodes": [{"body": "Duplicate of #1", "createdAt": DAYS[1]}]},
                        ),
                        closedAt=(None, DAYS[1]),
                    )
                }
            }
        }
    },
    "discussions.json": two(
        *NAMES,
        discussions=([], [{"notes": [{"body": "Duplicate of #1", "created_at": DAYS[1]}]}]),
        closed_at=(None, DAYS[1]),
    ),
    "items.json": {
        "data": {"items": two("id", "title", "body", "createdAt", duplicateOf=("", "#1"))}
    },
    "gitlab/issues.ndjson": "\n".join(map(json.dumps, GITLAB)),
}


# The repository, and the page of the second ticket.
PAGES = {
    "search.json": ("jira.example.com/AB", BROWSE),
    "cloud.json": ("jira.example.com/AB", BROWSE),
    "project.json": ("acme-team/app", f"{PROJECT}2"),
    "bugs.json": ("tickets/Core", "2"),
    "uuids.jsonl.gz": ("tickets/uuids", "99913404344"),
    "outward.csv": ("tickets/AB", "AB-2"),
}
OPTIONS = {
    "german.csv": {
        "columns": {"title": "Betreff", "created_at": "Angelegt", "links": "Zugehörige Tickets"}
    }
}
ONLY_COMMENTED = ("bitbucket.json", "freshdesk.json", "comments.json", "discussions.json")
COMMENTED = ("search", "cloud", "bugs", "redmine.json", "mantis", "jira", *ONLY_COMMENTED)


def save(root: Path, name: str, content: Any) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pl.DataFrame):
        content.write_parquet(path)
        return path
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", READ)
def test_exports_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = save(tmp_path, name, READ[name])
    for other in ("merge_requests", "milestones") if "/" in name else ():
        save(path.parent, f"{other}.ndjson", {**GITLAB[0], "created_at": "2023-01-01", "notes": []})
    work = tmp_path / "work"
    source = path.parent if "/" in name else path
    crawled = imported(source, work, progress=True, **OPTIONS.get(name, {}))
    repo = crawled.repositories[0].full_name
    issues = stored(work, "SELECT created_at, body, state FROM issues ORDER BY created_at")
    assert issues == [(DAYS[0], "Since Monday.", "open"), (DAYS[1], "Same slip.", "closed")]
    rendered = gis_builder.render(work, tmp_path / "issues.parquet", progress=False).out
    first, second = pl.read_parquet(rendered).sort("created_at").rows(named=True)
    if name in PAGES:
        assert (repo, second["url"]) == PAGES[name]
    seen = set(stored(work, f"SELECT body FROM comments WHERE number = {second['number']}"))
    assert seen <= {"Seen.", "Duplicate of #1"}
    assert bool(seen) is name.startswith(COMMENTED)
    outcome, targets, reason = verdicts(work)[second["id"]]
    preview = gis_builder.preview_import(source, work, progress=False, **OPTIONS.get(name, {}))
    roles = {role for column in preview.columns for role in column["role"].split(", ")}
    assert ("comments" in roles) is bool(stored(work, "SELECT 1 FROM comments"))
    assert {"title", "created_at"} <= roles
    # These duplicates have no link, but a comment.
    expected = "closer_duplicate" if name in ONLY_COMMENTED else "duplicate_of"
    assert (outcome, targets, reason) == ("duplicate", [first["id"]], expected)
    assert bool(roles & {"links", "duplicate_of", "duplicated_by"}) is (expected == "duplicate_of")
    told = capsys.readouterr().err
    assert told.count("; skipped\n") == ("/" in name)
    assert ("milestones.ndjson: no issues, comments or events; skipped" in told) is ("/" in name)


@pytest.mark.parametrize(
    ("tickets", "pairs", "columns", "page"),
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
def test_links_in_another_file(
    tmp_path: Path, tickets: str, pairs: str, columns: dict[str, str], page: str
) -> None:
    links, work = (
        save(tmp_path, "links.tsv" if "\t" in pairs else "links.csv", pairs),
        tmp_path / "work",
    )
    imported(save(tmp_path, "t.csv", tickets), work, links=links, link_columns=columns)
    (first, (outcome, *_)), (_, second) = verdicts(work).items()
    assert outcome == "not"
    assert second == ("duplicate", [first], "duplicate_of")
    (evidence,) = gis_builder.detect(work, progress=False).verdicts["evidence"][1]
    assert evidence["url"] == page


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mr.json", two(*NAMES, source_branch=("a", "b")), "a merge request"),
        ("ms.json", two(*NAMES, expired=(False, False)), "a milestone"),
        ("tasks.json", {"entries": [{"title": "Bug #1", "bug_link": LAUNCHPAD}]}, "a task of Launchpad"),
        ("board.json", {"cards": [], "lists": []}, "of Trello"),
        ("phabricator.json", {"result": {"data": [{"phid": "PHID-TASK-1", "fields": {}}]}}, "of Phabricator"),
        ("gh.csv", "number,title,created_at,pull_request\n1,a,2024-01-01,\n", "a row of GitHub's issues"),
        ("asana.csv", "Task ID,Created,Name\n1,2024-01-01,a\n", "give columns={'title': 'NAME'}"),
        ("zh.csv", "编号,标题\n1,a\n", "no column for id, title, created_at; .* columns={'id': 'NAME', 'ti"),
        ("2024-01-30-10.json", {"type": "IssuesEvent", "payload": {}}, "which `gis archive` reads"),
        ("lines.jsonl", '{"id":1,"title":"a","created_at":"2024-01-01"}\n{"id":2,"title":"v1","due_on":null,'
         '"tag_name":"v1","created_at":"2024-01-01"}', "lines.jsonl:2: is a release"),
        ("notes.zip", "PK", "archives can't be read; unpack it"),
        ("t.tar.gz", b"PK", "unpack it"),
        ("t.XML", "PK", "export CSV or JSON"),
    ],
)  # fmt: skip
def test_other_files_are_refused_by_name(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        imported(save(tmp_path, name, content), tmp_path / "work")


def test_a_ticket_of_another_file_is_not_replaced(tmp_path: Path) -> None:
    for name, year in (("a.csv", 2024), ("b.csv", 2023)):
        save(tmp_path / "saved", name, f"id,title,created_at\n1,a,{year}-01-01\n")
    with pytest.raises(DataError, match=r"b\.csv: ticket 1 has another time of creation in a\.csv"):
        imported(tmp_path / "saved", tmp_path / "work")


def test_links_and_columns_that_are_not_used(tmp_path: Path) -> None:
    """GitLab's id in its database is reported; remarks with semicolons are not Jira's comments."""
    folder, work = tmp_path / "saved", tmp_path / "work"
    save(
        folder, "a.jsonl", {"iid": 1, "title": "a", "created_at": DAYS[0], "duplicated_to_id": 501}
    )
    save(folder, "b.csv", "id,title,created,comment\n7,b,2024-01-01,called; no answer; again\n")
    warnings = " ".join(words for _, words in imported(folder, work).status.warnings)
    assert "1 to a ticket outside the import; first 1 to duplicated_to_id=501" in warnings
    assert "b.csv: no column for body, so texts are only titles; if there is one, give" in warnings
    assert stored(work, "SELECT * FROM comments") == []


def test_the_archive_of_an_ietf_group(tmp_path: Path) -> None:
    issue = {
        "number": 1,
        "title": "a",
        "state": "OPEN",
        "createdAt": DAYS[0],
        "author": "ana",
        "labels": [],
    }
    comment = {"author": "bo", "authorAssociation": "MEMBER", "body": "Seen.", "createdAt": DAYS[1]}
    pull = issue | {"number": 2, "state": "MERGED", "url": "https://github.com/wg/draft/pull/2"}
    archive = {
        "repo": "wg/draft",
        "issues": [issue | {"body": "b", "comments": [comment]}],
        "pulls": [pull],
    }
    work = tmp_path / "work"
    imported(save(tmp_path, "archive.json", archive), work)
    assert stored(work, "SELECT repo, author FROM issues WHERE number = 1") == [("wg/draft", "ana")]
    assert stored(work, "SELECT is_pull FROM issues WHERE number = 2") == [1]
    assert stored(work, "SELECT body FROM comments") == ["Seen."]
