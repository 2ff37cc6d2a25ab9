"""Crawl repositories into a store: candidates or everything, then what detection and negatives still need."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gis_builder.detect import might_matter
from gis_builder.github import GitHub
from gis_builder.records import IssueRef, Kind, Outcome
from gis_builder.settings import BuildSettings
from gis_builder.sources.archive import archive_files, read_candidates
from gis_builder.sources.dump import import_dump
from gis_builder.store import RepoOutcome, RepoRow, Store
from gis_builder.verdicts import judge, judge_some
from pairkit.errors import DataError, RemoteError

_RECORD = "crawl"
_CONTENT_SETTINGS = {
    "strategy",
    "include_private",
    "phrases",
    "title_words",
    "body_phrases",
    "max_phrase_share",
    "label_query",
}


def crawl(github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings) -> list[RepoRow]:
    """Fetch all that a dataset of these repositories needs; called again, it goes on.

    Returns:
        What became of each repository, in the order asked for.

    Raises:
        DataError: none of the repositories can be crawled.
        RemoteError: the server or the token failed for good.
    """
    names = _crawlable(github.check(repos))
    store.set_meta(_RECORD, json.dumps(crawl_record(settings)))
    fetch = github.sweep if settings.crawl.strategy == "sweep" else github.search
    fetch(names)
    _complete(github, store, names, settings)
    return outcomes(store, repos)


def update(github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings) -> list[RepoRow]:
    """Bring a finished crawl up to date; see `crawl`."""
    names = _crawlable(github.check(repos))
    github.update(names)
    _complete(github, store, names, settings)
    return outcomes(store, repos)


def crawl_archive(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    hours: Sequence[Path],
    settings: BuildSettings,
    say: Callable[[str], None],
) -> list[RepoRow]:
    """Fetch the threads that hours of GH Archive propose, and what they still need; see `crawl`.

    Raises:
        ConfigError: a path names no hour.
        DataError: a file can't be opened.
    """
    names = _crawlable(github.check(repos))
    store.set_meta(_RECORD, json.dumps(crawl_record(settings) | {"strategy": "archive"}))
    scan = read_candidates(archive_files(hours), names, might_matter)
    for words in scan.warnings:
        say(words)
    refs = [
        IssueRef(repo, number) for repo, numbers in sorted(scan.numbers.items()) for number in sorted(numbers)
    ]
    say(f"{len(refs):,} candidates in {scan.events:,} events of {scan.files:,} files")
    github.fetch(refs, with_thread=True)
    _complete(github, store, names, settings)
    return outcomes(store, repos)


def import_tracker(store: Store, folder: Path, say: Callable[[str], None]) -> list[RepoRow]:
    """Fill a store from a saved tracker instead of a server; see `sources.dump.import_dump`."""
    rows = import_dump(folder, store, say)
    store.set_meta(_RECORD, json.dumps({"strategy": "dump"}))
    return rows


def crawl_record(settings: BuildSettings) -> dict[str, Any]:
    """The settings of a crawl that bear on what it fetches; how patiently it asks does not."""
    crawled = settings.crawl.model_dump(mode="json", include=_CONTENT_SETTINGS)
    return crawled | {"server": urlsplit(settings.crawl.api_url).hostname}


def stored_record(store: Store) -> dict[str, Any]:
    """The record of the crawl that filled this store; empty where none has begun."""
    return dict(json.loads(store.meta(_RECORD) or "{}"))


def outcomes(store: Store, repos: Sequence[str]) -> list[RepoRow]:
    """The stored outcome of each repository, in the order asked for; those never looked up are left out."""
    rows = {row.name.lower(): row for row in store.repos()}
    return [rows[name.lower()] for name in repos if name.lower() in rows]


def full_names(rows: Sequence[RepoRow]) -> list[str]:
    """The repositories that were crawled, each once however often it was asked for, by name."""
    return sorted({row.full_name for row in rows if row.is_crawlable})


def failures(rows: Sequence[RepoRow]) -> RemoteError | None:
    """The error that says which repositories failed and may succeed when the command is run again."""
    failed = [row for row in rows if row.outcome is RepoOutcome.FAILED]
    if not failed:
        return None
    first = failed[0]
    return RemoteError(
        f"{len(failed)} of {len(rows)} repositories failed, the first {first.name} ({first.detail}); what "
        "was fetched is kept: run the same command again to go on"
    )


def _crawlable(rows: Sequence[RepoRow]) -> list[str]:
    names = [row.name for row in rows if row.is_crawlable]
    if names:
        return names
    reasons = "; ".join(f"{row.name}: {row.detail or row.outcome}" for row in rows[:5])
    raise DataError(f"no repository can be crawled ({reasons}); check the names and what the token may read")


def _complete(github: GitHub, store: Store, names: Sequence[str], settings: BuildSettings) -> None:
    """Fetch the canonical issues that detection names, and issues for negatives."""
    homes = sorted({store.full_name(name) for name in names})
    positives = _fetch_targets(github, store, homes, settings)
    if settings.crawl.strategy == "search":
        github.pool({repo: pool_size(positives[repo], settings) for repo in homes}, settings.seed)


def _fetch_targets(
    github: GitHub, store: Store, homes: Sequence[str], settings: BuildSettings
) -> Counter[str]:
    """Fetch what verdicts point at until they name nothing new; returns the duplicates of each repository.

    A target that turns out to be a pull request or missing changes its verdict, which may name another: only
    verdicts with a target that was just fetched are taken again.
    """
    positives: Counter[str] = Counter()
    asked: set[IssueRef] = set()
    verdicts = judge(store, homes, settings.detect)
    while True:
        unsettled: dict[IssueRef, list[IssueRef]] = {}
        for verdict in verdicts:
            unknown = [ref for ref in verdict.targets if store.kind(ref) is Kind.UNKNOWN and ref not in asked]
            if unknown:
                unsettled[verdict.ref] = unknown
            elif verdict.outcome is Outcome.DUPLICATE:
                positives[verdict.ref.repo] += 1
        if not unsettled:
            return positives
        wanted = {ref for unknown in unsettled.values() for ref in unknown}
        github.fetch(sorted(wanted))
        asked |= wanted
        verdicts = judge_some(store, unsettled, settings.detect)


def pool_size(positives: int, settings: BuildSettings) -> int:
    """How many further issues a repository with so many duplicates lends to negatives."""
    return max(settings.pool.at_least, round(settings.pool.per_positive * positives)) if positives else 0
