"""Estimated costs of crawls, compared with manual results and with the test server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gis_builder import Plan
from gis_builder.crawling.crawl import crawl, crawlable, update
from gis_builder.crawling.crawl_plan import RepoPlan, hours, plan, price
from gis_builder.crawling.github import GitHub, Token
from gis_builder.settings import BuildSettings, CrawlSettings
from gis_builder.store import RepoOutcome, RepoRow, Store, Usage
from pairkit import ConfigError, RemoteError
from tests.support.github import serve

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
NAMES = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in SAMPLE.glob("*/*/repo.json"))
RUST = RepoRow("rust-lang/rust", RepoOutcome.OK, "rust-lang/rust", max_number=30_664, issue_count=15_813)


def settings(strategy: str, url: str = "http://x") -> BuildSettings:
    return BuildSettings(crawl=CrawlSettings(api_url=url, strategy=strategy))


def test_the_cost_of_a_sweep() -> None:
    # 15,813 / 49 = 322.7 pages, of 1 + 3 * 49 = 148 connections: a point each.
    # 316.3 / 49 = 6.5 queries for the beginnings of long threads.
    rust = price(RUST, settings("all"))
    assert (rust.points, rust.requests) == (323 + 7, 323 + 7)
    larger = BuildSettings(crawl=CrawlSettings(strategy="all", thread_batch=100))
    # 158.1 pages of 301 connections: three points each; 4 more queries of 100 connections.
    assert price(RUST, larger).points == 159 * 3 + 4


def test_the_cost_of_a_search() -> None:
    rust = price(RUST, settings("search"))
    assert 0.8 < rust.points / 139 < 1.2  # benchmarks/README.md
    small = price(RepoRow("a/b", RepoOutcome.OK, "a/b", issue_count=10, max_number=10), settings("search"))
    assert small.points < 20


def test_the_stricter_limit_decides_the_hours() -> None:
    assert hours(10_000, 100) == 2.0
    assert hours(100, 6000) == 2.0


@pytest.mark.parametrize("strategy", ["all", "search"])
def test_a_plan_of_the_sample(tmp_path: Path, strategy: str) -> None:
    names = [*NAMES, "lumenbase/lumen-tsdb", "acme/nowhere"]  # a former name, and a missing repository
    with serve(SAMPLE) as server:
        chosen = settings(strategy, server.url)

        def open_github(store: Store) -> GitHub:
            return GitHub(chosen.crawl, [Token("t", server.url)], store)

        planned = plan(names, chosen, open_github)
        assert planned.spent.requests == server.stats.requests
        before = server.stats.requests
        if strategy == "all":
            with Store.open(tmp_path / "store.sqlite", create=True) as store, open_github(store) as github:
                crawl(github, store, NAMES, chosen)
            spent = server.stats.requests - before
            assert abs(spent - planned.requests) <= 6  # targets in other repositories
    result = planned.to_dict()
    assert [row["outcome"] for row in result["repositories"]] == ["ok"] * 6 + ["renamed", "not_found"]
    assert [row["points"] > 0 for row in result["repositories"]] == [True] * 6 + [False] * 2
    assert result["points"] == sum(row["points"] for row in result["repositories"])
    assert result["estimate"] == (strategy == "search")
    shown = " ".join(repr(planned).split())
    assert all(name in shown for name in names)
    assert "no such repository" in shown
    assert f"This estimate cost {planned.spent.points} points" in shown


@pytest.mark.parametrize("command", [crawl, update, plan])
def test_only_missing_repositories_are_an_error(tmp_path: Path, command: Callable[..., Any]) -> None:
    names = [f"acme/gone-{n}" for n in range(7)]
    message = r"gone-0: no such repository.*gone-4: .* and 2 more\); check"
    with serve(SAMPLE) as server, Store.open(tmp_path / "store.sqlite", create=True) as store:
        chosen = settings("all", server.url)
        with GitHub(chosen.crawl, [Token("t", server.url)], store) as github:
            given = (names, chosen, lambda _: github) if command is plan else (github, store, names, chosen)
            with pytest.raises(ConfigError, match=message):
                command(*given)


def test_a_failing_server_is_not_a_wrong_name() -> None:
    row = RepoRow("a/b", RepoOutcome.FAILED, detail="server error")
    with pytest.raises(RemoteError, match=r"a/b: server error.*run the same command again"):
        crawlable([row, RepoRow("a/c", RepoOutcome.NOT_FOUND)])


def test_many_missing_repositories_share_a_line() -> None:
    rows = [RepoRow(f"acme/gone-{n}", RepoOutcome.NOT_FOUND, detail="no such repository") for n in range(55)]
    planned = Plan("search", tuple(map(RepoPlan, rows)), Usage(3, 3, 1.0))
    assert repr(planned) == (
        "55 repositories not found (no such repository): acme/gone-0, acme/gone-1, acme/gone-2 and 52 more"
    )
    assert "<table>" not in planned._repr_html_()
    one = Plan("search", (RepoPlan(RUST, 139, 139), RepoPlan(rows[0])), Usage(3, 3, 1.0))
    assert "acme/gone-0: not found (no such repository)" in repr(one)
    assert "rust-lang/rust" in one._repr_html_()
