"""Estimated costs of crawls, compared with manual results and with the test server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gis_builder
from pairkit import ConfigError
from tests.support.github import Server, serve

from .test_github_check import NODE, look_up

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
NAMES = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in SAMPLE.glob("*/*/repo.json"))
ACCESS: dict[str, Any] = {"token": "t", "progress": False}


def cost(issues: int, max_number: int, strategy: str, **changes: Any) -> dict[str, Any]:
    """The plan for a repository of this size."""
    newest = {"totalCount": issues, "nodes": [{"number": max_number, "createdAt": "2020-01-02T00:00:00Z"}]}
    node = NODE | {"isPrivate": False, "newest": newest, "labels": {"nodes": []}}
    return look_up({"data": {"r0": node}}, strategy=strategy, **changes).to_dict()


def test_the_cost_of_a_sweep() -> None:
    # 15,813 / 49 = 322.7 pages, of 1 + 3 * 49 = 148 connections: a point each.
    # 316.3 / 49 = 6.5 queries for the beginnings of long threads.
    rust = cost(15_813, 30_664, "all")
    assert (rust["points"], rust["requests"]) == (323 + 7, 323 + 7)
    assert rust["hours_per_token"] == pytest.approx(330 * 1.2 / 3600)  # limited by the responses
    # 158.1 pages of 301 connections: three points each; 4 more queries of 100 connections.
    larger = cost(15_813, 30_664, "all", thread_batch=100)
    assert larger["points"] == 159 * 3 + 4
    assert larger["hours_per_token"] == pytest.approx(481 / 5000, abs=0.001)  # limited by the points


def test_the_cost_of_a_search() -> None:
    rust = cost(15_813, 30_664, "search")
    assert 0.8 < rust["points"] / 139 < 1.2  # benchmarks/README.md
    assert cost(10, 10, "search")["points"] < 20


@pytest.mark.parametrize("strategy", ["all", "search"])
def test_a_plan_of_the_sample(tmp_path: Path, strategy: str) -> None:
    names = [*NAMES, "lumenbase/lumen-tsdb", "acme/nowhere"]  # a former name, and a missing repository
    with serve(SAMPLE) as server:
        access = ACCESS | {"api_url": server.url, "strategy": strategy}
        planned = gis_builder.plan(names, **access)
        assert planned.spent.requests == server.stats.requests
        before = server.stats.requests
        if strategy == "all":
            gis_builder.crawl(NAMES, tmp_path / "work", **access)
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


def test_only_missing_repositories_are_an_error(tiny: Server, tmp_path: Path) -> None:
    names = [f"acme/gone-{n}" for n in range(7)]
    access = ACCESS | {"api_url": tiny.url}
    for run in (
        lambda: gis_builder.plan(names, **access),
        lambda: gis_builder.crawl(names, tmp_path / "work", **access),
        lambda: gis_builder.crawl(names, tmp_path / "work", update=True, **access),
    ):
        with pytest.raises(ConfigError, match=r"gone-0: no such repository.*gone-4: .* and 2 more\); check"):
            run()


def test_many_missing_repositories_share_a_line(tiny: Server) -> None:
    names = ["acme/rocket", *(f"acme/gone-{n}" for n in range(55))]
    planned = gis_builder.plan(names, api_url=tiny.url, **ACCESS)
    assert "55 repositories not found (no such repository" in repr(planned)
    assert ": acme/gone-0, acme/gone-1, acme/gone-2 and 52 more" in repr(planned)
    assert "acme/rocket" in planned._repr_html_()
    one = gis_builder.plan(names[:2], api_url=tiny.url, **ACCESS)
    assert "acme/gone-0: not found (no such repository" in repr(one)
