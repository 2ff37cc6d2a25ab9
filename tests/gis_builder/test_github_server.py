"""The test server against GitHub's documentation: prices and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from graphql import get_operation_ast, parse, validate

from tests.support.github import Server
from tests.support.github.graphql_api import build_schema, price

ROCKET = 'repository(owner: "acme", name: "rocket")'
ISSUES = f"{{ {ROCKET} {{ issues(first: 50) {{ pageInfo {{ endCursor }} nodes {{ number }} }} }} }}"


def post(server: Server, query: str = ISSUES, token: str = "any") -> requests.Response:
    headers = {"Authorization": f"bearer {token}"}
    return requests.post(f"{server.url}/graphql", json={"query": query}, headers=headers, timeout=10)


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
