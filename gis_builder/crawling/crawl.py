"""Crawls repositories: likely duplicates or all issues, then the issues that verdicts and negatives need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.github import GitHub
from gis_builder.crawling.import_dump import import_dumps, saved_server
from gis_builder.crawling.tickets import find_trackers
from gis_builder.detection.detector import Detector, KeptVerdict
from gis_builder.settings import BuildSettings, PoolSettings
from gis_builder.store import RepoOutcome, RepoRow, Store
from gis_builder.store.issue_records import IssueRef, VerdictOutcome
from gis_builder.trackers.dump import BrokenRows
from gis_builder.trackers.ticket_files import ImportOptions
from pairkit.base.errors import ConfigError, RemoteError

_MAX_NAMED = 5  # repositories in a message
_IMPORTED = "dump"  # the "strategy" of a saved tracker
_CONTENT_SETTINGS = {
    *("strategy", "all_if_small", "include_private", "phrases", "title_words", "body_phrases"),
    *("max_phrase_share", "label_query"),
}


def crawl(
    github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings, show: RunDisplay
) -> list[RepoRow]:
    """Fetch everything that a dataset of these repositories needs; a repeated call continues."""
    names = _fetch_threads(github, store, repos, settings)
    _complete(github, store, names, settings, show)
    return outcomes(store, repos)


def update(
    github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings, show: RunDisplay
) -> list[RepoRow]:
    """Finish a crawl if necessary, then fetch the issues that changed since."""
    strategy = store.crawl_record().get("strategy")
    if strategy == _IMPORTED:
        _must_agree(store, {"server": crawl_record(settings)["server"]})
        names = crawlable(github.check(repos))
    else:
        crawl_settings = settings.crawl.model_copy(
            update={"strategy": strategy or settings.crawl.strategy}
        )
        settings = settings.model_copy(update={"crawl": crawl_settings})
        names = _fetch_threads(github, store, repos, settings)
    github.update(names)
    _complete(github, store, names, settings, show)
    return outcomes(store, repos)


def import_tracker(
    store: Store, folder: Path, say: Callable[[str], None], options: ImportOptions
) -> list[RepoRow]:
    """Fill a store from a saved tracker instead of a server; see `import_dumps`."""
    broken = BrokenRows(skip=options.skip_broken)
    dumps = find_trackers(folder, options, store.tickets(), broken)
    record = {"strategy": _IMPORTED, **saved_server(dumps)}
    _must_agree(store, {"strategy": _IMPORTED})
    old, new = (
        each.get("server", "github.com") for each in (store.crawl_record() or record, record)
    )
    if old != new:
        raise ConfigError(
            f"{store.path.parent}: contains issues of {old}, not {new}; choose another --work"
        )
    rows = import_dumps(dumps, folder, store, say, broken)
    store.set_crawl_record(record)
    return rows


def crawl_record(settings: BuildSettings) -> dict[str, Any]:
    """The settings that decide which data a crawl fetches, without timeouts and retries."""
    record = settings.crawl.model_dump(mode="json", include=_CONTENT_SETTINGS)
    return record | {"server": urlsplit(settings.crawl.api_url).hostname}


def outcomes(store: Store, repos: Sequence[str]) -> list[RepoRow]:
    """The stored outcomes of these repositories, in this order, without those never looked up."""
    rows = {row.name.lower(): row for row in store.repos()}
    return [rows[name.lower()] for name in repos if name.lower() in rows]


def _fetch_threads(
    github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings
) -> list[str]:
    """Check the repositories and run the strategy; returns the names of those that can be crawled."""
    record = crawl_record(settings)
    _must_agree(store, record)
    names = crawlable(github.check(repos))
    store.set_crawl_record(record)
    fetch = github.sweep if settings.crawl.strategy == "all" else github.search
    fetch(names)
    return names


def _must_agree(store: Store, record: Mapping[str, Any]) -> None:
    """Refuse to mix data of different settings: the store doesn't record which settings fetched what."""
    old = store.crawl_record()
    may_differ = {"include_private"}
    if record.get("strategy") == "all" and old.get("strategy") == "search":
        may_differ = _CONTENT_SETTINGS
    for key in sorted(old.keys() & record.keys() - may_differ):
        if old[key] != record[key]:
            values = f" ({old[key]}, not {record[key]})" if isinstance(old[key], str) else ""
            raise ConfigError(
                f"{store.path.parent}: contains a crawl with another setting of {key}{values}; choose "
                "another working folder, or use the former setting"
            )


def crawlable(rows: Sequence[RepoRow]) -> list[str]:
    """The names of the repositories that can be crawled; raises an error if there are none."""
    names = [row.name for row in rows if row.is_crawlable]
    if names:
        return names
    reasons = "; ".join(f"{row.name}: {row.detail or row.outcome}" for row in rows[:_MAX_NAMED])
    more = f"; and {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else ""
    problem = f"no repository can be crawled ({reasons}{more})"
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise RemoteError(f"{problem}; run the same command again")
    raise ConfigError(f"{problem}; check the names and the permissions of the token")


def _complete(
    github: GitHub, store: Store, names: Sequence[str], settings: BuildSettings, show: RunDisplay
) -> None:
    """Fetch the issues that verdicts depend on, mainly canonical issues, and issues for negatives."""
    repos = sorted({store.full_name(name) for name in names})
    positives = _fetch_dependencies(github, store, repos, settings, show)
    # A sweep has fetched every issue already.
    sampled = [repo for repo in repos if not store.tasks(repo, "sweep", done=True)]
    github.fetch_negative_sample(
        {repo: negative_sample_size(positives[repo], settings.pool) for repo in sampled},
        settings.seed,
    )


def _fetch_dependencies(
    github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings, show: RunDisplay
) -> Counter[str]:
    """Fetch the issues that verdicts depend on until there are no more; count duplicates by repository."""
    detector = Detector(store, settings.detect)
    positives: Counter[str] = Counter()
    fetched: set[IssueRef] = set()
    judged: Iterable[KeptVerdict] = detector.judge_all(repos, show)
    while True:
        unresolved: dict[IssueRef, frozenset[IssueRef]] = {}
        for kept in judged:
            if new := detector.unknown(kept) - fetched:
                unresolved[kept.verdict.ref] = new
            elif kept.verdict.outcome is VerdictOutcome.DUPLICATE:
                positives.update(kept.verdict.repos)
        if not unresolved:
            detector.keep()
            return positives
        missing = frozenset().union(*unresolved.values())
        github.fetch(sorted(missing))
        fetched |= missing
        judged = detector.judge_again(unresolved)


def negative_sample_size(positives: int, settings: PoolSettings) -> int:
    """Number of issues to fetch for negatives, by the number of duplicates in the repository."""
    return max(settings.at_least, round(settings.per_positive * positives)) if positives else 0
