"""The test server against GitHub's documentation: prices, limits, refusals and search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests
from graphql import get_operation_ast, parse, validate

from tests.support.github import Options, Server, serve
from tests.support.github.graphql_api import build_schema, price
from tests.support.github.search import Search
from tests.support.github.trackers import Catalogue

ROCKET = 'repository(owner: "acme", name: "rocket")'
ISSUES = f"{{ {ROCKET} {{ issues(first: 50) {{ pageInfo {{ endCursor }} nodes {{ number }} }} }} }}"


def post(server: Server, query: str = ISSUES, token: str = "any") -> requests.Response:
    headers = {"Authorization": f"bearer {token}"}
    return requests.post(f"{server.url}/graphql", json={"query": query}, headers=headers, timeout=10)


def rocket(server: Server, fields: str) -> dict[str, Any]:
    answer = post(server, f"{{ {ROCKET} {{ {fields} }} }}").json()
    assert "errors" not in answer, answer
    return answer["data"]["repository"]


def refusal(server: Server, fields: str) -> dict[str, Any]:
    return post(server, f"{{ {ROCKET} {{ {fields} }} }}").json()["errors"][0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            """{ search(type: ISSUE, query: "x", first: 100) { nodes { ... on Issue {
            comments(last: 30) { nodes { body } } timelineItems(last: 20) { nodes { __typename } }
            labels(first: 10) { nodes { name } } } } } }""",
            (301, 3, 6100),
        ),
        (  # GitHub's own example: 100 repositories, 50 issues, 60 labels
            """{ search(type: ISSUE, query: "x", first: 100) { nodes { ... on Issue { repository {
            issues(first: 50) { nodes { labels(first: 60) { nodes { name } } } } } } } } }""",
            (5101, 51, 100 + 5_000 + 300_000),
        ),
        (
            """{ repository(owner: "a", name: "b") { ...R } } fragment R on Repository { issues(first: 7) {
            nodes { comments(last: 3) { totalCount } } } }""",
            (8, 1, 28),
        ),
        ('{ __type(name: "Issue") { fields { name } } viewer { login } }', (0, 1, 0)),
    ],
)
def test_prices_by_hand(query: str, expected: tuple[int, int, int]) -> None:
    schema, document = build_schema(), parse(query)
    assert validate(schema, document) == []
    operation = get_operation_ast(document)
    assert operation is not None
    cost = price(schema, document, operation, {})
    assert (cost.requests, cost.points, cost.nodes) == expected


def test_queries_that_are_refused(tiny: Server) -> None:
    heavy = "issues(first: 100) { nodes { repository { issues(first: 100) { nodes { comments(last: 60) { "
    heavy += "totalCount"
    assert refusal(tiny, heavy + " } } } } } }")["type"] == "MAX_NODE_LIMIT_EXCEEDED"
    assert refusal(tiny, "stars")["message"] == "Field 'stars' doesn't exist on type 'Repository'"
    assert post(tiny, token="bad").status_code == 401
    assert post(tiny, token="noaccess").json()["data"]["repository"] is None


@pytest.fixture(scope="module")
def search(tiny_dump: Path) -> Search:
    return Search(Catalogue([tiny_dump]))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("is:issue", [9, 6, 5, 4, 2, 1]),
        ("is:pr", [3]),
        ("is:issue is:closed", [9, 6, 4, 2]),
        ('label:"DUPLICATE"', [2]),
        ("reason:duplicate", [6, 2]),
        ("created:2020-01-02T00:00:00Z..2020-01-05T23:00:00Z", [5, 4, 3, 2]),
        ("created:<=2020-01-02T12:00:00Z", [2, 1]),
        ("created:>=2020-01-06T00:00:00Z", [9, 6]),
        ('"duplicate of" in:comments is:issue', [2]),
        ('"DUPLICATE, of" is:issue', [2]),
        ("crash in:title", [1]),
        ("crash in:body", []),
    ],
)
def test_search(search: Search, query: str, found: list[int]) -> None:
    assert [hit.issue.number for hit in search.run(f"repo:acme/rocket {query}")] == found


def test_a_spent_limit_answers_200(tiny_dump: Path) -> None:
    with serve(tiny_dump, options=Options(points=2, window_s=600)) as server:
        answers = [post(server) for _ in range(3)]
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
        assert answers[2].status_code == 200
        assert answers[2].json()["errors"][0]["type"] == "RATE_LIMITED"
        assert (server.stats.points, server.stats.requests) == (2, 3)
