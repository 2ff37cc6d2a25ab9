from __future__ import annotations

from pathlib import Path

import requests
from hypothesis import given
from hypothesis import strategies as st

from gis_builder._emulator import FaultPlan, Options, serve
from gis_builder._emulator.limits import Allowance, RateLimits

ALLOWANCES = {"graphql": Allowance(10, 60.0), "search": Allowance(2, 6.5)}
HEADERS = {"Authorization": "bearer any"}
VIEWER = {"query": "{ viewer { login } rateLimit { cost limit used remaining resetAt nodeCount } }"}


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_window_begins_with_its_first_request_and_ends_whole() -> None:
    clock = Clock(1000.25)
    limits = RateLimits(ALLOWANCES, Allowance(60, 3600), clock=clock)
    assert limits.spend("t", "graphql", 3).headers == {
        "x-ratelimit-limit": "10",
        "x-ratelimit-remaining": "7",
        "x-ratelimit-reset": "1061",  # 1060.25, told in whole seconds
        "x-ratelimit-used": "3",
        "x-ratelimit-resource": "graphql",
    }
    clock.now = 1060.9
    assert limits.spend("t", "graphql", 9).remaining == 0
    clock.now = 1061.0
    assert limits.standing("t", "graphql").remaining == 10


def test_tokens_and_resources_have_their_own_limits() -> None:
    limits = RateLimits(ALLOWANCES, Allowance(60, 3600), clock=Clock(0.0))
    limits.spend("t", "graphql", 10)
    assert limits.standing("u", "graphql").remaining == 10
    assert limits.standing("t", "search").remaining == 2
    assert limits.standing(None, "graphql").limit == 60


@given(st.lists(st.integers(0, 20), max_size=20))
def test_remaining_and_used_make_the_limit(spent: list[int]) -> None:
    limits = RateLimits(ALLOWANCES, Allowance(60, 3600), clock=Clock(5.0))
    for points in spent:
        standing = limits.spend("t", "graphql", points)
        assert standing.used + standing.remaining == standing.limit
    assert limits.standing("t", "graphql").used == min(10, sum(spent))


def test_an_exhausted_graphql_limit_answers_200(tiny_dump: Path) -> None:
    with serve(tiny_dump, options=Options(points=2, window_s=600)) as server:
        answers = [
            requests.post(f"{server.url}/graphql", json=VIEWER, headers=HEADERS, timeout=10) for _ in range(3)
        ]
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
        limit = answers[0].json()["data"]["rateLimit"]
        assert (limit["cost"], limit["limit"], limit["used"], limit["remaining"]) == (1, 2, 1, 1)
        assert answers[2].status_code == 200
        assert answers[2].json()["errors"][0]["type"] == "RATE_LIMITED"
        assert server.stats.points == 2


def test_an_exhausted_rest_limit_answers_403(tiny_dump: Path) -> None:
    with serve(tiny_dump, options=Options(points=1, search_requests=1)) as server:
        for path, resource in (("/repos/acme/rocket", "core"), ("/search/issues?q=crash", "search")):
            url = server.url + path
            assert requests.get(url, headers=HEADERS, timeout=10).status_code == 200
            refused = requests.get(url, headers=HEADERS, timeout=10)
            assert refused.status_code == 403
            assert refused.headers["x-ratelimit-remaining"] == "0"
            assert refused.headers["x-ratelimit-resource"] == resource
            assert "API rate limit exceeded" in refused.json()["message"]


def test_a_dry_run_tells_the_price_only(tiny_dump: Path) -> None:
    query = """{ rateLimit(dryRun: true) { cost remaining nodeCount }
        search(type: ISSUE, query: "x", first: 100) { nodes { ... on Issue {
          labels(first: 10) { nodes { name } } comments(last: 1) { nodes { id } } } } } }"""
    with serve(tiny_dump) as server:
        answer = requests.post(f"{server.url}/graphql", json={"query": query}, headers=HEADERS, timeout=10)
        assert answer.json() == {"data": {"rateLimit": {"cost": 2, "remaining": 5000, "nodeCount": 1200}}}
        assert server.stats.points == 0


def test_a_skewed_clock_shows_in_date_and_reset(tiny_dump: Path) -> None:
    with serve(tiny_dump) as true, serve(tiny_dump, faults=FaultPlan(clock_skew_s=7200)) as skewed:
        resets = []
        for server in (true, skewed):
            response = requests.get(f"{server.url}/rate_limit", headers=HEADERS, timeout=10)
            resets.append(int(response.headers["x-ratelimit-reset"]))
        assert 7199 <= resets[1] - resets[0] <= 7201
