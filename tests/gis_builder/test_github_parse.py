from __future__ import annotations

from typing import Any

import pytest

from gis_builder.crawling.github.nodes import EventNode, FoundPull, IssueNode, NodeConnection
from gis_builder.crawling.github.parse import next_top_up, parse_issue, parse_pull, parse_thread
from gis_builder.store import TopUp
from gis_builder.store.decoding import Malformed, convert
from gis_builder.store.issue_records import Comment, Event, IssueRef
from pairkit import BadReply

HOME = {"nameWithOwner": "acme/rocket"}
REF = IssueRef("acme/rocket", 4)


def connection(*nodes: Any, total: int | None = None, before: str | None = None) -> dict[str, Any]:
    return {
        "totalCount": len(nodes) if total is None else total,
        "pageInfo": {"hasPreviousPage": before is not None, "startCursor": before},
        "nodes": list(nodes),
    }


def node(**changes: Any) -> IssueNode:
    return convert(fields(**changes), IssueNode)


def fields(**changes: Any) -> dict[str, Any]:
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
    thread, top_ups = parse_thread(
        node(
            duplicateOf={"number": 1, "repository": HOME},
            labels=connection({"name": "z"}, {"name": "a"}),
            comments=connection(
                {
                    "fullDatabaseId": "3000000001",  # more than 32 bits, like new comments
                    "author": None,
                    "authorAssociation": "OWNER",
                    "createdAt": "2020-01-01T01:00:00Z",
                    "body": None,
                }
            ),
            events=connection(closing("ann"), closing("bob", duplicateOf=target)),
        )
    )
    assert top_ups == []
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


def test_a_reopened_issue_has_no_closer() -> None:
    issue = parse_thread(node(state="OPEN", closedAt=None, events=connection(closing("ann"))))[0].issue
    assert issue.closed_by is None


def test_incomplete_connections_need_top_ups() -> None:
    comments = connection(total=57, before="c")
    labels = connection({"name": "a"}, total=3)  # incomplete, but without a previous page
    _, top_ups = parse_thread(node(comments=comments, labels=labels))
    assert top_ups == [TopUp(REF, "comments", "c", 0), TopUp(REF, "labels", "", 1)]


def test_top_ups_end_at_an_empty_page() -> None:
    def again(*nodes: Any, before: str | None = None) -> TopUp | None:
        came = convert(connection(*nodes, total=5, before=before), NodeConnection[EventNode])
        return next_top_up(REF, "events", came, have=3)

    assert again() is None
    assert again({"__typename": "X"}, {"__typename": "X"}) is None
    assert again({"__typename": "X"}, before="x") == TopUp(REF, "events", "x", 4)


def test_only_the_title_of_a_pull_request_is_kept() -> None:
    pull = parse_pull(convert(fields(closed=True, __typename="PullRequest"), FoundPull))
    assert (pull.is_pull, pull.title, pull.body, pull.state) == (True, "Crash", "", "closed")


@pytest.mark.parametrize("field", ["title", "author", "state", "repository", "authorAssociation"])
def test_a_missing_field_is_named(field: str) -> None:
    broken = fields()
    del broken[field]
    with pytest.raises(Malformed, match=field):
        convert(broken, IssueNode)


def test_inconsistent_nodes_are_bad_replies() -> None:
    with pytest.raises(BadReply, match=r"acme/rocket#4: .*\(comments or events are missing"):
        parse_thread(node(comments=None))
    with pytest.raises(BadReply, match=r"acme/rocket#4: .*a time outside the years"):
        parse_issue(node(createdAt="0001-01-01T00:00:00Z"))
    with pytest.raises(BadReply, match=r"acme/rocket#4: .*without a time"):
        parse_thread(node(events=connection({"__typename": "ClosedEvent"})))
