"""The whole way from repositories to a dataset: crawl, detect, assemble, audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gis_builder._assemble import assemble, settings_record
from gis_builder._crawl import crawl, crawl_record, failures, stored_record
from gis_builder._detection import detect, judged_rows
from gis_builder._folders import STORE_FILE, check_out, working_folder
from gis_builder._github import GitHub
from gis_builder._settings import BuildSettings
from gis_builder._store import RepoRow, Store, Usage
from gis_builder._verdicts import FILE
from pairkit import AuditReport, audit
from pairkit.folders import check_apart
from pairkit.memory import peak_rss_mb

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build."""

    out: Path
    statistics: dict[str, Any]
    audit: AuditReport
    rows: Sequence[RepoRow]
    usage: Usage
    seconds: float

    @property
    def positives(self) -> int:
        """Positive pairs in all splits."""
        return sum(split["positive"] for split in self.statistics["splits"].values())

    @property
    def negatives(self) -> int:
        """Negative pairs in all splits."""
        return sum(split["negative"] for split in self.statistics["splits"].values())

    @property
    def points_per_100_positives(self) -> float:
        """What a hundred positives cost, in GraphQL points."""
        return 100 * self.usage.points / self.positives

    def summary(self) -> dict[str, Any]:
        """The result as one flat object for scripts."""
        sizes = {name: split["total"] for name, split in self.statistics["splits"].items()}
        return {
            "out": str(self.out),
            "positives": self.positives,
            "negatives": self.negatives,
            **{name: sizes.get(name, 0) for name in ("train", "validation", "test")},
            "points": self.usage.points,
            "requests": self.usage.requests,
            "seconds": round(self.seconds, 3),
            "peak_rss_mb": peak_rss_mb(),
        }


def build(
    repos: Sequence[str],
    out: Path,
    work: Path,
    settings: BuildSettings,
    open_github: Callable[[Store], GitHub],
    say: Say,
    *,
    fresh: bool = False,
) -> Built:
    """Build the dataset of these repositories; called again after whatever happened, it goes on.

    Args:
        repos: `owner/name` each.
        out: The dataset's folder.
        work: The folder of store and verdicts.
        settings: Everything that can be set.
        open_github: Makes the crawl's client once the store is open.
        say: Told of each stage.
        fresh: Replace a dataset that stands at `out`.

    Raises:
        ConfigError: `out` or `work` can't be used, or a setting does not fit the data.
        DataError: nothing to crawl, no duplicates, a damaged store.
        LeakError: the audit found a leak, which is a bug of ours; the dataset is left for inspection.
        RemoteError: the server failed; running again goes on.
    """
    start = time.monotonic()
    crawled = crawl_record(settings)
    check_apart(out, work)
    check_out(out, repos, settings_record(settings, crawled), fresh=fresh)
    with working_folder(work), Store.open(work / STORE_FILE, create=True) as store:
        say("crawling")
        with open_github(store) as github:
            rows = crawl(github, store, repos, settings)
        if failed := failures(rows):
            raise failed
        say("detecting duplicates")
        detect(store, work / FILE, rows, settings.detect)
        say("making pairs")
        statistics = assemble(store, rows, work / FILE, settings, crawled, out)
        usage = total(store.usage())
    say("auditing")
    report = checked(out)
    return Built(out, statistics, report, rows, usage, time.monotonic() - start)


def pair(out: Path, work: Path, settings: BuildSettings, *, fresh: bool = False) -> Built:
    """Make a dataset from what `work` holds; the server is not asked for anything.

    Raises:
        ConfigError: `out` or `work` can't be used, or a setting does not fit the data.
        DataError: no verdicts, or verdicts that do not fit the crawl; no duplicates; a damaged store.
        LeakError: see `build`.
    """
    start = time.monotonic()
    check_apart(out, work)
    with working_folder(work, create=False), Store.open(work / STORE_FILE) as store:
        rows = judged_rows(store, settings.detect)
        crawled = stored_record(store)
        names = [row.name for row in rows]
        check_out(out, names, settings_record(settings, crawled), fresh=fresh)
        statistics = assemble(store, rows, work / FILE, settings, crawled, out)
        usage = total(store.usage())
    return Built(out, statistics, checked(out), rows, usage, time.monotonic() - start)


def checked(out: Path) -> AuditReport:
    """Audit a dataset of ours.

    Raises:
        LeakError: it leaks.
    """
    report = audit(out)
    report.check()
    return report


def total(usage: dict[str, Usage]) -> Usage:
    """What was spent on all repositories together."""
    return sum(usage.values(), Usage())
