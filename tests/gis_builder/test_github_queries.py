"""Queries are valid in the published schema; windows of searches lose no second and search none twice."""

from graphql import build_schema as build_text
from graphql import parse, validate
from graphql.utilities import find_breaking_changes
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.crawling.github.graphql_queries import INTROSPECTION, Queries, Server
from gis_builder.crawling.github.search import Window, split_window
from gis_builder.settings import CrawlSettings
from gis_builder.store import CrawlTask, TopUp
from gis_builder.store.issue_records import IssueRef
from tests.support.github.graphql_api import SCHEMA_TEXT, build_schema
from tests.support.shorthand import each_line, parametrize

HOSTILE = 'a"b\\c\n\N{ROCKET}'
REFS = [IssueRef("acme/fuel", 2), *(IssueRef("acme/rocket", n) for n in (1, 7))]


def every_query(server):
    queries = Queries(CrawlSettings(label_query=HOSTILE), server)
    after = {"comments": HOSTILE, "events": HOSTILE, "labels": ""}
    keys = [(HOSTILE,), ("x", HOSTILE)]
    top_ups = [TopUp(REFS[0], part, cursor, 1) for part, cursor in after.items()]
    return [
        INTROSPECTION,
        queries.repositories(["acme/fuel", "acme/rocket"]),
        queries.searches([CrawlTask("a/b", "search", *key) for key in keys]),
        queries.issues(REFS, with_thread=True),
        queries.issues(REFS, with_thread=False),
        queries.listing("acme/fuel", 49, None),
        queries.listing("acme/fuel", 49, HOSTILE, since="2020-01-01T00:00:00Z"),
        queries.top_ups("acme/fuel", top_ups),
    ]


NEWEST = Server(duplicate_of=True, closed_duplicate_of=True, enable_duplicate=True)


@parametrize("server", [NEWEST, Server()], ids=["new fields", "without"])
def test_queries_are_valid_on_the_test_server(server):
    own = build_schema(without_duplicate_of=server is not NEWEST)
    for query in every_query(server):
        assert validate(own, parse(query.text)) == []


def test_the_test_schema_is_compatible_with_github(official):
    assert find_breaking_changes(build_text(SCHEMA_TEXT), official) == []


def test_queries_are_valid_on_github(official):
    for query in [*every_query(NEWEST), *every_query(Server())]:
        assert validate(official, parse(query.text)) == []


@each_line("""
    root, url
    https://api.github.com | https://api.github.com/graphql
    http://127.0.0.1:8000/ | http://127.0.0.1:8000/graphql
    https://git.example/api/v3 | https://git.example/api/graphql
""")
def test_graphql_urls(root, url):
    assert CrawlSettings(api_url=root).graphql_url == url


SECONDS = st.integers(1_200_000_000, 1_900_000_000)
EDGES = st.none() | SECONDS


def holds(window, second):
    return (window.start or 0) <= second <= (window.end or 1 << 40)


@given(EDGES, EDGES, SECONDS, SECONDS, st.integers(1001, 10**6), SECONDS)
def test_split_windows_cover_every_second_once(start, end, first, last, count, second):
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end)
    window = Window(start, end)
    parts = split_window(window, count, 1000, first, last)
    if not parts:
        assert start == end
        return
    assert len(parts) >= 2
    assert sum(holds(part, second) for part in parts) == holds(window, second)
    for part in parts:
        for edge in filter(None, (part.start, part.end)):
            assert sum(holds(other, edge) for other in parts) == 1


@given(start=SECONDS, length=st.integers(0, 10**9))
def test_splitting_ends_at_single_seconds(start, length):
    window, depth = Window(start, start + length), 0
    while parts := split_window(window, 10**6, 1000, start, start + length):
        window, depth = parts[0], depth + 1
    assert window.start == window.end
    assert depth < 40
