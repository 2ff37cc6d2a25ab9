"""The test server does as GitHub documents: prices, pages, search, limits; and fails as it is asked to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from graphql import get_operation_ast, parse, validate

from pairkit.app.errors import ConfigError
from tests.support.github import FaultPlan, Options, Rule, Server, read_plan, serve
from tests.support.github.faults import Injector, Kind
from tests.support.github.graphql_api import Price, build_schema, price
from tests.support.github.search import Search, SearchRefusal, phrase_test
from tests.support.github.trackers import Catalogue

ROCKET = 'repository(owner: "acme", name: "rocket")'
ISSUES = f"{{ {ROCKET} {{ issues(first: 50) {{ pageInfo {{ endCursor }} nodes {{ number }} }} }} }}"
ALIASES = f"""{{ {ROCKET} {{ i1: issueOrPullRequest(number: 1) {{ __typename }}
    i2: issueOrPullRequest(number: 2) {{ __typename }} }} }}"""


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


@pytest.mark.parametrize(("requests_", "points"), [(0, 1), (149, 1), (150, 2), (249, 2), (301, 3)])
def test_points_are_rounded_and_at_least_one(requests_: int, points: int) -> None:
    assert Price(requests=requests_).points == points


def test_an_issue_with_its_thread(tiny: Server) -> None:
    found = rocket(
        tiny,
        """i: issueOrPullRequest(number: 6) { ... on Issue { title stateReason author { __typename login }
        told: stateReason(enableDuplicate: true) duplicateOf { repository { nameWithOwner } }
        comments(last: 9) { nodes { body fullDatabaseId } }
        timelineItems(last: 9, itemTypes: [CLOSED_EVENT]) { totalCount nodes { __typename
        ... on ClosedEvent { actor { login } duplicateOf { ... on Issue { number } } } } } } }""",
    )["i"]
    assert (found["stateReason"], found["told"]) == ("NOT_PLANNED", "DUPLICATE")
    assert found["author"] == {"__typename": "Bot", "login": "helper"}
    assert found["duplicateOf"]["repository"]["nameWithOwner"] == "acme/fuel"
    assert found["comments"]["nodes"] == [{"body": "same as acme/fuel#1", "fullDatabaseId": "13"}]
    event = {"__typename": "ClosedEvent", "actor": {"login": "max"}, "duplicateOf": {"number": 1}}
    assert found["timelineItems"] == {"totalCount": 1, "nodes": [event]}


def test_numbers_that_are_deleted_or_moved(tiny: Server) -> None:
    asked = " ".join(
        f"i{n}: issueOrPullRequest(number: {n}) {{ __typename ... on Issue {{ number }} }}" for n in (3, 7, 8)
    )
    answer = post(tiny, f"{{ {ROCKET} {{ {asked} }} }}").json()
    moved = {"__typename": "Issue", "number": 2}
    assert answer["data"]["repository"] == {"i3": {"__typename": "PullRequest"}, "i7": None, "i8": moved}
    (error,) = answer["errors"]
    assert (error["type"], error["path"]) == ("NOT_FOUND", ["repository", "i7"])


def test_pages_from_either_end(tiny: Server) -> None:
    def page(arguments: str) -> dict[str, Any]:
        fields = f"""i: issueOrPullRequest(number: 4) {{ ... on Issue {{ comments({arguments}) {{
            pageInfo {{ hasNextPage hasPreviousPage startCursor endCursor }}
            nodes {{ fullDatabaseId }} }} }} }}"""
        return rocket(tiny, fields)["i"]["comments"]

    def ids(*pages: dict[str, Any]) -> list[int]:
        return [int(node["fullDatabaseId"]) for one in pages for node in one["nodes"]]

    start = page("first: 100")
    rest = page(f'first: 100, after: "{start["pageInfo"]["endCursor"]}"')
    end = page("last: 50")
    before = page(f'last: 100, before: "{end["pageInfo"]["startCursor"]}"')
    assert ids(start, rest) == ids(before, end) == list(range(1000, 1120))
    assert (start["pageInfo"]["hasNextPage"], rest["pageInfo"]["hasNextPage"]) == (True, False)
    assert (end["pageInfo"]["hasPreviousPage"], before["pageInfo"]["hasPreviousPage"]) == (True, False)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ("issues(first: 101) { nodes { number } }", "EXCESSIVE_PAGINATION"),
        ("issues(first: -1) { totalCount }", "EXCESSIVE_PAGINATION"),
        ("issues { nodes { number } }", "MISSING_PAGINATION_BOUNDARIES"),
        ('issues(first: 1, after: "x") { totalCount }', "INVALID_CURSOR_ARGUMENTS"),
    ],
)
def test_refused_pages(tiny: Server, fields: str, kind: str) -> None:
    assert refusal(tiny, fields)["type"] == kind


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


def test_what_a_search_refuses_or_can_not_see(search: Search) -> None:
    assert [search.run(f"repo:acme/{name} is:issue") for name in ("vault", "nothing", "missile")] == [
        [],
        [],
        [],
    ]
    with pytest.raises(SearchRefusal, match="longer than 256"):
        search.run("repo:acme/rocket " + "x" * 257)


@pytest.mark.parametrize(
    ("phrase", "text", "says"),
    [
        ("dup of", "A DUP\nof #1", True),
        ("dup of", "dup ofs", False),
        ("dup", "dupe", False),
        ("重复", "这是重复的", True),
        ("c++", "written in C", True),
    ],
)
def test_phrases_match_whole_words(phrase: str, text: str, says: bool) -> None:
    assert phrase_test(phrase)(text) is says


def test_a_spent_limit_answers_200(tiny_dump: Path) -> None:
    with serve(tiny_dump, options=Options(points=2, window_s=600)) as server:
        answers = [post(server) for _ in range(3)]
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
        assert answers[2].status_code == 200
        assert answers[2].json()["errors"][0]["type"] == "RATE_LIMITED"
        assert (server.stats.points, server.stats.requests) == (2, 3)


def test_the_lists_of_the_rest_api(tiny: Server) -> None:
    headers = {"Authorization": "token any"}
    listing = f"{tiny.url}/api/v3/repos/acme/rocket/issues?state=all&direction=asc&per_page=4"
    first = requests.get(listing, headers=headers, timeout=10)
    second = requests.get(first.links["next"]["url"], headers=headers, timeout=10)
    assert [issue["number"] for issue in first.json() + second.json()] == [1, 2, 3, 4, 5, 6, 9]
    comments = f"{tiny.url}/repos/acme/rocket/issues/2/comments"
    assert [one["id"] for one in requests.get(comments, headers=headers, timeout=10).json()] == [11, 12]


def always(kind: str, **settings: Any) -> FaultPlan:
    shared = {key: settings.pop(key) for key in ("retry_after_s", "stall_s") if key in settings}
    return FaultPlan(rules=(Rule(kind=Kind(kind), at=(1,), **settings),), **shared)


@pytest.fixture
def failing(tiny_dump: Path) -> Iterator[Any]:
    servers: list[Server] = []

    def start(plan: FaultPlan) -> Server:
        servers.append(serve(tiny_dump, faults=plan))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_fails_once(failing, status: int) -> None:
    server = failing(always(str(status)))
    failed = post(server)
    assert (failed.status_code, failed.headers["content-type"]) == (status, "text/html")
    assert failed.headers["x-ratelimit-used"] == "1"  # it is charged, as GitHub charges timeouts
    assert post(server).json()["data"]
    assert server.stats.faults == {str(status): 1}


def test_a_faked_limit_is_not_charged(failing) -> None:
    server = failing(always("rate_limited_200", retry_after_s=3))
    limited = post(server)
    assert limited.json()["errors"][0]["type"] == "RATE_LIMITED"
    assert limited.headers["x-ratelimit-remaining"] == "0"
    assert 2 <= int(limited.headers["x-ratelimit-reset"]) - time.time() <= 5
    assert post(server).headers["x-ratelimit-used"] == "1"


@pytest.mark.parametrize(
    ("kind", "status"), [("secondary_403", 403), ("secondary_200", 200), ("too_many_429", 429)]
)
@pytest.mark.parametrize("has_time", [True, False])
def test_secondary_limits(failing, kind: str, status: int, has_time: bool) -> None:
    limited = post(failing(always(kind, retry_after=has_time, retry_after_s=7)))
    assert limited.status_code == status
    assert limited.headers.get("retry-after") == ("7" if has_time else None)
    assert "secondary rate limit" in limited.text


def test_partial_data_comes_with_an_error(failing) -> None:
    answer = post(failing(always("partial"))).json()
    assert answer["data"]["repository"]["issues"]["nodes"].count(None) == 1
    assert "Something went wrong while executing your query" in answer["errors"][0]["message"]
    answer = post(failing(always("partial", error_type="RESOURCE_LIMITS_EXCEEDED")), ALIASES).json()
    assert None in answer["data"]["repository"].values()
    assert answer["errors"][0]["type"] == "RESOURCE_LIMITS_EXCEEDED"


def test_truncated_json_is_a_whole_http_answer(failing) -> None:
    cut = post(failing(always("truncated")))
    assert (cut.status_code, len(cut.content)) == (200, int(cut.headers["content-length"]))
    with pytest.raises(requests.exceptions.JSONDecodeError):
        cut.json()


def test_dropped_connections(failing) -> None:
    server = failing(FaultPlan(seed=3, rules=(Rule(kind=Kind.DROPPED, probability=1.0),)))
    failures = set()
    for _ in range(12):
        with pytest.raises(requests.RequestException) as caught:
            post(server)
        failures.add(type(caught.value).__name__)
    assert failures == {"ConnectionError", "ChunkedEncodingError"}  # before the answer, and in it


def test_a_stalled_connection_ends(failing) -> None:
    server = failing(always("stalled", stall_s=0.3))
    with pytest.raises(requests.ConnectionError):
        post(server)
    assert post(server).json()["data"]


def test_heavy_queries_time_out(failing) -> None:
    server = failing(FaultPlan(rules=(Rule(kind=Kind.BAD_GATEWAY, page_over=49),)))
    assert [post(server).status_code for _ in range(2)] == [502, 502]
    assert post(server, ISSUES.replace("50", "49")).status_code == 200


def strikes(plan: FaultPlan, count: int = 400) -> list[Kind | None]:
    injector = Injector(plan)
    faults = [injector.next_fault() for _ in range(count)]
    return [fault.rule.kind if fault else None for fault in faults]


def test_the_seed_decides() -> None:
    rules = (
        Rule(kind=Kind.BAD_GATEWAY, probability=0.2),
        Rule(kind=Kind.PARTIAL, probability=0.1, limit=5),
    )
    once = strikes(FaultPlan(seed=1, rules=rules))
    assert once == strikes(FaultPlan(seed=1, rules=rules))
    assert once != strikes(FaultPlan(seed=2, rules=rules))
    assert 50 <= once.count(Kind.BAD_GATEWAY) <= 110  # 80 expected
    assert once.count(Kind.PARTIAL) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[rules]]\nkind = "dropped"\n', "a rule needs probability, at or page_over"),
        ('[[rules]]\nkind = "flood"\nprobability = 1\n', "'flood'"),
        ("seed = ", "not readable as TOML"),
    ],
)
def test_plans_from_files(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('seed = 4\n[[rules]]\nkind = "dropped"\nat = [2, 3]\n', encoding="utf-8")
    assert read_plan(path) == FaultPlan(seed=4, rules=(Rule(kind=Kind.DROPPED, at=(2, 3)),))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        read_plan(path)
