"""Every query is valid in GitHub's published schema."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate
from graphql.utilities import find_breaking_changes

from gis_builder.crawling.github.graphql_queries import INTROSPECTION, GraphQuery, Queries, Server
from gis_builder.settings.crawl_settings import CrawlSettings
from gis_builder.store import CrawlTask, TopUp
from gis_builder.store.issue_records import IssueRef
from tests.support.github.graphql_api import SCHEMA_TEXT
from tests.support.github.graphql_api import build_schema as build_own

HOSTILE = 'a"b\\c\n\N{ROCKET}'
REFS = [IssueRef("acme/fuel", 2), IssueRef("acme/rocket", 1), IssueRef("acme/rocket", 7)]


def every_query(server: Server) -> list[GraphQuery[Any]]:
    queries = Queries(CrawlSettings(label_query=HOSTILE), server)
    top_ups = [
        TopUp(REFS[0], part, HOSTILE if part != "labels" else "", 1)
        for part in ("comments", "events", "labels")
    ]
    return [
        INTROSPECTION,
        queries.repositories(["acme/fuel", "acme/rocket"]),
        queries.searches([CrawlTask("a/b", "search", HOSTILE), CrawlTask("a/b", "search", "x", HOSTILE)]),
        queries.issues(REFS, with_thread=True),
        queries.issues(REFS, with_thread=False),
        queries.listing("acme/fuel", 49, None),
        queries.listing("acme/fuel", 49, HOSTILE, since="2020-01-01T00:00:00Z"),
        queries.top_ups("acme/fuel", top_ups),
    ]


NEWEST = Server(duplicate_of=True, closed_duplicate_of=True, enable_duplicate=True)


@pytest.mark.parametrize("server", [NEWEST, Server()], ids=["new fields", "without"])
def test_queries_are_valid_on_the_test_server(server: Server) -> None:
    own = build_own(without_duplicate_of=server is not NEWEST)
    for query in every_query(server):
        assert validate(own, parse(query.text)) == []


def test_the_test_schema_is_compatible_with_github(official: GraphQLSchema) -> None:
    assert find_breaking_changes(build_schema(SCHEMA_TEXT), official) == []


def test_queries_are_valid_on_github(official: GraphQLSchema) -> None:
    for query in [*every_query(NEWEST), *every_query(Server())]:
        assert validate(official, parse(query.text)) == []


def test_aliases_group_issues_by_repository() -> None:
    query = Queries(CrawlSettings(), Server()).issues(REFS, with_thread=False).text
    assert query.count("repository(owner:") == 2
    assert 'r1: repository(owner: "acme", name: "rocket"' in query
    assert "i7: issueOrPullRequest(number: 7)" in query
