"""Every query is one that GitHub's published schema takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate

from gis_builder.crawling.github.queries import INTROSPECTION, GraphQuery, Queries, Search, Server
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.store import TopUp
from gis_builder.store.records import IssueRef
from tests.support.github.graphql_api import build_schema as build_own

OFFICIAL = Path(__file__).parents[3] / "shared" / "github"
HOSTILE = 'a"b\\c\n\N{ROCKET}'
REFS = [IssueRef("acme/fuel", 2), IssueRef("acme/rocket", 1), IssueRef("acme/rocket", 7)]


# Our own is the test server's, written by hand; test_server_schema.py compares it with the published one.
@pytest.fixture(scope="module", params=["own", "published"])
def plain(request: pytest.FixtureRequest) -> GraphQLSchema:
    return official() if request.param == "published" else build_own(without_duplicate_of=True)


@pytest.fixture(scope="module", params=["own", "published"])
def extended(request: pytest.FixtureRequest) -> GraphQLSchema:
    return official("schema-extensions.graphql") if request.param == "published" else build_own()


def official(*extensions: str) -> GraphQLSchema:
    files = [OFFICIAL / name for name in ("schema.graphql", *extensions)]
    if not all(file.exists() for file in files):
        pytest.skip("GitHub's published schema is not at ../shared/github")
    return build_schema("\n".join(file.read_text("utf-8") for file in files), assume_valid=True)


def every_query(server: Server) -> list[GraphQuery[Any]]:
    queries = Queries(CrawlSettings(label_query=HOSTILE), server)
    top_ups = [
        TopUp(REFS[0], part, HOSTILE if part != "labels" else "", 1)
        for part in ("comments", "events", "labels")
    ]
    return [
        INTROSPECTION,
        queries.repositories(["acme/fuel", "acme/rocket"]),
        queries.searches([Search(HOSTILE), Search("is:issue", HOSTILE)]),
        queries.issues(REFS, with_thread=True),
        queries.issues(REFS, with_thread=False),
        queries.listing("acme/fuel", 49, None),
        queries.listing("acme/fuel", 49, HOSTILE, since="2020-01-01T00:00:00Z"),
        queries.top_ups("acme/fuel", top_ups),
    ]


def test_queries_for_a_server_with_the_new_fields(extended: GraphQLSchema) -> None:
    server = Server(duplicate_of=True, closed_duplicate_of=True, enable_duplicate=True)
    for query in every_query(server):
        assert validate(extended, parse(query.text)) == []


def test_queries_for_a_server_without_them(plain: GraphQLSchema) -> None:
    for query in every_query(Server()):
        assert validate(plain, parse(query.text)) == []


def test_aliases_group_issues_by_repository() -> None:
    query = Queries(CrawlSettings(), Server()).issues(REFS, with_thread=False).text
    assert query.count("repository(owner:") == 2
    assert 'r1: repository(owner: "acme", name: "rocket"' in query
    assert "i7: issueOrPullRequest(number: 7)" in query
