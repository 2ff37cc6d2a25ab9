from __future__ import annotations

from typing import Any

import pytest

from gis_builder.github.parse import next_top_up, parse_issue, parse_pull, parse_thread, text_of
from gis_builder.records import Comment, Event, IssueRef
from gis_builder.store import TopUp
from pairkit.errors import BadReply

HOME = {"nameWithOwner": "acme/rocket"}
REF = IssueRef("acme/rocket", 4)


def connection(*nodes: Any, total: int | None = None, before: str | None = None) -> dict[str, Any]:
    return {
        "totalCount": len(nodes) if total is None else total,
        "pageInfo": {"hasPreviousPage": before is not None, "startCursor": before},
        "nodes": list(nodes),
    }


def node(**changes: Any) -> dict[str, Any]:
    return {
        "__typename": "Issue",
        "number": 4,
        "title": "Crash",
        "body": "It \x00 does\r\n",
        "state": "CLOSED",
        "stateReason": "NOT_PLANNED",
        "author": {"__typename": "Bot", "login": "helper"},
        "authorAssociation": "NONE",
        "createdAt": "2020-01-01T00:00:00Z",
        "updatedAt": "2020-01-02T00:00:00Z",
        "closedAt": "2020-01-02T00:00:00Z",
        "repository": HOME,
        "comments": connection(),
        "events": connection(),
        "labels": connection(),
        **changes,
    }


def closing(actor: str | None, **more: Any) -> dict[str, Any]:
    return {
        "__typename": "ClosedEvent",
        "createdAt": "2020-01-02T00:00:00Z",
        "actor": {"login": actor} if actor else None,
        "stateReason": "DUPLICATE",
        **more,
    }


def test_a_thread() -> None:
    target = {"__typename": "PullRequest", "number": 9, "repository": {"nameWithOwner": "acme/fuel"}}
    parsed = parse_thread(
        node(
            duplicateOf={"number": 1, "repository": HOME},
            labels=connection({"name": "z"}, {"name": "a"}),
            comments=connection(
                {
                    "fullDatabaseId": "3000000001",  # beyond 32 bits, as new comments are
                    "author": None,
                    "authorAssociation": "OWNER",
                    "createdAt": "2020-01-01T01:00:00Z",
                    "body": None,
                }
            ),
            events=connection(closing("ann"), closing("bob", duplicateOf=target)),
        )
    )
    thread = parsed.thread
    assert parsed.top_ups == ()
    assert thread.comments == (Comment(3000000001, None, "OWNER", "2020-01-01T01:00:00Z", ""),)
    assert thread.events[1] == Event(
        "closed",
        "bob",
        "2020-01-02T00:00:00Z",
        IssueRef("acme/fuel", 9),
        target_is_pull=True,
        state_reason="duplicate",
    )
    issue = thread.issue
    assert (issue.state, issue.state_reason, issue.closed_by, issue.is_bot) == (
        "closed",
        "not_planned",
        "bob",
        True,
    )
    assert (issue.labels, issue.duplicate_of) == (("a", "z"), IssueRef("acme/rocket", 1))
    assert issue.body == "It \x00 does\r\n"


def test_an_open_issue_was_closed_by_nobody_even_if_it_was_closed_once() -> None:
    issue = parse_thread(node(state="OPEN", closedAt=None, events=connection(closing("ann")))).thread.issue
    assert issue.closed_by is None


def test_nested_connections_that_came_in_part_are_topped_up() -> None:
    comments = connection(total=57, before="c")
    labels = connection({"name": "a"}, total=3)  # short, without a sign of it
    parsed = parse_thread(node(comments=comments, labels=labels))
    assert parsed.top_ups == (TopUp(REF, "comments", "c", 0), TopUp(REF, "labels", "", 1))


def test_topping_up_ends_when_nothing_more_comes() -> None:
    assert next_top_up(REF, "events", connection(total=5), have=3) is None
    assert next_top_up(REF, "events", connection({}, {}, total=5), have=3) is None
    assert next_top_up(REF, "events", connection({}, total=5, before="x"), have=3) == TopUp(
        REF, "events", "x", 4
    )


def test_a_pull_request_keeps_its_title_only() -> None:
    pull = parse_pull(node(closed=True))
    assert (pull.is_pull, pull.title, pull.body, pull.state) == (True, "Crash", "", "closed")


@pytest.mark.parametrize("field", ["title", "author", "state", "repository", "authorAssociation"])
def test_a_reply_without_what_was_asked_for_is_named(field: str) -> None:
    broken = node()
    del broken[field]
    with pytest.raises(BadReply, match=field):
        parse_issue(broken)


def test_texts() -> None:
    assert text_of(None) == ""
    assert text_of("\N{ROCKET}") == "\N{ROCKET}"
    assert text_of("half \ud83d pair") == "half ? pair"
