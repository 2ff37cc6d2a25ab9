"""The status of a crawl while it runs and afterwards."""

import pytest

import gis_builder
from gis_builder.crawling.status import RepoStatus, Status
from gis_builder.store import RepoOutcome, RepoRow, Tally, Usage

from .crawl_world import STATION, crawled
from .working_folder import stored


@pytest.mark.parametrize(
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
    assert (missing.stage, repo.stage, repo.progress, done.status.eta_s) == (
        "not found",
        "done",
        1.0,
        0.0,
    )
    (comments,) = stored(work, "SELECT count(*) FROM comments")
    result = done.to_dict()
    assert (result["comments"], result["repositories"]) == (comments, 2)
    assert result["outcomes"] == {"not_found": 1, "ok": 1}
    assert result["issues"] == done.status.to_dict()["repositories"][1]["issues"]
    assert "no such repository" in " ".join(repr(done).split())


def test_a_repository_with_two_names_counts_once():
    rows = [
        RepoRow(name, RepoOutcome.OK, "acme/rocket", issue_count=10)
        for name in ("acme/rocket", "acme/missile")
    ]
    repos = tuple(RepoStatus(row, Tally(issues=4, pending=3), Usage()) for row in rows)
    status = Status(repos, Usage(), rate_limit=None, warnings=())
    assert (status.totals()["issues"], status.left) == (4, 3)
