"""Verdicts on a store: their file, their reuse, and the settings that a crawl keeps."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gis_builder.crawling.crawl import crawl, import_tracker, update
from gis_builder.crawling.github import GitHub, Token
from gis_builder.detection.detector import (
    KEPT_FILE,
    Detector,
    detect,
    explain_thread,
    judged_rows,
    read_duplicates,
)
from gis_builder.settings import BuildSettings, CrawlSettings, DetectSettings
from gis_builder.store import Page, Store
from gis_builder.store.issue_records import IssueRef, Kind, VerdictOutcome
from pairkit.base.errors import ConfigError, DataError
from tests.support.github import serve

from .conftest import judge

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
REPO = "quarryhq/quarry"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    opened = Store.open(tmp_path_factory.mktemp("store") / "store.sqlite", create=True)
    import_tracker(opened, SAMPLE, lambda _words: None)
    return opened


def test_duplicates_below_the_minimum_confidence_are_uncertain(store: Store) -> None:
    sure = {v.ref for v in judge(store, [REPO], DetectSettings()) if v.outcome is VerdictOutcome.DUPLICATE}
    strict = judge(store, [REPO], DetectSettings(min_confidence=0.97))
    still = {v.ref for v in strict if v.outcome is VerdictOutcome.DUPLICATE}
    lowered = {v.ref for v in strict if v.reason == "below_min_confidence"}
    assert still | lowered == sure
    assert lowered
    assert still


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Store]:
    """One sample tracker that a test may change."""
    with Store.open(tmp_path / "store.sqlite", create=True) as copy:
        import_tracker(copy, SAMPLE / "quarryhq", lambda _words: None)
        yield copy


def judged_anew(store: Store, settings: DetectSettings | None = None) -> int:
    return detect(store, store.path.with_name("v.parquet"), store.repos(), settings or DetectSettings())


def test_only_changed_threads_are_judged_again(own_store: Store) -> None:
    threads = sum(1 for row in own_store.repos() for _ in own_store.stored_threads(row.full_name))
    assert judged_anew(own_store) == threads
    first = own_store.path.with_name("v.parquet").read_bytes()
    assert judged_anew(own_store) == 0
    assert own_store.path.with_name("v.parquet").read_bytes() == first
    thread = own_store.thread(IssueRef(REPO, 58))
    assert thread is not None
    said = replace(thread.comments[-1], body="No duplicate at all, it is another bug.")
    own_store.save(Page(threads=[replace(thread, comments=(*thread.comments[:-1], said))]))
    assert judged_anew(own_store) == 1
    assert judged_anew(own_store, DetectSettings(allow_cross_repository=True)) == threads


def test_a_thread_is_judged_again_if_its_target_changes(own_store: Store) -> None:
    """#58 is a duplicate of #41, which becomes a pull request."""
    settings, ref = DetectSettings(), IssueRef(REPO, 58)
    judged_anew(own_store)
    asked = [kept for kept in Detector(own_store, settings).judge(REPO) if kept.verdict.ref == ref]
    assert (IssueRef(REPO, 41), Kind.ISSUE) in asked[0].dependencies
    target = own_store.thread(IssueRef(REPO, 41))
    assert target is not None
    own_store.save(Page(threads=[replace(target, issue=replace(target.issue, is_pull=True))]))
    assert judged_anew(own_store) > 0
    assert ref not in {verdict.ref for verdict in read_duplicates(own_store.path.with_name("v.parquet"))}


def test_verdicts_of_another_version_are_ignored(own_store: Store) -> None:
    threads = judged_anew(own_store)
    kept = own_store.path.with_name(KEPT_FILE)
    pl.read_parquet(kept).drop("dependencies").write_parquet(kept)
    assert judged_anew(own_store) == threads


def test_a_build_judges_each_thread_once(tmp_path: Path) -> None:
    """Detection reuses the verdicts that the crawl needed to find further issues."""
    with serve(SAMPLE) as server, Store.open(tmp_path / "store.sqlite", create=True) as store:
        settings = BuildSettings(crawl=CrawlSettings(api_url=server.url, strategy="all"))
        with GitHub(settings.crawl, [Token("any", server.url)], store) as github:
            rows = crawl(github, store, [REPO], settings)
        crawled = store.path.with_name(KEPT_FILE).read_bytes()
        assert detect(store, tmp_path / "v.parquet", rows, settings.detect) == 0
        assert store.path.with_name(KEPT_FILE).read_bytes() == crawled


@pytest.mark.parametrize(
    "name", ["quarry#1", "quarryhq/quarry", "quarryhq/quarry#x", "quarryhq/quarry#99999"]
)
def test_only_issues_can_be_explained(store: Store, name: str) -> None:
    with pytest.raises(ConfigError, match=r"^issue = "):
        explain_thread(store, name, DetectSettings())


def test_verdicts_must_have_the_current_crawl_and_settings(store: Store, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="run `gis detect` first"):
        judged_rows(store, DetectSettings())
    rows = [row for row in store.repos() if row.name == REPO]
    detect(store, tmp_path / "v.parquet", rows, DetectSettings())
    assert judged_rows(store, DetectSettings()) == rows
    with pytest.raises(DataError, match="judged with other settings"):
        judged_rows(store, DetectSettings(min_confidence=0.9))
    thread = store.thread(IssueRef(REPO, 58))
    assert thread
    store.save(Page(threads=[replace(thread, issue=replace(thread.issue, body="edited"))]))
    with pytest.raises(DataError, match="older than the crawl"):
        judged_rows(store, DetectSettings())


def test_a_crawl_keeps_its_settings(tmp_path: Path) -> None:
    with (
        serve(SAMPLE) as server,
        Store.open(tmp_path / "store.sqlite", create=True) as crawled,
        GitHub(CrawlSettings(api_url=server.url), [Token("t", server.url)], crawled) as github,
    ):

        def crawl_with(**fields: Any) -> None:
            settings = CrawlSettings(**{"api_url": server.url} | fields)
            crawl(github, crawled, [REPO], BuildSettings(crawl=settings))

        crawl_with()
        requests = server.stats.requests
        for name, value in (
            ("server", {"api_url": "http://other.example"}),
            ("phrases", {"phrases": ("dup",)}),
        ):
            with pytest.raises(ConfigError, match=f"setting of {name}"):
                crawl_with(**value)
        with pytest.raises(ConfigError, match="setting of strategy"):
            import_tracker(crawled, SAMPLE, lambda _words: None)
        assert server.stats.requests == requests
        crawl_with(strategy="all")  # fetches everything in any case
        with pytest.raises(ConfigError, match=r"setting of strategy \(all, not search\)"):
            crawl_with()


def test_an_update_keeps_the_strategy_of_the_crawl(tmp_path: Path) -> None:
    with serve(SAMPLE) as server, Store.open(tmp_path / "s.sqlite", create=True) as crawled:
        swept = BuildSettings(crawl=CrawlSettings(api_url=server.url, strategy="all"))
        with GitHub(swept.crawl, [Token("t", server.url)], crawled) as github:
            crawl(github, crawled, [REPO], swept)
            update(github, crawled, [REPO], BuildSettings(crawl=CrawlSettings(api_url=server.url)))
        assert crawled.crawl_record()["strategy"] == "all"
