"""Comments and labels over REST: written in memory, seen by all routes, and only by who may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from gis_builder._emulator import FaultPlan, Rule, Server, serve

ROCKET = "/repos/acme/rocket"


@pytest.fixture
def server(tiny_dump: Path) -> Iterator[Server]:
    with serve(tiny_dump) as running:
        yield running


def send(
    server: Server, method: str, path: str, body: Any = None, token: str | None = "any"
) -> requests.Response:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return requests.request(method, server.url + path, json=body, headers=headers, timeout=10)


def test_a_comment_is_written_seen_everywhere_and_removed(server: Server) -> None:
    path = f"{ROCKET}/issues/1/comments"
    last = f"{ROCKET}/issues/comments?page=2&per_page=100"
    assert send(server, "GET", last).json()[-1]["id"] == 1119
    done = send(server, "POST", path, {"body": "Hello"})
    assert (done.status_code, done.json()["body"], done.json()["id"]) == (201, "Hello", 1120)
    assert [item["body"] for item in send(server, "GET", path).json()] == ["Hello"]
    issue = send(server, "GET", f"{ROCKET}/issues/1").json()
    assert (issue["comments"], issue["updated_at"]) == (1, done.json()["created_at"])
    assert send(server, "GET", last).json()[-1]["id"] == 1120
    found = send(server, "GET", "/search/issues?q=hello+in:comments+repo:acme/rocket").json()
    assert [item["number"] for item in found["items"]] == [1]
    gone = f"{ROCKET}/issues/comments/1120"
    assert [send(server, "DELETE", gone).status_code for _ in range(2)] == [204, 404]
    assert send(server, "GET", path).json() == []


def test_a_label_is_put_on_once_and_told_as_an_event(server: Server) -> None:
    for _ in range(2):
        done = send(server, "POST", f"{ROCKET}/issues/1/labels", {"labels": ["maybe"]})
        assert (done.status_code, [label["name"] for label in done.json()]) == (200, ["bug", "maybe"])
    events = send(server, "GET", f"{ROCKET}/issues/1/events").json()
    assert [(event["event"], event["label"]["name"]) for event in events] == [("labeled", "maybe")]
    timeline = send(server, "GET", f"{ROCKET}/issues/1/timeline").json()
    assert [item["event"] for item in timeline] == ["labeled"]


@pytest.mark.parametrize(
    ("token", "path", "body", "status"),
    [
        (None, "/issues/1/comments", {"body": "x"}, 401),
        ("bad", "/issues/1/comments", {"body": "x"}, 401),
        ("noaccess", "/issues/1/comments", {"body": "x"}, 404),
        ("readonly", "/issues/1/comments", {"body": "x"}, 403),
        ("readonly", "/issues/1/labels", {"labels": ["x"]}, 403),
        ("any", "/issues/77/comments", {"body": "x"}, 404),
        ("any", "/issues/1/comments", {"body": ""}, 422),
        ("any", "/issues/1/comments", {"body": "x" * 65_537}, 422),
        ("any", "/issues/1/labels", ["x"], 422),
        ("any", "/issues/1", {"state": "closed"}, 404),
    ],
)
def test_who_may_not_write_and_what_is_none(
    server: Server, token: str | None, path: str, body: Any, status: int
) -> None:
    assert send(server, "POST", ROCKET + path, body, token).status_code == status
    assert send(server, "GET", f"{ROCKET}/issues/1/comments").json() == []


@pytest.mark.parametrize(("arrives", "comments"), [(True, 1), (False, 0)])
def test_an_answer_can_be_lost_of_what_was_done(tiny_dump: Path, arrives: bool, comments: int) -> None:
    rule = Rule.model_validate({"kind": "502", "on": "write", "at": [1], "arrives": arrives})
    with serve(tiny_dump, faults=FaultPlan(rules=(rule,))) as server:
        path = f"{ROCKET}/issues/1/comments"
        assert send(server, "GET", path).status_code == 200
        assert send(server, "POST", path, {"body": "x"}).status_code == 502
        assert len(send(server, "GET", path).json()) == comments
