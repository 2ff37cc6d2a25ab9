"""The whole way from repositories to a dataset: crawl, detect, assemble, audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gis_builder.crawling.crawl import crawl, crawl_record
from gis_builder.crawling.github import GitHub
from gis_builder.crawling.status import read_status
from gis_builder.detection.run import detect, judged_rows
from gis_builder.detection.verdicts import FILE
from gis_builder.pairing.assemble import assemble, settings_record
from gis_builder.progress.display import SILENT, RunDisplay
from gis_builder.results import Built, Crawled, IncompleteCrawlError
from gis_builder.settings import BuildSettings
from gis_builder.store import RepoOutcome, Store, Usage
from gis_builder.store.crawled import stored_record
from gis_builder.store.folders import check_out, held_store
from pairkit import AuditReport, audit
from pairkit.system.folders import check_apart


def build(
    repos: Sequence[str],
    out: Path,
    work: Path,
    settings: BuildSettings,
    open_github: Callable[[Store], GitHub],
    show: RunDisplay,
    *,
    fresh: bool = False,
) -> Built:
    """Build the dataset of these repositories; called again after whatever happened, it continues.

    Args:
        repos: `owner/name` each.
        out: The dataset's folder.
        work: The folder of store and verdicts.
        settings: Everything that can be set.
        open_github: Makes the crawl's client once the store is open.
        show: Told of each stage.
        fresh: Replace a dataset that stands at `out`.

    Raises:
        ConfigError: `out` or `work` can't be used, or a setting does not fit the data.
        DataError: nothing to crawl, no duplicates, a damaged store.
        LeakError: the audit found a leak, which is a bug of ours; the dataset is left for inspection.
        IncompleteCrawlError: some repositories failed; running again continues.
        RemoteError: the server failed for all.
    """
    start = time.monotonic()
    crawled = crawl_record(settings)
    check_apart(out, work)
    check_out(out, repos, settings_record(settings, crawled), fresh=fresh)
    with held_store(work) as store:
        show.say("crawling")
        with open_github(store) as github:
            rows = crawl(github, store, repos, settings, show)
        if any(row.outcome is RepoOutcome.FAILED for row in rows):
            raise IncompleteCrawlError(Crawled(work, rows, read_status(store)))
        show.say("detecting duplicates")
        detect(store, work / FILE, rows, settings.detect, show)
        show.say("making pairs")
        statistics = assemble(store, rows, work / FILE, settings, crawled, out, show)
        usage = sum(store.usage().values(), Usage())
    show.say("auditing")
    return Built(out, work, statistics, checked(out), time.monotonic() - start, rows, usage)


def pair(
    out: Path, work: Path, settings: BuildSettings, show: RunDisplay = SILENT, *, fresh: bool = False
) -> Built:
    """Make a dataset from what `work` holds; the server is not asked for anything.

    Raises:
        ConfigError: `out` or `work` can't be used, or a setting does not fit the data.
        DataError: no verdicts, or verdicts that do not fit the crawl; no duplicates; a damaged store.
        LeakError: see `build`.
    """
    start = time.monotonic()
    check_apart(out, work)
    with held_store(work, create=False) as store:
        rows = judged_rows(store, settings.detect)
        crawled = stored_record(store)
        names = [row.name for row in rows]
        check_out(out, names, settings_record(settings, crawled), fresh=fresh)
        statistics = assemble(store, rows, work / FILE, settings, crawled, out, show)
        usage = sum(store.usage().values(), Usage())
    return Built(out, work, statistics, checked(out), time.monotonic() - start, rows, usage)


def checked(out: Path) -> AuditReport:
    """Audit a dataset of ours."""
    report = audit(out)
    report.check()
    return report
