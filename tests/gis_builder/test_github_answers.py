"""Responses are classified correctly, and no response raises an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gis_builder.crawling.github.responses import classify, requested_wait_s

NOON = "Tue, 03 Nov 2026 12:00:00 GMT"
NOON_S = 1793707200  # the same moment

GATEWAY_PAGE = "<html><h1>502 Bad Gateway</h1></html>"
WRONG = "Something went wrong while executing your query on 2026-01-01."
SPENT = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOON_S + 90), "Date": NOON}


def error(type_: str, message: str = "no", path: list[Any] | None = None) -> dict[str, Any]:
    return {"type": type_, "message": message, "path": path or []}


def graphql(data: Any, *errors: dict[str, Any]) -> str:
    return json.dumps({"data": data, "errors": list(errors)} if errors else {"data": data})


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "wait_s"),
    [
        (200, {}, graphql({"a": 1}), "ok", None),
        (200, {}, graphql({"a": None, "b": 1}, error("NOT_FOUND", path=["a"])), "partial", None),
        (200, {}, graphql({"a": None}, error("NOT_FOUND", path=["a"])), "not_found", None),
        (200, {}, graphql(None, error("FORBIDDEN")), "forbidden", None),
        (200, SPENT, graphql(None, error("RATE_LIMITED")), "rate_limited", 90.0),
        (200, {}, graphql({"a": 1}, error("RATE_LIMIT")), "rate_limited", None),
        (
            200,
            {},
            graphql(None, error("", "You have exceeded a secondary rate limit")),
            "secondary",
            None,
        ),
        (
            200,
            {},
            graphql(None, error("", "This may be the result of a timeout")),
            "too_heavy",
            None,
        ),
        (200, {}, graphql(None, error("", WRONG)), "too_heavy", None),
        (200, {}, graphql(None, error("RESOURCE_LIMITS_EXCEEDED")), "too_heavy", None),
        (200, {}, graphql(None, error("INTERNAL")), "transient", None),
        (200, {}, graphql(None, error("undefinedField", "no such field")), "bad_reply", None),
        (200, {}, graphql(None), "bad_reply", None),
        (200, {}, '{"data": {"a": 1', "bad_reply", None),
        (200, {}, "[]", "bad_reply", None),
        (401, {}, '{"message": "Bad credentials"}', "auth", None),
        (403, SPENT, '{"message": "API rate limit exceeded for user"}', "rate_limited", 90.0),
        (
            403,
            {"Retry-After": "7"} | SPENT,
            '{"message": "secondary rate limit"}',
            "secondary",
            7.0,
        ),
        (
            403,
            {},
            '{"message": "You have triggered an abuse detection mechanism"}',
            "secondary",
            None,
        ),
        (
            403,
            {},
            '{"message": "Resource not accessible by personal access token"}',
            "forbidden",
            None,
        ),
        (429, {}, "", "secondary", None),
        (
            429,
            {"retry-after": "Tue, 03 Nov 2026 12:00:30 GMT", "date": NOON},
            "",
            "secondary",
            30.0,
        ),
        (404, {}, '{"message": "Not Found"}', "not_found", None),
        (410, {}, '{"message": "This issue was deleted"}', "not_found", None),
        (502, {}, GATEWAY_PAGE, "too_heavy", None),
        (504, {}, "", "too_heavy", None),
        (503, {"Retry-After": "5"}, "", "transient", 5.0),
        (500, {}, "", "transient", None),
        (301, {"Location": "https://elsewhere.example"}, "", "bad_reply", None),
        (400, {}, '{"message": "Problems parsing JSON"}', "bad_reply", None),
    ],
)
def test_kinds_of_responses(
    status: int, headers: dict[str, str], body: str, kind: str, wait_s: float | None
) -> None:
    answer = classify(status, headers, body.encode())
    assert (answer.kind.value, answer.wait_s) == (kind, wait_s)


def test_only_refused_queries_are_final() -> None:
    assert not classify(200, {}, b'{"data": {"a').final
    assert classify(200, {}, graphql(None, error("undefinedField")).encode()).final
    assert classify(400, {}, b"").final


def test_waits_use_the_clock_of_the_server() -> None:
    spent = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOON_S)}
    assert requested_wait_s(spent | {"date": NOON}) == 0.0
    assert requested_wait_s(spent) is None
    assert (
        requested_wait_s({"x-ratelimit-remaining": "5", "x-ratelimit-reset": "1", "date": NOON})
        is None
    )
    assert requested_wait_s({"retry-after": "-3"}) == 0.0
    for nonsense in ("9" * 400, "1e400", "nan", "Mon, 99 Foo 99999999999 99:99:99 GMT", "\ud800"):
        assert requested_wait_s({"retry-after": nonsense, "date": NOON}) is None
