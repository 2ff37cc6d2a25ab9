"""Responses are classified correctly; nodes that a real server may send and the test server does not."""

import json
from dataclasses import asdict

from gis_builder.crawling.github.exchange import classify, requested_wait_s
from gis_builder.crawling.github.nodes import IssueNode, parse_issue, parse_thread
from gis_builder.store import IssueRef, RateLimit
from gis_builder.store.decoding import Malformed, convert
from pairkit import BadReply
from tests.support.shorthand import each_line, raises

NOON = "Tue, 03 Nov 2026 12:00:00 GMT"
NOON_S = 1793707200  # the same moment

SPENT = {
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": str(NOON_S + 90),
    "date": NOON,
}


@each_line(
    """
        kind, wait_s, status, headers, body
        # kind | seconds to wait | status | headers | body
        ok |  | 200 |  | {"data": {"a": 1}}
        partial |  | 200 |  | {"data": {"a": null, "b": 1}, "errors": [{"type": "NOT_FOUND", "path": ["a"]}]}
        bad_reply |  | 200 |  | {"data": {"a": null}, "errors": [{"type": "NOT_FOUND", "path": ["a"]}]}
        forbidden |  | 200 |  | {"data": null, "errors": [{"type": "FORBIDDEN"}]}
        rate_limited | 90 | 200 | spent | {"data": null, "errors": [{"type": "RATE_LIMITED"}]}
        rate_limited |  | 200 |  | {"data": {"a": 1}, "errors": [{"type": "RATE_LIMIT"}]}
        rate_limited |  | 200 |  | {"data": null, "errors": [{"message": "You have exceeded a secondary rate limit"}]}
        too_heavy |  | 200 |  | {"data": null, "errors": [{"message": "This may be the result of a timeout"}]}
        too_heavy |  | 200 |  | {"errors": [{"message": "Something went wrong while executing your query"}]}
        too_heavy |  | 200 |  | {"data": null, "errors": [{"type": "RESOURCE_LIMITS_EXCEEDED"}]}
        transient |  | 200 |  | {"data": null, "errors": [{"type": "INTERNAL"}]}
        bad_reply |  | 200 |  | {"data": null, "errors": [{"type": "undefinedField", "message": "no such field"}]}
        damaged |  | 200 |  | {"data": null}
        damaged |  | 200 |  | {"data": {"a": 1
        damaged |  | 200 |  | []
        auth |  | 401 |  | {"message": "Bad credentials"}
        rate_limited | 90 | 403 | spent | {"message": "API rate limit exceeded for user"}
        rate_limited |  | 403 |  | {"message": "You have triggered an abuse detection mechanism"}
        forbidden |  | 403 |  | {"message": "Resource not accessible by personal access token"}
        rate_limited |  | 429 |  |
        bad_reply |  | 404 |  | {"message": "Not Found"}
        too_heavy |  | 502 |  | <html><h1>502 Bad Gateway</h1></html>
        too_heavy |  | 504 |  |
        transient | 5 | 503 | {"retry-after": "5"} |
        transient |  | 500 |  |
        bad_reply |  | 301 | {"location": "https://elsewhere.example"} |
        bad_reply |  | 400 |  | {"message": "Problems parsing JSON"}
    """,
    columns=5,
)
def test_kinds_of_responses(kind, wait_s, status, headers, body):
    given = SPENT if headers == "spent" else json.loads(headers or "{}")
    answer = classify(int(status), given, body.encode())
    assert answer.kind.value == kind
    assert answer.wait_s == (float(wait_s) if wait_s else None)


def test_a_limit_with_negative_numbers_can_be_stored():
    names = ("limit", "remaining", "reset")
    headers = dict.fromkeys((f"x-ratelimit-{name}" for name in names), "-5")
    answer = classify(200, headers, b'{"data": {"a": 1}}')
    assert convert(asdict(answer.rate_limit), RateLimit) == RateLimit(0, 0, 0)


def test_waits_use_the_clock_of_the_server():
    late = SPENT | {"x-ratelimit-reset": str(NOON_S)}
    assert requested_wait_s(late) == 0.0
    assert requested_wait_s(late | {"date": ""}) is None
    assert requested_wait_s(late | {"x-ratelimit-remaining": "5"}) is None
    nonsense = (
        "9" * 400,
        "1e400",
        "nan",
        "Mon, 99 Foo 99999999999 99:99:99 GMT",
        "\ud800",
    )
    waits = {
        "-3": 0.0,
        "7": 7.0,  # beside a spent limit
        "Tue, 03 Nov 2026 12:00:30 GMT": 30.0,
        **dict.fromkeys(nonsense, 90.0),
    }
    for after, wait_s in waits.items():
        assert requested_wait_s(SPENT | {"retry-after": after}) == wait_s


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
    texts = {"title": "Crash", "body": "It \x00 does\r\n", "authorAssociation": "NONE"}
    state = {"state": "CLOSED", "stateReason": "NOT_PLANNED"}
    head = {"__typename": "Issue", "number": 4, "repository": HOME}
    head["author"] = {"__typename": "Bot", "login": "helper"}
    times = dict.fromkeys(("createdAt", "updatedAt", "closedAt"), DAY)
    lists = dict.fromkeys(("comments", "events", "labels"), connection())
    return head | texts | state | times | lists | changes


def node(**changes):
    return convert(fields(**changes), IssueNode)


def test_the_target_of_a_mark_may_be_a_pull_request():
    target = {"__typename": "PullRequest", "number": 9, "repository": HOME}
    mark = {"__typename": "MarkedAsDuplicateEvent", "createdAt": DAY, "actor": None}
    thread, _ = parse_thread(node(events=connection(mark | {"canonical": target})))
    (event,) = thread.events
    assert (event.target, event.target_is_pull) == (IssueRef("acme/rocket", 9), True)
    assert event.actor is None


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
