"""Nodes that a real server sends and the test server does not; complete threads equal an import."""

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
DAY = "2020-01-02T00:00:00Z"


def connection(*nodes: Any, total: int | None = None, before: str | None = None) -> dict[str, Any]:
    page = {"hasPreviousPage": before is not None, "startCursor": before}
    return {"totalCount": len(nodes) if total is None else total, "pageInfo": page, "nodes": list(nodes)}


def fields(**changes: Any) -> dict[str, Any]:
    texts = {"title": "Crash", "body": "It \x00 does\r\n", "state": "CLOSED", "stateReason": "NOT_PLANNED"}
    author = {"author": {"__typename": "Bot", "login": "helper"}, "authorAssociation": "NONE"}
    times = dict.fromkeys(("createdAt", "updatedAt", "closedAt"), DAY)
    lists = dict.fromkeys(("comments", "events", "labels"), connection())
    return {"__typename": "Issue", "number": 4, "repository": HOME} | texts | author | times | lists | changes


def node(**changes: Any) -> IssueNode:
    return convert(fields(**changes), IssueNode)


def closing(actor: str, **more: Any) -> dict[str, Any]:
    kind = {"__typename": "ClosedEvent", "createdAt": DAY, "stateReason": "DUPLICATE"}
    return kind | {"actor": {"login": actor}} | more


def test_a_thread() -> None:
    target = {"__typename": "PullRequest", "number": 9, "repository": {"nameWithOwner": "acme/fuel"}}
    comment = {"fullDatabaseId": "3000000001", "author": None, "authorAssociation": "OWNER", "body": None}
    thread, top_ups = parse_thread(
        node(
            duplicateOf={"number": 1, "repository": HOME},
            labels=connection({"name": "z"}, {"name": "a"}),
            comments=connection(comment | {"createdAt": DAY}),  # an id of more than 32 bits
            events=connection(closing("ann"), closing("bob", duplicateOf=target)),
        )
    )
    assert top_ups == []
    assert thread.comments == (Comment(3000000001, None, "OWNER", DAY, ""),)
    fuel = IssueRef("acme/fuel", 9)
    assert thread.events[1] == Event(
        "closed", "bob", DAY, fuel, target_is_pull=True, state_reason="duplicate"
    )
    issue = thread.issue
    assert (issue.state, issue.state_reason, issue.closed_by) == ("closed", "not_planned", "bob")
    assert (issue.is_bot, issue.body, issue.labels) == (True, "It \x00 does\r\n", ("a", "z"))
    assert issue.duplicate_of == IssueRef("acme/rocket", 1)


def test_a_reopened_issue_has_no_closer() -> None:
    thread, _ = parse_thread(node(state="OPEN", closedAt=None, events=connection(closing("ann"))))
    assert thread.issue.closed_by is None


def test_top_ups_of_incomplete_lists_end_at_an_empty_page() -> None:
    labels = connection({"name": "a"}, total=3)  # incomplete, but without a previous page
    _, top_ups = parse_thread(node(comments=connection(total=57, before="c"), labels=labels))
    assert top_ups == [TopUp(REF, "comments", "c", 0), TopUp(REF, "labels", "", 1)]

    def again(*nodes: Any, before: str | None = None) -> TopUp | None:
        came = convert(connection(*nodes, total=5, before=before), NodeConnection[EventNode])
        return next_top_up(REF, "events", came, have=3)

    assert again() is None
    assert again({"__typename": "X"}, {"__typename": "X"}) is None
    assert again({"__typename": "X"}, before="x") == TopUp(REF, "events", "x", 4)


def test_only_the_title_of_a_pull_request_is_kept() -> None:
    pull = parse_pull(convert(fields(closed=True, __typename="PullRequest"), FoundPull))
    assert (pull.is_pull, pull.title, pull.body, pull.state) == (True, "Crash", "", "closed")


def test_invalid_nodes_are_named() -> None:
    for field in ("title", "author", "state", "repository", "authorAssociation"):
        with pytest.raises(Malformed, match=field):
            convert({name: value for name, value in fields().items() if name != field}, IssueNode)
    with pytest.raises(BadReply, match=r"acme/rocket#4: .*\(comments or events are missing"):
        parse_thread(node(comments=None))
    with pytest.raises(BadReply, match=r"acme/rocket#4: .*a time outside the years"):
        parse_issue(node(createdAt="0001-01-01T00:00:00Z"))
    with pytest.raises(BadReply, match=r"acme/rocket#4: .*without a time"):
        parse_thread(node(events=connection({"__typename": "ClosedEvent"})))
