"""Look-ups of repositories, estimated costs, compared with manual results and the server, and the status of crawls."""

import json
import shlex

import gis_builder
from pairkit import BadReply, ConfigError, RemoteError
from tests.contract.conftest import environment, run_here
from tests.support.github import serve
from tests.support.shorthand import (
    SAMPLE,
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
)

from .crawl_world import STATION, crawled, serving
from .working_folder import stored

NAMES = sorted(
    f"{path.parent.parent.name}/{path.parent.name}"
    for path in SAMPLE.glob("*/*/repo.json")
)
ACCESS = {"token": "t"}


def cost(issues, max_number, strategy, **changes):
    """The plan for a repository of this size."""
    newest = {
        "totalCount": issues,
        "nodes": [{"number": max_number, "createdAt": "2020-01-02T00:00:00Z"}],
    }
    node = NODE | {"isPrivate": False, "newest": newest, "labels": {"nodes": []}}
    return look_up({"data": {"r0": node}}, strategy=strategy, **changes).to_dict()


def test_the_cost_of_a_sweep():
    # 15,813 / 49 = 322.7 pages, of 1 + 3 * 49 = 148 connections: a point each.
    # 316.3 / 49 = 6.5 queries for the beginnings of long threads.
    rust = cost(15_813, 30_664, "all")
    assert (rust["points"], rust["requests"]) == (323 + 7, 323 + 7)
    # Limited by the responses.
    assert rust["hours_per_token"] == approx(330 * 1.2 / 3600)
    # 158.1 pages of 301 connections: three points each; 4 more queries of 100 connections.
    larger = cost(15_813, 30_664, "all", thread_batch=100)
    assert larger["points"] == 159 * 3 + 4
    # Limited by the points.
    assert larger["hours_per_token"] == approx(481 / 5000, abs=0.001)


def test_the_cost_of_a_search():
    rust = cost(15_813, 30_664, "search")
    assert 0.8 < rust["points"] / 139 < 1.2  # benchmarks/README.md
    assert cost(10, 10, "search")["points"] < 20


@parametrize("strategy", ["all", "search"])
def test_a_plan_of_the_sample(work, strategy):
    # A former name, and a missing repository.
    names = [*NAMES, "lumenbase/lumen-tsdb", "acme/nowhere"]
    with serve(SAMPLE) as server:
        access = ACCESS | {"api_url": server.url, "strategy": strategy}
        planned = gis_builder.plan(names, **access)
        assert planned.spent.requests == server.stats.requests
        before = server.stats.requests
        if strategy == "all":
            gis_builder.crawl(NAMES, work, **access)
            spent = server.stats.requests - before
            assert abs(spent - planned.requests) <= 6  # targets in other repositories
    result = planned.to_dict()
    found = [(row["outcome"], row["points"] > 0) for row in result["repositories"]]
    assert found == [("ok", True)] * 6 + [("renamed", False), ("not_found", False)]
    assert result["points"] == sum(row["points"] for row in result["repositories"])
    assert result["estimate"] == (strategy == "search")
    shown = " ".join(repr(planned).split())
    assert all(name in shown for name in names)
    assert "no such repository" in shown
    assert f"This estimate cost {planned.spent.points} points" in shown


@parametrize("command", ["plan", "build --dry-run --out 'my pairs'"])
def test_the_next_step_is_a_build_with_the_same_options(tiny, command):
    options = f"--repos=acme/rocket --strategy all --api-url {tiny.url}"
    words = shlex.split(f"{command} {options}")
    done = run_here("gis_builder", *words, environ=environment(GITHUB_TOKEN="t"))
    build = command.replace("plan", "build").replace(" --dry-run", "")
    assert done.err.endswith(f"next: build the dataset\n  gis {build} {options}\n")


def test_only_missing_repositories_are_an_error(tiny, work):
    names = [f"acme/gone-{n}" for n in range(7)]
    access = ACCESS | {"api_url": tiny.url}
    for run in (
        lambda: gis_builder.plan(names, **access),
        lambda: gis_builder.crawl(names, work, **access),
        lambda: gis_builder.crawl(names, work, update=True, **access),
    ):
        with config_error(
            r"7 repositories not found \(no such repository.*gone-2 and 4 more\); check"
        ):
            run()
    with data_error("contains no issues; run `gis import`"):
        gis_builder.detect(work)


LABELS = ('"dup"', "Resolution: Duplicate", "deduplication", "dupe", "duplicates")
NODE = {
    "nameWithOwner": "acme/vault",
    "isPrivate": True,
    "hasIssuesEnabled": True,
    "createdAt": "2020-01-01T00:00:00Z",
    "newest": {
        "totalCount": 1,
        "nodes": [{"number": 5, "createdAt": "2020-01-02T00:00:00Z"}],
    },
    "fresh": {"nodes": [{"updatedAt": "2020-01-03T00:00:00Z"}]},
    "pulls": {"nodes": [{"number": 7}]},
    "labels": {"nodes": [{"name": name} for name in LABELS]},
}
SCHEMA = {"data": {"issue": None, "closed": None}}
FOUND = {"data": {"r0": NODE}}


def absent(type_, message="no"):
    error = {"type": type_, "path": ["r0"], "message": message}
    return {"data": {"r0": None, "rateLimit": {"cost": 1}}, "errors": [error]}


def look_up(*answers, **changes):
    """Plan a crawl of a repository, with these answers in order."""
    left = [SCHEMA, *answers]

    def respond(_path, _headers):
        return 200, {}, json.dumps(left.pop(0)).encode()

    settings = {
        f"crawl.{name}": value
        for name, value in ({"backoff_s": 0.001} | changes).items()
    }
    with serving(respond) as url:
        return gis_builder.plan("acme/vault", api_url=url, token="t", settings=settings)


@parametrize("answers", [[FOUND], [absent("INTERNAL"), FOUND]])
def test_a_private_repository_that_is_wanted(answers):
    row = look_up(*answers, include_private=True).repositories[0].row
    assert (row.outcome, row.detail, row.max_number) == ("ok", "", 7)
    assert row.as_of == "2020-01-03T00:00:00Z"
    assert row.labels == ("Resolution: Duplicate", "dupe", "duplicates")


@parametrize(
    "answers, error, detail",
    [
        ([FOUND], ConfigError, "include_private"),
        ([absent("FORBIDDEN", "SAML enforcement")], ConfigError, "SAML enforcement"),
        ([absent("NOT_FOUND")], ConfigError, "no such repository"),
        (
            [absent("INTERNAL", "the disk is full")] * 2,
            RemoteError,
            "the disk is full.*run the same command",
        ),
    ],
)
def test_refused_look_ups(answers, error, detail):
    with raises(error, match=f"no repository can be crawled .acme/vault: .*{detail}"):
        look_up(*answers, attempts=2)


def test_a_reply_with_only_its_cost_is_refused():
    with raises(BadReply, match="none of the requested data; check api_url"):
        look_up({"data": {"rateLimit": {"cost": 1}}})


@parametrize(
    "strategy, expected",
    [
        ("search", "searching, reading threads, completing threads"),
        ("all", "sweeping, completing threads"),
    ],
)
def test_stages_of_a_crawl(station, tmp_path, strategy, expected):
    work, seen = tmp_path / "work", []

    def look(_):
        seen.append(gis_builder.status(work))

    done = crawled(
        station, work, [STATION, "acme/nowhere"], strategy=strategy, progress=look
    )
    at = {
        status.repositories[1].stage: status
        for status in seen
        if len(status.repositories) == 2
    }
    assert at.keys() >= {*expected.split(", ")}
    running = at[expected.partition(",")[0]]
    assert 0 < running.repositories[1].progress < 1
    assert (running.eta_s or 0) > 0
    assert " min left at this speed, for one token" in repr(running)
    assert running.left > 0
    (missing, repo) = done.status.repositories
    assert (missing.stage, repo.stage) == ("not found", "done")
    assert (repo.progress, done.status.eta_s) == (1.0, 0.0)
    (comments,) = stored(work, "SELECT count(*) FROM comments")
    result = done.to_dict()
    assert (result["comments"], result["repositories"]) == (comments, 2)
    assert result["outcomes"] == {"not_found": 1, "ok": 1}
    assert result["issues"] == done.status.to_dict()["repositories"][1]["issues"]
    assert "no such repository" in " ".join(repr(done).split())
