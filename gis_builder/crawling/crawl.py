"""Crawls repositories: likely duplicates or all issues, then the issues that verdicts and negatives need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.github import GitHub
from gis_builder.crawling.import_dump import GITHUB_HOST, import_dumps, saved_server
from gis_builder.crawling.status import reasons_against
from gis_builder.crawling.ticket_dump import find_trackers
from gis_builder.detection.detector import Detector
from gis_builder.detection.verdict_files import CachedVerdict
from gis_builder.settings import BuildSettings, PoolSettings
from gis_builder.store import IssueRef, RepoOutcome, RepoRow, Store, VerdictOutcome
from gis_builder.store.store import site_at
from gis_builder.trackers.dump import BrokenRows
from gis_builder.trackers.ticket_files import ImportOptions
from pairkit.base.errors import ConfigError, RemoteError

_IMPORTED = "dump"  # the "strategy" of a saved tracker
_CONTENT_SETTINGS = {
    "strategy",
    "all_if_small",
    "include_private",
    "phrases",
    "title_words",
    "body_phrases",
    "max_phrase_share",
}


def crawl(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    settings: BuildSettings,
    show: RunDisplay,
    *,
    update: bool = False,
) -> list[RepoRow]:
    """Fetch everything that a dataset of these repositories needs; a repeated call continues.

    With `update`, a crawl is finished if necessary, and then the issues that changed since are fetched.
    """
    strategy = store.crawl_record().get("strategy") if update else None
    if strategy == _IMPORTED:
        _check_server(store, crawl_record(settings)["server"])
        names = crawlable(github.check(repos))
    else:
        if strategy is not None:
            same_strategy = settings.crawl.model_copy(update={"strategy": strategy})
            settings = settings.model_copy(update={"crawl": same_strategy})
        names = _fetch_threads(github, store, repos, settings)
    if update:
        github.update(names)
    _complete(github, store, names, settings, show)
    return store.rows_of(repos)


def import_tracker(
    store: Store, folder: Path, say: Callable[[str], None], options: ImportOptions
) -> list[RepoRow]:
    """Fill a store from a saved tracker instead of a server; see `import_dumps`."""
    broken = BrokenRows(skip=options.skip_broken)
    dumps = find_trackers(folder, options, store.tickets(), broken)
    server = saved_server(dumps)
    earlier = store.crawl_record()
    if earlier:
        if earlier["strategy"] != _IMPORTED:
            raise ConfigError(
                f"{store.path.parent}: contains a crawl; choose another --work"
            )
        _check_server(store, server)
    record = {"strategy": _IMPORTED}
    if server != GITHUB_HOST:
        record["server"] = server
    store.set_crawl_record(record)
    return import_dumps(dumps, folder, store, say, broken)


def crawl_record(settings: BuildSettings) -> dict[str, Any]:
    """The settings that decide which data a crawl fetches, without timeouts and retries."""
    record = settings.crawl.model_dump(mode="json", include=_CONTENT_SETTINGS)
    return record | {"server": urlsplit(settings.crawl.api_url).hostname}


def _fetch_threads(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    settings: BuildSettings,
) -> list[str]:
    """Check the repositories and run the strategy; returns the names of those that can be crawled."""
    record = crawl_record(settings)
    _must_agree(store, record)
    names = crawlable(github.check(repos))
    store.set_crawl_record(record)
    if settings.crawl.strategy == "all":
        github.sweep(names)
    else:
        github.search(names)
    return names


def _must_agree(store: Store, record: Mapping[str, Any]) -> None:
    """Refuse to mix data of different settings: the store doesn't record which settings fetched what."""
    old = store.crawl_record()
    if old.get("strategy") == _IMPORTED:
        raise ConfigError(
            f"{store.path.parent}: contains an imported tracker; choose another --work, or bring it up to"
            " date with `gis crawl --update`"
        )
    may_differ = {"include_private"}
    if record.get("strategy") == "all" and old.get("strategy") == "search":
        may_differ = _CONTENT_SETTINGS
    for key in sorted(old.keys() & record.keys() - may_differ):
        if old[key] != record[key]:
            is_text = isinstance(old[key], str)
            values = f" ({old[key]}, not {record[key]})" if is_text else ""
            raise ConfigError(
                f"{store.path.parent}: contains a crawl with another setting of {key}{values}; choose "
                "another working folder, or use the former setting"
            )


def _check_server(store: Store, host: str) -> None:
    """Refuse to mix issues of several servers in a store of imported ones."""
    old = store.crawl_record().get("server", GITHUB_HOST)
    if site_at(old) != site_at(host):
        raise ConfigError(
            f"{store.path.parent}: contains issues of {old}, not {host}; choose another --work"
        )


def crawlable(rows: Sequence[RepoRow]) -> list[str]:
    """The names of the repositories that can be crawled; raises an error if there are none."""
    names = [row.name for row in rows if row.is_crawlable]
    if names:
        return names
    problem = f"no repository can be crawled ({'; '.join(reasons_against(rows))})"
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise RemoteError(f"{problem}; run the same command again")
    raise ConfigError(f"{problem}; check the names and the permissions of the token")


def _complete(
    github: GitHub,
    store: Store,
    names: Sequence[str],
    settings: BuildSettings,
    show: RunDisplay,
) -> None:
    """Fetch the issues that verdicts depend on, mainly canonical issues, and issues for negatives."""
    repos = sorted({store.full_name(name) for name in names})
    positives = _fetch_dependencies(github, store, repos, settings, show)
    sizes = {}
    for repo in repos:
        sweeps = store.tasks(repo, "sweep")
        if not any(task.done for task in sweeps):  # else it has every issue already
            sizes[repo] = negative_sample_size(positives[repo], settings.pool)
    github.fetch_negative_sample(sizes, settings.seed)


def _fetch_dependencies(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    settings: BuildSettings,
    show: RunDisplay,
) -> Counter[str]:
    """Fetch the issues that verdicts depend on until there are no more; count duplicates by repository."""
    detector = Detector(store, settings.detect)
    positives: Counter[str] = Counter()
    fetched: set[IssueRef] = set()
    judged: Iterable[CachedVerdict] = detector.judge_all(repos, show)
    while True:
        unresolved = {}
        for kept in judged:
            new = detector.unknown(kept) - fetched
            if new:
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
    if not positives:
        return 0
    return max(settings.at_least, round(settings.per_positive * positives))
