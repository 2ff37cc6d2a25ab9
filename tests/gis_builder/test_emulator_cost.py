from __future__ import annotations

from typing import Any

import pytest
from graphql import get_operation_ast, parse, validate

from gis_builder._emulator.cost import Price, price
from gis_builder._emulator.schema import build_schema

SCHEMA = build_schema()


def price_of(query: str, **variables: Any) -> Price:
    document = parse(query)
    assert validate(SCHEMA, document) == []
    operation = get_operation_ast(document)
    assert operation is not None
    return price(SCHEMA, document, operation, variables)


def test_threads_inside_a_search() -> None:
    cost = price_of(
        """{ search(type: ISSUE, query: "x", first: 100) { nodes { ... on Issue {
            comments(last: 30) { nodes { body } } timelineItems(last: 20) { nodes { __typename } }
            labels(first: 10) { nodes { name } } } } } }"""
    )
    assert (cost.requests, cost.points, cost.nodes, cost.largest_page) == (301, 3, 6100, 100)


def test_three_levels_as_in_githubs_guide() -> None:
    # Its example has 100 repositories, 50 issues and 60 labels: 5,101 requests, 51 points.
    cost = price_of(
        """{ search(type: ISSUE, query: "x", first: 100) { nodes { ... on Issue { repository {
            issues(first: 50) { nodes { labels(first: 60) { nodes { name } } } } } } } } }"""
    )
    assert (cost.requests, cost.points, cost.nodes) == (5101, 51, 100 + 5_000 + 300_000)


@pytest.mark.parametrize(("requests", "points"), [(0, 1), (1, 1), (149, 1), (150, 2), (249, 2), (301, 3)])
def test_points_are_rounded_and_at_least_one(requests: int, points: int) -> None:
    assert Price(requests=requests).points == points


def test_aliases_add_up() -> None:
    thread = "{ ... on Issue { comments(last: 30) { nodes { body } } } }"
    aliases = " ".join(f"i{n}: issueOrPullRequest(number: {n}) {thread}" for n in range(100))
    cost = price_of(f'{{ repository(owner: "a", name: "b") {{ {aliases} }} }}')
    assert (cost.requests, cost.points, cost.nodes) == (100, 1, 3000)


def test_fragments_and_variables_count() -> None:
    cost = price_of(
        """query($n: Int = 7, $m: Int) { repository(owner: "a", name: "b") { ...R } }
        fragment R on Repository { issues(first: $n) { edges { node { ...I } } } }
        fragment I on Issue { comments(last: $m) { totalCount nodes { body } } }""",
        m=3,
    )
    assert (cost.requests, cost.nodes, cost.largest_page) == (1 + 7, 7 + 21, 7)


def test_what_is_skipped_is_free() -> None:
    query = """query($no: Boolean!) { repository(owner: "a", name: "b") {
        labels(first: 5) @skip(if: $no) { totalCount }
        issues(first: 5) @include(if: $no) { totalCount } } }"""
    assert price_of(query, no=True).nodes == 5
    assert price_of(query, no=False).requests == 1


def test_nodes_by_id_are_parents() -> None:
    cost = price_of(
        "query($ids: [ID!]!) { nodes(ids: $ids) { ... on Issue { labels(first: 10) { totalCount } } } }",
        ids=["I_1", "I_2", "I_3"],
    )
    assert (cost.requests, cost.nodes) == (3, 30)


def test_introspection_is_free() -> None:
    assert price_of('{ __type(name: "Issue") { fields { name } } viewer { login } }') == Price()
