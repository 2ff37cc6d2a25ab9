"""The status of a crawl, and the display of its progress."""

from __future__ import annotations

import json
import time

import pytest

from gis_builder.crawl_progress import Advanced, Began, Finished, RunDisplay, Waiting
from gis_builder.crawling.status import Crawled, read_status
from gis_builder.store import RATE_LIMIT, CrawlTask, Page, RateLimit, RepoOutcome, RepoRow, Store, Usage
from pairkit.base.cli.progress import Progress
from tests.support.github import Server

from .crawl_world import STATION, open_github, quick


def shown(store: Store) -> str:
    return " ".join(repr(read_status(store)).split())


@pytest.mark.parametrize("strategy", ["search", "all"])
def test_stages_of_a_crawl(station: Server, store: Store, strategy: str) -> None:
    with open_github(quick(station.url), store) as github:
        github.check([STATION, "acme/nowhere"])
        (missing, repo) = read_status(store).repositories
        assert (repo.stage, missing.stage) == ("waiting", "not found")
        assert read_status(store).eta_s is None
        (github.sweep if strategy == "all" else github.search)([STATION])
    status = read_status(store)
    (_, repo) = status.repositories
    assert (repo.stage, repo.progress, status.eta_s) == ("done", 1.0, 0.0)
    threads = list(store.threads(STATION))
    assert (repo.tally.threads, repo.tally.comments) == (
        len(threads),
        sum(len(thread.comments) for thread in threads),
    )
    assert repo.usage == store.usage()[STATION]
    summary = Crawled(store.path.parent, store.repos(), status).to_dict()
    assert summary["outcomes"] == {"not_found": 1, "ok": 1}
    assert (summary["repositories"], summary["issues"]) == (2, repo.tally.issues)
    assert summary["requests"] == sum(spent.requests for spent in store.usage().values())
    json.dumps(status.to_dict())
    assert "no such repository" in shown(store)


def test_a_stopped_crawl(store: Store) -> None:
    row = RepoRow("a/b", RepoOutcome.OK, "a/b", issue_count=100)
    store.save(
        Page(repos=[row], tasks=[CrawlTask("a/b", "search", "x", done=True), CrawlTask("a/b", "search", "y")])
    )
    store.save(Page(usage={"a/b": Usage(3, 4, 10.0)}, warnings=[("a/b", "odd")]))
    status = read_status(store)
    assert status.repositories[0].stage == "searching"
    assert status.eta_s == pytest.approx(10.0)  # one of two searches is finished
    assert "about 0.2 min left" in shown(store)
    assert "a/b: odd" in shown(store)


def test_the_rate_limit(store: Store) -> None:
    assert store.rate_limit() is None
    later = time.time() + 600
    store.set_meta(RATE_LIMIT, json.dumps({"limit": 5000, "remaining": 1234, "reset": later}))
    assert read_status(store).to_dict()["points_left"] == 1234
    assert "1,234 of 5,000 points left until" in shown(store)
    assert "was reset" in RateLimit(5000, 1, 10.0).describe(now=11.0)


def progress_of(*events: object) -> list[Progress]:
    reported: list[Progress] = []
    with RunDisplay(reported.append) as show:
        for event in events:
            show.crawling(event)  # type: ignore[arg-type]
    return reported


def test_repositories_and_points_left_are_counted() -> None:
    reported = progress_of(
        Began("sweep", 2),
        Advanced("a/b", "sweep", 10, 40, 4321),
        Finished("a/b", "sweep"),
        Advanced("a/c", "sweep", 5, 5, 4320),
        Finished("a/c", "sweep"),
    )
    assert reported == [
        Progress("repositories: sweeping", 0, 2),
        Progress("a/b: sweeping", 10, 40, "4,321 points left"),
        Progress("a/b: sweeping", ended=True),
        Progress("repositories: sweeping", 1, 2, "4,321 points left"),
        Progress("a/c: sweeping", 5, 5, "4,320 points left"),
        Progress("a/c: sweeping", ended=True),
        Progress("repositories: sweeping", 2, 2, "4,320 points left", ended=True),
    ]


def test_waits_and_failures_are_explained(capfd: pytest.CaptureFixture[str]) -> None:
    with RunDisplay() as show:
        show.crawling(Advanced("a/b", "threads", 1, 4))
        show.crawling(Waiting("the limit is spent", 3600.0, 0.0))
        show.crawling(Finished("a/b", "search", "502 again and again"))
    said = capfd.readouterr().err
    assert "waiting 3600 s" in said
    assert "a/b: failed, the others continue (502 again and again)" in said
    (_, waiting, *_) = progress_of(Advanced("a/b", "threads", 1, 4), Waiting("the limit is spent", 1.0, 0.0))
    assert (waiting.stage, waiting.done, waiting.total) == ("a/b: reading threads", 1, 4)
    assert waiting.note.endswith("the limit is spent")
