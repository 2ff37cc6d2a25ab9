"""Nodes that a real server may send and the test server does not; its threads equal those of an import."""

from gis_builder.crawling.github.nodes import IssueNode, parse_issue, parse_thread
from gis_builder.store.decoding import Malformed, convert
from gis_builder.store.issue_records import IssueRef
from pairkit import BadReply
from tests.support.shorthand import raises

HOME = {"nameWithOwner": "acme/rocket"}
DAY = "2020-01-02T00:00:00Z"


def connection(*nodes, total=None, before=None):
    page = {"hasPreviousPage": before is not None, "startCursor": before}
    return {
        "totalCount": len(nodes) if total is None else total,
        "pageInfo": page,
        "nodes": list(nodes),
    }


def fields(**changes):
    texts = {
        "title": "Crash",
        "body": "It \x00 does\r\n",
        "state": "CLOSED",
        "stateReason": "NOT_PLANNED",
    }
    author = {
        "author": {"__typename": "Bot", "login": "helper"},
        "authorAssociation": "NONE",
    }
    times = dict.fromkeys(("createdAt", "updatedAt", "closedAt"), DAY)
    lists = dict.fromkeys(("comments", "events", "labels"), connection())
    return (
        {"__typename": "Issue", "number": 4, "repository": HOME}
        | texts
        | author
        | times
        | lists
        | changes
    )


def node(**changes):
    return convert(fields(**changes), IssueNode)


def test_the_target_of_a_mark_may_be_a_pull_request():
    target = {
        "__typename": "PullRequest",
        "number": 9,
        "repository": {"nameWithOwner": "acme/fuel"},
    }
    mark = {
        "__typename": "MarkedAsDuplicateEvent",
        "createdAt": DAY,
        "actor": None,
        "canonical": target,
    }
    thread, _ = parse_thread(node(events=connection(mark)))
    (event,) = thread.events
    assert (event.target, event.target_is_pull, event.actor) == (
        IssueRef("acme/fuel", 9),
        True,
        None,
    )


def test_invalid_nodes_are_named():
    for field in ("title", "author", "state", "repository", "authorAssociation"):
        with raises(Malformed, match=field):
            convert(
                {name: value for name, value in fields().items() if name != field},
                IssueNode,
            )
    with raises(BadReply, match=r"acme/rocket#4: .*\(comments or events are missing"):
        parse_thread(node(comments=None))
    with raises(BadReply, match=r"acme/rocket#4: .*a time outside the years"):
        parse_issue(node(createdAt="0001-01-01T00:00:00Z"))
    with raises(BadReply, match=r"acme/rocket#4: .*without a time"):
        parse_thread(node(events=connection({"__typename": "ClosedEvent"})))
