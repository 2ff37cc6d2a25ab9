from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import requests

from gis_builder._emulator import FaultPlan, Rule, Server, read_plan, serve
from gis_builder._emulator.faults import Injector, Kind
from pairkit.errors import ConfigError

ISSUES = """{ repository(owner: "acme", name: "rocket") { issues(first: 50) {
    pageInfo { endCursor } nodes { number } } } }"""
ALIASES = """{ repository(owner: "acme", name: "rocket") {
    i1: issue(number: 1) { number } i2: issue(number: 2) { number } } }"""


def post(server: Server, query: str = ISSUES) -> requests.Response:
    return requests.post(
        f"{server.url}/graphql", json={"query": query}, headers={"Authorization": "bearer any"}, timeout=10
    )


def get(server: Server, path: str = "/repos/acme/rocket/issues") -> requests.Response:
    return requests.get(server.url + path, headers={"Authorization": "bearer any"}, timeout=10)


def always(kind: str, **settings: Any) -> FaultPlan:
    shared = {key: settings.pop(key) for key in ("retry_after_s", "stall_s") if key in settings}
    return FaultPlan(rules=(Rule(kind=Kind(kind), at=(1,), **settings),), **shared)


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_fails_once(tiny_dump: Path, status: int) -> None:
    with serve(tiny_dump, faults=always(str(status))) as server:
        failed = post(server)
        assert failed.status_code == status
        assert failed.headers["content-type"] == "text/html"
        assert failed.headers["x-ratelimit-used"] == "1"  # it is charged, as GitHub charges timeouts
        assert post(server).json()["data"]
        assert server.stats.faults == {str(status): 1}


def test_a_faked_limit_on_graphql_and_rest(tiny_dump: Path) -> None:
    plan = always("rate_limited_200", retry_after_s=3, on="graphql")
    with serve(tiny_dump, faults=plan) as server:
        limited = post(server)
        assert limited.status_code == 200
        assert limited.json()["errors"][0]["type"] == "RATE_LIMITED"
        assert limited.headers["x-ratelimit-remaining"] == "0"
        assert 2 <= int(limited.headers["x-ratelimit-reset"]) - time.time() <= 5
        assert post(server).headers["x-ratelimit-used"] == "1"  # the limited one was not charged
    with serve(tiny_dump, faults=always("rate_limited_200", error_type="RATE_LIMIT")) as server:
        assert post(server).json()["errors"][0]["type"] == "RATE_LIMIT"
    with serve(tiny_dump, faults=always("rate_limited_200")) as server:
        assert get(server).status_code == 403


@pytest.mark.parametrize(
    ("kind", "status"), [("secondary_403", 403), ("secondary_200", 200), ("too_many_429", 429)]
)
@pytest.mark.parametrize("is_told", [True, False])
def test_secondary_limits_with_and_without_a_time(
    tiny_dump: Path, kind: str, status: int, is_told: bool
) -> None:
    with serve(tiny_dump, faults=always(kind, retry_after=is_told, retry_after_s=7)) as server:
        limited = post(server)
        assert limited.status_code == status
        assert limited.headers.get("retry-after") == ("7" if is_told else None)
        assert limited.headers["x-ratelimit-remaining"] == "5000"
        assert "secondary rate limit" in limited.text


def test_partial_data_comes_with_an_error(tiny_dump: Path) -> None:
    with serve(tiny_dump, faults=always("partial")) as server:
        answer = post(server).json()
        nodes = answer["data"]["repository"]["issues"]["nodes"]
        assert len(nodes) == 6
        assert nodes.count(None) == 1
        assert "Something went wrong while executing your query" in answer["errors"][0]["message"]
        assert "type" not in answer["errors"][0]
    with serve(tiny_dump, faults=always("partial", error_type="RESOURCE_LIMITS_EXCEEDED")) as server:
        answer = post(server, ALIASES).json()
        assert sorted(answer["data"]["repository"].values(), key=str) != [{"number": 1}, {"number": 2}]
        assert answer["errors"][0]["type"] == "RESOURCE_LIMITS_EXCEEDED"
    with serve(tiny_dump, faults=always("partial")) as server:
        assert get(server).status_code == 502


def test_truncated_json_is_a_whole_http_answer(tiny_dump: Path) -> None:
    with serve(tiny_dump, faults=always("truncated")) as server:
        cut = post(server)
        assert cut.status_code == 200
        assert len(cut.content) == int(cut.headers["content-length"])
        with pytest.raises(requests.exceptions.JSONDecodeError):
            cut.json()


def test_dropped_connections(tiny_dump: Path) -> None:
    plan = FaultPlan(seed=3, rules=(Rule(kind=Kind.DROPPED, probability=1.0),))
    failures = set()
    with serve(tiny_dump, faults=plan) as server:
        for _ in range(12):
            with pytest.raises(requests.RequestException) as caught:
                post(server)
            failures.add(type(caught.value).__name__)
    assert failures == {"ConnectionError", "ChunkedEncodingError"}  # before the answer, and in it


def test_a_stalled_connection_ends(tiny_dump: Path) -> None:
    with serve(tiny_dump, faults=always("stalled", stall_s=0.3)) as server:
        started = time.monotonic()
        with pytest.raises(requests.ConnectionError):
            post(server)
        assert time.monotonic() - started >= 0.3
        assert post(server).json()["data"]


def test_closing_does_not_wait_for_a_stall(tiny_dump: Path) -> None:
    server = serve(tiny_dump, faults=always("stalled", stall_s=60))
    with pytest.raises(requests.ReadTimeout):
        requests.get(f"{server.url}/repos/acme/rocket", timeout=0.2)
    started = time.monotonic()
    server.close()
    assert time.monotonic() - started < 50  # a stall lasts 60


def test_heavy_queries_time_out(tiny_dump: Path) -> None:
    plan = FaultPlan(rules=(Rule(kind=Kind.BAD_GATEWAY, page_over=49),))
    with serve(tiny_dump, faults=plan) as server:
        assert [post(server).status_code for _ in range(2)] == [502, 502]
        assert post(server, ISSUES.replace("50", "49")).status_code == 200
        assert get(server).status_code == 200


def test_rules_keep_to_their_kind_of_request(tiny_dump: Path) -> None:
    plan = FaultPlan(rules=(Rule(kind=Kind.BAD_GATEWAY, on="rest", at=(2,)),))
    with serve(tiny_dump, faults=plan) as server:
        seen = [
            post(server),
            get(server),
            post(server),
            get(server, "/search/issues?q=x"),
            get(server),
            get(server),
        ]
        assert [response.status_code for response in seen] == [200, 200, 200, 200, 502, 200]


def strikes(plan: FaultPlan, requests_: int = 400) -> list[Kind | None]:
    injector = Injector(plan)
    faults = [injector.next_fault("graphql") for _ in range(requests_)]
    return [fault.rule.kind if fault else None for fault in faults]


def test_the_seed_decides() -> None:
    rules = (Rule(kind=Kind.BAD_GATEWAY, probability=0.2), Rule(kind=Kind.PARTIAL, probability=0.1, limit=5))
    once = strikes(FaultPlan(seed=1, rules=rules))
    assert once == strikes(FaultPlan(seed=1, rules=rules))
    assert once != strikes(FaultPlan(seed=2, rules=rules))
    assert 50 <= once.count(Kind.BAD_GATEWAY) <= 110  # 80 expected
    assert once.count(Kind.PARTIAL) == 5
    alone = strikes(FaultPlan(seed=1, rules=rules[:1]))
    assert [kind for kind in alone if kind] == [kind for kind in once if kind is Kind.BAD_GATEWAY]


def test_a_plan_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('seed = 4\n[[rules]]\nkind = "dropped"\nat = [2, 3]\n', encoding="utf-8")
    assert read_plan(path) == FaultPlan(seed=4, rules=(Rule(kind=Kind.DROPPED, at=(2, 3)),))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[rules]]\nkind = "dropped"\n', "a rule needs probability, at or page_over"),
        ('[[rules]]\nkind = "flood"\nprobability = 1\n', "'flood'"),
        ('[[rules]]\nkind = "502"\nprobability = 2\n', "less than or equal to 1"),
        ('[[rules]]\nkind = "502"\nodds = 2\nat = [1]\n', "unknown setting 'rules.0.odds'"),
        ("seed = ", "not readable as TOML"),
    ],
)
def test_a_malformed_plan_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        read_plan(path)
