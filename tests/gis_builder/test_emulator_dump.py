from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gis_builder._dump import closing_event, find_dumps
from gis_builder._emulator.load import load_trackers
from gis_builder._emulator.tracker import Catalogue, Event, Issue
from pairkit.errors import DataError

from .conftest import closed, comment, event, issue, write_lines, write_tracker


def test_finds_every_tracker_below_a_folder(tiny_dump: Path) -> None:
    assert [dump.repo for dump in find_dumps(tiny_dump)] == [
        "acme/fuel",
        "acme/quiet",
        "acme/rocket",
        "acme/vault",
        "acme/void",
    ]


def test_reads_rows_with_their_repository(tiny_dump: Path) -> None:
    rocket = find_dumps(tiny_dump / "acme/rocket")[0]
    assert [row.number for row in rocket.issues()] == [1, 2, 3, 4, 5, 6, 9]
    assert {row.repo for row in rocket.comments()} == {"acme/rocket"}
    assert rocket.has_events
    assert [(row.number, row.value["status"]) for row in rocket.missing()] == [
        (7, "deleted"),
        (8, "transferred"),
    ]


def test_reads_gzipped_raw_objects_of_several_repositories(tmp_path: Path) -> None:
    rows = [issue("a/b", 1, **closed("max", 3)), issue("c/d", 1)]
    with gzip.open(tmp_path / "issues.raw.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (dump,) = find_dumps(tmp_path)
    assert dump.repo is None
    assert not dump.has_events
    assert [(row.repo, row.number) for row in dump.issues()] == [("a/b", 1), ("c/d", 1)]
    first, second = load_trackers([tmp_path])
    assert [item.kind for item in first.issues[1].events] == ["closed"]  # made up from closed_at
    assert second.issues[1].events == []


def test_closing_event_of_an_open_issue_is_none() -> None:
    assert closing_event(issue("a/b", 1)) is None
    made = closing_event(issue("a/b", 1, **closed("max", 3, "not_planned")))
    assert made is not None
    assert (made["actor"]["login"], made["state_reason"]) == ("max", "not_planned")


@pytest.mark.parametrize(
    ("stem", "line", "says"),
    [
        ("issues", "{", "not JSON"),
        ("issues", "[]", "expected a JSON object"),
        ("issues", json.dumps(issue("a/b", 0)), "number: "),
        ("issues", json.dumps(issue("a/b", 1) | {"number": 2**31}), "number: "),
        ("issues", json.dumps(issue("a/b", 1) | {"number": True}), "number: "),
        ("issues", json.dumps(issue("a/b", 1, title=None)), "title: "),
        ("issues", json.dumps(issue("a/b", 1, body=3)), "body: "),
        ("issues", json.dumps(issue("a/b", 1, state="shut")), "state: "),
        ("issues", json.dumps(issue("a/b", 1, created_at="yesterday")), "created_at: "),
        (
            "issues",
            json.dumps(issue("a/b", 1, created_at="2020-06-31T00:00:00Z")),
            "created_at: ",
        ),
        ("issues", json.dumps(issue("a/b", 1, user="ann")), "user: "),
        ("issues", json.dumps(issue("a/b", 1, user={"login": "\ud800"})), "is no character"),
        ("issues", json.dumps(issue("a/b", 1, labels=["bug"])), "labels"),
        ("issues", json.dumps(issue("x/y", 1)), "belongs to x/y, but repo.json says a/b"),
        ("comments", json.dumps(comment("a/b", 1, 5, "x") | {"id": "5"}), "id: "),
        ("comments", json.dumps(comment("a/b", 1, 5, "x") | {"id": 2**63}), "id: "),
        ("comments", json.dumps(comment("a/b", 1, 5, "x") | {"issue_url": "?"}), "issue_url: "),
        ("events", json.dumps(event("a/b", 1, "renamed", 2)), "event: "),
        ("events", json.dumps(event("a/b", 1, "closed", 2, canonical="#3")), "canonical: "),
        ("missing", json.dumps({"number": 3, "status": "lost"}), "status: "),
        ("missing", json.dumps({"number": 3, "status": "transferred"}), "to: "),
    ],
)
def test_a_bad_line_is_an_error_with_file_and_row(tmp_path: Path, stem: str, line: str, says: str) -> None:
    write_tracker(tmp_path, "a/b", issues=[issue("a/b", 1)])
    path = tmp_path / "a/b" / f"{stem}.jsonl"
    good = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(f"{good}\n{line}\n", encoding="utf-8")
    row = good.count("\n") + 2
    with pytest.raises(DataError) as caught:
        load_trackers([tmp_path])
    assert str(caught.value).startswith(f"{path}:{row}: ")
    assert says in str(caught.value)


def test_bytes_that_are_not_utf8_are_an_error_with_row(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_bytes(json.dumps(issue("a/b", 1)).encode() + b'\n{"title": "\xff"}\n')
    with pytest.raises(DataError, match=r"issues\.jsonl:2: "):
        load_trackers([tmp_path])


def test_a_cut_gzip_is_an_error_with_file(tmp_path: Path) -> None:
    path = tmp_path / "issues.raw.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(issue("a/b", 1)).encode() + b"\n")[:-12])
    with pytest.raises(DataError, match=r"jsonl\.gz:1: not readable .*fix the file"):
        load_trackers([tmp_path])


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"full_name": "rocket"}', "[" * 100_000], ids=range(5))
def test_a_bad_repo_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "repo.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"repo\.json"):
        find_dumps(tmp_path)


def test_a_folder_without_a_tracker_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no tracker"):
        find_dumps(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        find_dumps(tmp_path / "absent")


def test_two_files_of_one_stem_are_an_error(tmp_path: Path) -> None:
    for name in ("issues.jsonl", "issues.raw.jsonl"):
        write_lines(tmp_path / name, [issue("a/b", 1)])
    with pytest.raises(DataError, match="keep one of them"):
        load_trackers([tmp_path])


def test_rows_of_unknown_issues_are_counted(tmp_path: Path) -> None:
    write_tracker(tmp_path, "a/b", issues=[issue("a/b", 1)], comments=[comment("a/b", 99, 1, "to nobody")])
    (tracker,) = load_trackers([tmp_path])
    assert tracker.orphans == 1


def test_a_repeated_comment_is_kept_once_in_order_of_id(tiny_dump: Path, tmp_path: Path) -> None:
    write_tracker(
        tmp_path,
        "a/b",
        issues=[issue("a/b", 1)],
        comments=[comment("a/b", 1, 9, "late"), comment("a/b", 1, 2, "old"), comment("a/b", 1, 2, "new")],
    )
    (tracker,) = load_trackers([tmp_path])
    assert [(item.id, item.body) for item in tracker.issues[1].comments] == [(2, "new"), (9, "late")]


def test_replicas_share_texts_but_not_ids(tiny_dump: Path) -> None:
    catalogue = Catalogue(load_trackers([tiny_dump]), replicate=3)
    one, three = catalogue.find("acme/rocket"), catalogue.find("ACME/Rocket-3")
    assert one is not None
    assert three is not None
    assert one.tracker is three.tracker
    assert one.unique_id(11) != three.unique_id(11)
    assert one.id != three.id
    followed = catalogue.follow("acme/fuel#1", three)
    assert followed is not None
    assert followed[0].name == "acme/fuel-3"
    assert catalogue.find("acme/missile-3") is three


def test_following_ends_in_a_ring_of_transfers(tmp_path: Path) -> None:
    for name, other in (("a/b", "c/d"), ("c/d", "a/b")):
        moved = {"number": 5, "status": "transferred", "to": f"{other}#5"}
        write_tracker(tmp_path, name, issues=[issue(name, 1)], missing=[moved])
    catalogue = Catalogue(load_trackers([tmp_path]))
    start = catalogue.find("a/b")
    assert start is not None
    assert catalogue.follow("a/b#5", start) is None


@pytest.mark.parametrize(
    ("state", "events", "canonical"),
    [
        ("closed", [("marked_as_duplicate", "a/b#1")], "a/b#1"),
        ("open", [("marked_as_duplicate", "a/b#1")], None),
        ("closed", [("marked_as_duplicate", "a/b#1"), ("marked_as_duplicate", "a/b#2")], "a/b#2"),
        ("closed", [("marked_as_duplicate", "a/b#1"), ("unmarked_as_duplicate", "a/b#1")], None),
        (
            "closed",
            [
                ("marked_as_duplicate", "a/b#1"),
                ("marked_as_duplicate", "a/b#2"),
                ("unmarked_as_duplicate", "a/b#2"),
            ],
            "a/b#1",
        ),
        ("closed", [("marked_as_duplicate", "a/b#1"), ("unmarked_as_duplicate", None)], None),
    ],
)
def test_canonical_is_the_last_mark_that_stands(
    state: str, events: list[tuple[str, str | None]], canonical: str | None
) -> None:
    thread = Issue(
        id=1,
        number=9,
        title="",
        body=None,
        state=state,
        state_reason=None,
        author=None,
        association="NONE",
        labels=(),
        created_at="",
        updated_at="",
        closed_at=None,
        closed_by=None,
        events=[Event(kind, None, "", canonical=target) for kind, target in events],
    )
    assert thread.canonical == canonical
