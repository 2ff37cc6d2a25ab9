"""Exports of trackers, each with two tickets of which the second duplicates the first, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gis_builder.crawling.import_dump import import_dump
from gis_builder.store import Store
from pairkit import DataError

DAYS = ("2024-01-30T10:00:00Z", "2024-01-31T10:00:00Z")
DEVOPS = "https://dev.azure.com/o/_apis/wit/workItems/"
LAUNCHPAD = "https://api.launchpad.net/1.0/bugs/"
YOUTRACK = {"name": "Duplicate", "sourceToTarget": "duplicates", "targetToSource": "is duplicated by"}


def two(*names: str, **more: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Two tickets with these names of id, title, body and time, and further keys."""
    values = (("1", "2"), ("It prints twice", "Two slips"), ("Since Monday.", "Same slip."), DAYS)
    columns = dict(zip(names, values, strict=True)) | more
    return [{name: own[n] for name, own in columns.items() if own[n] is not None} for n in (0, 1)]


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

READ: dict[str, Any] = {
    "youtrack.json": two(
        *("idReadable", "summary", "description", "created"),
        created=(1706608800000, 1706695200000),
        links=(
            [{"direction": "INWARD", "linkType": YOUTRACK, "issues": [{"idReadable": "2"}]}],
            [{"direction": "BOTH", "linkType": {"name": "Relates"}, "issues": [{"idReadable": "9"}]}],
        ),
        customFields=([], [{"name": "State", "value": {"name": "Duplicate"}}]),
    ),
    "redmine.json": {"issues": REDMINE, "total_count": 2},
    "redmine.csv": "#,Subject,Description,Created,Related issues\n"
    "1,It prints twice,Since Monday.,01/30/2024 10:00 AM,Related to #2\n"
    '2,Two slips,Same slip.,01/31/2024 10:00 AM,"Related to #9, Duplicates #1"\n',
    "azure.json": {
        "value": [{"id": one.pop("id"), "relations": one.pop("relations"), "fields": one} for one in AZURE]
    },
    "servicenow.json": {
        "result": two(
            *("number", "short_description", "description", "opened_at"),
            duplicate_of=("", {"display_value": "1", "link": "https://acme.example.com/api"}),
        )
    },
    "launchpad.json": {
        "entries": two(
            *("id", "title", "description", "date_created"), duplicate_of_link=(None, f"{LAUNCHPAD}1")
        )
    },
    "mantis.json": {"issues": MANTIS},
    "bitbucket.json": {
        "issues": BITBUCKET,
        "comments": [{"issue": "2", "content": "Duplicate of #1", "created_on": DAYS[1]}],
    },
    "linear.csv": "ID,Title,Description,Created,Duplicate of\n"
    "T-1,It prints twice,Since Monday.,Tue Jan 30 2024 10:00:00 GMT+0000 (GMT+00:00),\n"
    "T-2,Two slips,Same slip.,Wed Jan 31 2024 11:00:00 GMT+0100 (Mitteleuropäische Zeit),T-1\n",
    "jira.csv": "Issue key,Summary,Description,Created,Inward issue link (Duplicate),Comment,Comment\n"
    "T-1,It prints twice,Since Monday.,30/Jan/24 10:00 AM,T-2,,\n"
    "T-2,Two slips,Same slip.,31/Jan/24 10:00 AM,,31/Jan/24 11:00 AM;ana;Seen.,\n",
    "items.json": {"data": {"items": two("id", "title", "body", "createdAt", duplicateOf=("", "#1"))}},
    "gitlab/issues.ndjson": "\n".join(map(json.dumps, GITLAB)),
}


def save(root: Path, name: str, content: Any) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", READ)
def test_exports_are_read(tmp_path: Path, store: Store, name: str) -> None:
    path = save(tmp_path, name, READ[name])
    for other in ("merge_requests", "milestones") if "/" in name else ():
        save(path.parent, f"{other}.ndjson", {**GITLAB[0], "created_at": "2023-01-01", "notes": []})
    messages: list[str] = []
    (row,) = import_dump(path.parent if "/" in name else path, store, messages.append)
    first, second = store.threads(row.full_name)
    assert [thread.issue.created_at for thread in (first, second)] == list(DAYS)
    assert [thread.issue.body for thread in (first, second)] == ["Since Monday.", "Same slip."]
    assert (first.issue.state, second.issue.state_reason) == ("open", "duplicate")
    seen = {comment.body for comment in second.comments}
    assert seen <= {"Seen.", "Duplicate of #1"}
    assert bool(seen) is (name in ("redmine.json", "mantis.json", "bitbucket.json", "jira.csv"))
    if name != "bitbucket.json":  # whose duplicates have no link, only a state
        assert second.issue.duplicate_of == first.issue.ref
    assert sum(message.endswith("skipped") for message in messages) == 2 * ("/" in name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mr.json", two(*NAMES, source_branch=("a", "b")), "a merge request"),
        ("ms.json", two(*NAMES, expired=(False, False)), "a milestone"),
        ("tasks.json", {"entries": [{"title": "Bug #1", "bug_link": LAUNCHPAD}]}, "a task of Launchpad"),
        ("board.json", {"cards": [], "lists": []}, "of Trello"),
        ("phabricator.json", {"result": {"data": [{"phid": "PHID-TASK-1", "fields": {}}]}}, "of Phabricator"),
        ("gh.csv", "number,title,created_at,pull_request\n1,a,2024-01-01,\n", "a row of GitHub's issues"),
        ("asana.csv", "Task ID,Created At,Name\n1,2024-01-01,a\n", "give columns={'title': 'NAME'}"),
        ("lines.jsonl", '{"id":1,"title":"a","created_at":"2024-01-01"}\n{"id":2,"title":"v1","due_on":null,'
         '"tag_name":"v1","created_at":"2024-01-01"}', "lines.jsonl:2: is a release"),
        ("notes.zip", "PK", "archives can't be read; unpack it"),
    ],
)  # fmt: skip
def test_other_files_are_refused_by_name(
    tmp_path: Path, store: Store, name: str, content: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        import_dump(save(tmp_path, name, content), store, lambda _: None)


def test_a_ticket_of_another_file_is_not_replaced(tmp_path: Path, store: Store) -> None:
    for name, year in (("a.csv", 2024), ("b.csv", 2023)):
        save(tmp_path, name, f"id,title,created_at\n1,a,{year}-01-01\n")
    with pytest.raises(DataError, match=r"b\.csv: ticket 1 has another time of creation in a\.csv"):
        import_dump(tmp_path, store, lambda _: None)


def test_links_and_columns_that_are_not_used(tmp_path: Path, store: Store) -> None:
    """GitLab's id in its database is reported; remarks with semicolons are not Jira's comments."""
    save(tmp_path, "a.jsonl", {"iid": 1, "title": "a", "created_at": DAYS[0], "duplicated_to_id": 501})
    save(tmp_path, "b.csv", "id,title,created,comment\n7,b,2024-01-01,called; no answer; again\n")
    messages: list[str] = []
    (row,) = import_dump(tmp_path, store, messages.append)
    assert any("1 to a ticket outside the import; first 1 to duplicated_to_id=501" in one for one in messages)
    assert [thread.comments for thread in store.threads(row.full_name)] == [(), ()]


def test_the_archive_of_an_ietf_group(tmp_path: Path, store: Store) -> None:
    issue = {
        "number": 1,
        "title": "a",
        "state": "OPEN",
        "author": "ana",
        "labels": ["x"],
        "createdAt": DAYS[0],
    }
    comment = {"author": "bo", "authorAssociation": "MEMBER", "body": "Seen.", "createdAt": DAYS[1]}
    pull = issue | {"number": 2, "state": "MERGED", "url": "https://github.com/wg/draft/pull/2"}
    archive = {"repo": "wg/draft", "issues": [issue | {"body": "b", "comments": [comment]}], "pulls": [pull]}
    import_dump(save(tmp_path, "archive.json", archive), store, lambda _: None)
    (thread,) = store.threads("wg/draft")
    assert (thread.issue.author, thread.issue.labels) == ("ana", ("x",))
    assert [one.body for one in thread.comments] == ["Seen."]
