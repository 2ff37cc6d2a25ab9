"""Verdicts of a working folder: their reuse, what they depend on, and the settings that a crawl keeps."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

import gis_builder
from gis_builder.detection.detector import Detector
from gis_builder.settings import DetectSettings
from gis_builder.store import Absence, IssueRef, Kind, Page, RepoOutcome, RepoRow, Store
from tests.support.github import serve
from tests.support.shorthand import SAMPLE, config_error, data_error, parametrize

from .working_folder import imported, stored, verdicts

REPO = "quarryhq/quarry"


@pytest.fixture
def saved(tmp_path):
    """One sample tracker that a test may change."""
    return Path(shutil.copytree(SAMPLE / REPO, tmp_path / "saved"))


@pytest.fixture
def work(saved, tmp_path):
    imported(saved, tmp_path / "work")
    return tmp_path / "work"


def changed(saved, work, stem, change):
    """Change the lines of a file and import it again."""
    path = saved / f"{stem}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    imported(saved, work)


def judged_anew(work, **settings):
    dotted = {f"detect.{name}": value for name, value in settings.items()}
    return gis_builder.detect(work, settings=dotted).judged_anew


def test_duplicates_below_the_minimum_confidence_are_uncertain(work):
    sure = {
        issue
        for issue, (outcome, *_) in verdicts(work).items()
        if outcome == "duplicate"
    }
    strict = verdicts(work, min_confidence=0.97)
    still = {issue for issue, (outcome, *_) in strict.items() if outcome == "duplicate"}
    lowered = {
        issue
        for issue, (*_, reason) in strict.items()
        if reason == "below_min_confidence"
    }
    assert still | lowered == sure
    assert lowered
    assert still


def test_only_changed_threads_are_judged_again(saved, work):
    (threads,) = stored(
        work, "SELECT count(*) FROM issues WHERE depth = 2 AND NOT is_pull"
    )
    assert judged_anew(work) == threads
    first = (work / "verdicts.parquet").read_bytes()
    assert judged_anew(work) == 0
    assert (work / "verdicts.parquet").read_bytes() == first

    def deny(comment):
        if comment["issue_url"].endswith("/issues/58"):
            comment["body"] = "No duplicate at all, it is another bug."

    changed(saved, work, "comments", deny)
    assert judged_anew(work) == 1
    assert judged_anew(work, allow_cross_repository=True) == threads
    kept = work / "kept.parquet"
    # As by another version.
    pl.read_parquet(kept).drop("dependencies").write_parquet(kept)
    assert judged_anew(work) == threads


def test_a_thread_is_judged_again_if_its_target_changes(saved, work):
    """#58 is a duplicate of #41, which becomes a pull request."""
    assert verdicts(work)[f"{REPO}#58"][:2] == ("duplicate", [f"{REPO}#41"])
    other = work.with_name("other")
    changed(
        saved,
        other,
        "issues",
        lambda issue: issue["number"] == 41 and issue.update(pull_request={}),
    )
    shutil.copy(work / "kept.parquet", other)
    assert 0 < judged_anew(other) < 20
    assert verdicts(other)[f"{REPO}#58"][0] != "duplicate"


def test_a_build_judges_each_thread_once(tmp_path):
    """Detection reuses the verdicts that the crawl needed to find further issues."""
    with serve(SAMPLE) as server:
        access = {"api_url": server.url, "token": "any"}
        gis_builder.crawl(REPO, tmp_path, strategy="all", **access)
    kept = (tmp_path / "kept.parquet").read_bytes()
    assert judged_anew(tmp_path) == 0
    assert (tmp_path / "kept.parquet").read_bytes() == kept


@parametrize(
    "name",
    ["quarry#1", REPO, f"{REPO}#x", f"{REPO}#99999", f"{REPO}#124"],  # a pull request
)
def test_only_issues_can_be_explained(work, name):
    with config_error(rf"^{name}: "):
        gis_builder.explain(work, name)


def test_only_complete_threads_are_judged(work):
    with closing(sqlite3.connect(work / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE issues SET depth = 1 WHERE number = 58")
    explanation = gis_builder.explain(work, f"{REPO}#58")
    assert explanation.reason == "thread_not_fetched"
    assert explanation.issue not in verdicts(work)


def test_the_newest_number_is_not_that_of_a_former_name(tmp_path):
    rows = [
        RepoRow(name, RepoOutcome.RENAMED, "acme/boat", max_number=newest)
        for name, newest in (("acme/boat", 9), ("acme/ship", 5))
    ]
    deleted = IssueRef("acme/boat", 7)
    with Store.open(tmp_path / "store.sqlite", create=True) as store:
        store.save(Page(repos=rows, missing={deleted: (Absence.DELETED, "")}))
        assert Detector(store, DetectSettings()).kind_of(deleted) is Kind.MISSING


def test_pairs_need_verdicts_on_the_current_crawl_and_settings(
    saved, work, monkeypatch
):
    def pair(**settings):
        gis_builder.pair(work, work.with_name("gis"), settings=settings)

    with data_error("run `gis detect` first"):
        pair()
    gis_builder.detect(work)
    with data_error("judged with other settings"):
        pair(**{"detect.min_confidence": 0.9})
    pair()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "content_hash", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            gis_builder.detect(work, settings={"detect.min_confidence": 0.9})
    with data_error("run `gis detect` again"):
        pair()
    gis_builder.detect(work)
    changed(saved, work, "issues", lambda issue: issue.update(body="edited"))
    with data_error("older than the crawl"):
        pair()


def test_a_crawl_keeps_its_settings(tmp_path):
    with serve(SAMPLE) as server:

        def crawl(*, update=False, **given):
            given = {"api_url": server.url, "token": "t", **given}
            gis_builder.crawl(REPO, tmp_path, update=update, **given)

        crawl()
        requests = server.stats.requests
        with config_error("setting of server"):
            crawl(api_url="http://other.example", settings={"crawl.plain_http": True})
        for key, value in ("phrases", ("dup",)), ("label_query", "double"):
            with config_error(f"setting of {key}"):
                crawl(settings={f"crawl.{key}": value})
        with config_error("contains a crawl; choose another work"):
            imported(SAMPLE, tmp_path)
        assert server.stats.requests == requests
        crawl(strategy="all")  # fetches everything in any case
        with config_error(r"setting of strategy \(all, not search\)"):
            crawl()
        crawl(update=True)  # with the strategy of the crawl
        crawl(strategy="all")
