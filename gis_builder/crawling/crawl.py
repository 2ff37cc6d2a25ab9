"""Crawl repositories into a store: candidates or everything, then what detection and negatives still need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gis_builder.crawling.github import GitHub
from gis_builder.crawling.import_dump import import_dump
from gis_builder.detection.detector import Detector, KeptVerdict
from gis_builder.progress import SILENT, RunDisplay
from gis_builder.settings import BuildSettings, PoolSettings
from gis_builder.store import RepoOutcome, RepoRow, Store
from gis_builder.store.records import IssueRef, VerdictOutcome
from gis_builder.trackers.tickets import PLAIN, ImportOptions
from pairkit.app.errors import ConfigError, RemoteError

_NAMED = 5  # repositories in a message
_IMPORTED = "dump"  # the strategy of a saved tracker
_CONTENT_SETTINGS = {
    "strategy",
    "sweep_small",
    "include_private",
    "phrases",
    "title_words",
    "body_phrases",
    "max_phrase_share",
    "label_query",
}


def crawl(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    settings: BuildSettings,
    show: RunDisplay = SILENT,
) -> list[RepoRow]:
    """Fetch everything that a dataset of these repositories needs; a second call continues."""
    names = _fetch_threads(github, store, repos, settings)
    _complete(github, store, names, settings, show)
    return outcomes(store, repos)


def update(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    settings: BuildSettings,
    show: RunDisplay = SILENT,
) -> list[RepoRow]:
    """Finish a crawl if necessary, then fetch what changed since; see `crawl`."""
    strategy = store.crawl_record().get("strategy")
    if strategy == _IMPORTED:
        _must_agree(store, {"server": crawl_record(settings)["server"]})
        names = crawlable(github.check(repos))
    else:
        begun = settings.crawl.model_copy(update={"strategy": strategy or settings.crawl.strategy})
        settings = settings.model_copy(update={"crawl": begun})
        names = _fetch_threads(github, store, repos, settings)
    github.update(names)
    _complete(github, store, names, settings, show)
    return outcomes(store, repos)


def import_tracker(
    store: Store, folder: Path, say: Callable[[str], None], options: ImportOptions = PLAIN
) -> list[RepoRow]:
    """Fill a store from a saved tracker instead of a server; see `import_dump`."""
    record = {"strategy": _IMPORTED}
    _must_agree(store, record)
    rows = import_dump(folder, store, say, options)
    store.set_crawl_record(record)
    return rows


def crawl_record(settings: BuildSettings) -> dict[str, Any]:
    """The settings that decide which data a crawl fetches, without timeouts and retries."""
    crawled = settings.crawl.model_dump(mode="json", include=_CONTENT_SETTINGS)
    return crawled | {"server": urlsplit(settings.crawl.api_url).hostname}


def outcomes(store: Store, repos: Sequence[str]) -> list[RepoRow]:
    """The stored outcome of each repository, in the order asked for; those never looked up are left out."""
    rows = {row.name.lower(): row for row in store.repos()}
    return [rows[name.lower()] for name in repos if name.lower() in rows]


def _fetch_threads(github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings) -> list[str]:
    """Fetch what the strategy says; free where it is done already. Returns what could be crawled."""
    record = crawl_record(settings)
    _must_agree(store, record)
    names = crawlable(github.check(repos))
    store.set_crawl_record(record)
    fetch = github.sweep if settings.crawl.strategy == "sweep" else github.search
    fetch(names)
    return names


def _must_agree(store: Store, record: Mapping[str, Any]) -> None:
    """Refuse to go on with what other settings brought: nothing could tell afterwards which brought what."""
    old = store.crawl_record()
    free = {"include_private"}
    if record.get("strategy") == "sweep" and old.get("strategy") == "search":
        free = _CONTENT_SETTINGS
    for key in sorted(old.keys() & record.keys() - free):
        if old[key] != record[key]:
            values = f" ({old[key]}, not {record[key]})" if isinstance(old[key], str) else ""
            raise ConfigError(
                f"{store.path.parent}: holds a crawl with another setting of {key}{values}; choose another "
                "working folder, or crawl as before"
            )


def crawlable(rows: Sequence[RepoRow]) -> list[str]:
    """The names of the repositories that can be crawled; there must be one."""
    names = [row.name for row in rows if row.is_crawlable]
    if names:
        return names
    reasons = "; ".join(f"{row.name}: {row.detail or row.outcome}" for row in rows[:_NAMED])
    more = f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    what = f"no repository can be crawled ({reasons}{more})"
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise RemoteError(f"{what}; run the same command again")
    raise ConfigError(f"{what}; check the names and what the token may read")


def _complete(
    github: GitHub, store: Store, names: Sequence[str], settings: BuildSettings, show: RunDisplay
) -> None:
    """Fetch what the verdicts rest on, canonical issues first of all, and issues for negatives."""
    homes = sorted({store.full_name(name) for name in names})
    positives = _fetch_targets(github, store, homes, settings, show)
    # After a sweep there is nothing more to draw from.
    drawn = [repo for repo in homes if not store.tasks(repo, "sweep", done=True)]
    github.fetch_negative_sample(
        {repo: negative_sample_size(positives[repo], settings.pool) for repo in drawn}, settings.seed
    )


def _fetch_targets(
    github: GitHub, store: Store, homes: Sequence[str], settings: BuildSettings, show: RunDisplay
) -> Counter[str]:
    """Fetch the issues that verdicts depend on until there are no more; count duplicates by repository."""
    detector = Detector(store, settings.detect)
    positives: Counter[str] = Counter()
    asked: set[IssueRef] = set()
    judged: Iterable[KeptVerdict] = detector.judge_all(homes, show)
    while True:
        unsettled: dict[IssueRef, frozenset[IssueRef]] = {}
        for kept in judged:
            if new := detector.unknown(kept) - asked:
                unsettled[kept.verdict.ref] = new
            elif kept.verdict.outcome is VerdictOutcome.DUPLICATE:
                positives[kept.verdict.ref.repo] += 1
        if not unsettled:
            detector.keep()
            return positives
        wanted = frozenset().union(*unsettled.values())
        github.fetch(sorted(wanted))
        asked |= wanted
        judged = detector.judge_again(unsettled)


def negative_sample_size(positives: int, settings: PoolSettings) -> int:
    """Number of issues to fetch for negatives, by the number of duplicates in the repository."""
    return max(settings.at_least, round(settings.per_positive * positives)) if positives else 0
