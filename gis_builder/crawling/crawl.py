"""Crawls repositories: likely duplicates or all issues, then the issues that verdicts and negatives need.

`plan` estimates the cost in advance. That of a sweep is computed from the number of issues and GitHub's cost
formula. That of a search depends on the texts of the issues, so it is estimated with the rates of one large
repository.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.github import GitHub
from gis_builder.crawling.github.search import is_cheaper_swept, search_queries
from gis_builder.crawling.import_dump import GITHUB_HOST, import_dumps, saved_server
from gis_builder.crawling.status import outcome_lines
from gis_builder.crawling.ticket_dump import find_trackers
from gis_builder.detection.detector import Detector
from gis_builder.detection.verdict_files import CachedVerdict
from gis_builder.settings import BuildSettings, CrawlSettings, PoolSettings
from gis_builder.store import (
    IssueRef,
    RepoOutcome,
    RepoRow,
    Store,
    Usage,
    VerdictOutcome,
)
from gis_builder.store.store import locked_store, site_at
from gis_builder.trackers.dump import BrokenRows
from gis_builder.trackers.ticket_files import ImportOptions
from pairkit.base.cli.result_table import Printed, ResultTable
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
    "label_query",
}

# Measured on issues 1 to 30,664 of rust-lang/rust with the default phrases, see benchmarks/README.md.
_MEASURED_ON = "rust-lang/rust"
_HITS_PER_ISSUE = 0.382  # results of all searches
_CANDIDATES_PER_ISSUE = 0.258  # distinct issues in these results
_DUPLICATES_PER_ISSUE = 0.104  # duplicates among the candidates
_TARGETS_PER_ISSUE = 0.062  # canonical issues that are not candidates
_TOP_UPS = 0.02  # share of threads with more comments than one query fetches: 0.011 measured, plus a margin

_POINTS_PER_HOUR = 5000
_SECONDS_PER_REQUEST = 1.2
_CONNECTIONS_PER_POINT = 100
_THREAD_CONNECTIONS = 3  # comments, events, labels


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
    homes = sorted({store.full_name(name) for name in names})
    positives = _fetch_dependencies(github, store, homes, settings, show)
    sizes = {}
    for repo in homes:
        sweeps = store.tasks(repo, "sweep")
        if not any(task.done for task in sweeps):  # else it has every issue already
            sizes[repo] = negative_sample_size(positives[repo], settings.pool)
    github.fetch_negative_sample(sizes, settings.seed)
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
    github: GitHub, store: Store, repos: Sequence[str], settings: BuildSettings
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


def _must_agree(store: Store, record: Mapping[str, object]) -> None:
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
    problem = f"no repository can be crawled ({'; '.join(outcome_lines(rows))})"
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise RemoteError(f"{problem}; run the same command again")
    raise ConfigError(f"{problem}; check the names and the permissions of the token")


def _fetch_dependencies(
    github: GitHub,
    store: Store,
    repos: Sequence[str],
    settings: BuildSettings,
    show: RunDisplay,
) -> Counter[str]:
    """Fetch the issues that verdicts depend on, mainly canonical ones; count duplicates by repository."""
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


@dataclass(frozen=True)
class RepoPlan:
    """The cost of one repository; 0 if there is nothing to fetch."""

    row: RepoRow
    points: int = 0
    requests: int = 0

    @property
    def hours(self) -> float:
        """Hours with one token."""
        return hours(self.points, self.requests)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of a repository."""
        return {
            "repository": self.row.name,
            "outcome": self.row.outcome.value,
            "full_name": self.row.full_name,
            "detail": self.row.detail,
            "issues": self.row.issue_count,
            "points": self.points,
            "requests": self.requests,
            "hours": round(self.hours, 3),
        }


@dataclass(frozen=True, repr=False)
class Plan(Printed):
    """The estimated cost of a crawl by repository, and the cost of the estimate."""

    strategy: str
    repositories: tuple[RepoPlan, ...]
    spent: Usage
    build: str = ""  # the command of a build with the same options

    @property
    def points(self) -> int:
        """Total points."""
        return sum(repo.points for repo in self.repositories)

    @property
    def requests(self) -> int:
        """Total requests."""
        return sum(repo.requests for repo in self.repositories)

    @property
    def hours(self) -> float:
        """Hours with one token; several tokens share the work."""
        return hours(self.points, self.requests)

    @property
    def is_estimate(self) -> bool:
        """Whether the plan uses rates measured on another repository."""
        return self.strategy == "search"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the plan."""
        return {
            "strategy": self.strategy,
            "estimate": self.is_estimate,
            "points": self.points,
            "requests": self.requests,
            "hours_per_token": round(self.hours, 3),
            "repositories": [repo.to_dict() for repo in self.repositories],
            "spent": {"points": self.spent.points, "requests": self.spent.requests},
        }

    def next_steps(self) -> list[tuple[str, str]]:
        """The command that follows a plan."""
        step = ("build the dataset", self.build)
        return [step] if self.build and self.requests else []

    def tables(self) -> list[ResultTable]:
        """The table, if there is anything to crawl."""
        return [self.table()] if self.requests else []

    def table(self) -> ResultTable:
        """A row for each repository that can be crawled, and the totals."""
        rows = ResultTable("repository", "issues", "points", "requests", "hours")
        priced = [repo for repo in self.repositories if repo.requests]
        for repo in priced:
            rows.add_row(
                repo.row.name,
                repo.row.issue_count,
                repo.points,
                repo.requests,
                f"{repo.hours:.2f}",
            )
        rows.add_rule()
        issues_of = {repo.row.full_name: repo.row.issue_count for repo in priced}
        issues = sum(issues_of.values())
        rows.add_row("all", issues, self.points, self.requests, f"{self.hours:.2f}")
        return rows

    def lines(self) -> list[str]:
        """Lines on renamed or missing repositories, and on the accuracy of the estimate."""
        lines = outcome_lines(repo.row for repo in self.repositories)
        if not self.requests:
            return lines
        basis = f"Estimated with rates of {_MEASURED_ON}; other repositories may need half or twice as much."
        if not self.is_estimate:
            basis = f"Computed, assuming that {_TOP_UPS:.0%} of the threads need a second query."
        cost = f"This estimate cost {self.spent.points} points."
        return [
            *lines,
            f"{basis} {cost} Hours are for one token; more tokens divide them.",
        ]


def plan(
    names: Sequence[str],
    settings: BuildSettings,
    open_github: Callable[[Store], GitHub],
) -> Plan:
    """Look up the repositories and estimate the cost of crawling them; nothing is stored."""
    with (
        tempfile.TemporaryDirectory(prefix="gis-plan-") as folder,
        locked_store(Path(folder)) as store,
    ):
        with open_github(store) as github:
            rows = github.check(names)
        crawlable(rows)
        spent = sum(store.usage().values(), Usage())
    priced = set()
    repos = []
    for row in rows:
        is_new = row.is_crawlable and row.full_name not in priced
        repos.append(price(row, settings) if is_new else RepoPlan(row))
        priced.add(row.full_name)
    return Plan(settings.crawl.strategy, tuple(repos), spent)


def price(row: RepoRow, settings: BuildSettings) -> RepoPlan:
    """The cost of crawling an existing repository."""
    if settings.crawl.strategy == "all" or is_cheaper_swept(row, settings.crawl):
        return RepoPlan(row, *_sweep(row.issue_count, settings.crawl))
    return RepoPlan(row, *_search(row, settings))


def hours(points: int, requests: int) -> float:
    """Hours with one token: limited by its points per hour or by response times."""
    return max(points / _POINTS_PER_HOUR, requests * _SECONDS_PER_REQUEST / 3600)


def _sweep(issues: int, settings: CrawlSettings) -> tuple[int, int]:
    """Points and requests for all threads, including further comments of long ones."""
    pages = _batches(issues, settings.thread_batch)
    top_ups = _batches(issues * _TOP_UPS, settings.thread_batch)
    # The listing is one connection, and so are the further comments of a thread.
    points = pages * _points(1 + _THREAD_CONNECTIONS * settings.thread_batch)
    return points + top_ups * _points(settings.thread_batch), pages + top_ups


def _search(row: RepoRow, settings: BuildSettings) -> tuple[int, int]:
    """Points and requests for searches, candidates' threads, canonical issues and the negative sample."""
    crawl = settings.crawl
    issues = row.issue_count
    searches = len(search_queries(row, crawl))
    # A search has one page per hundred hits, but at least one.
    discovery = _batches(searches + issues * _HITS_PER_ISSUE / 100, crawl.search_batch)
    threads = _batches(issues * _CANDIDATES_PER_ISSUE, crawl.thread_batch)
    top_ups = _batches(issues * _CANDIDATES_PER_ISSUE * _TOP_UPS, crawl.thread_batch)
    targets = _batches(issues * _TARGETS_PER_ISSUE, crawl.issue_batch)
    sample = min(
        issues,
        negative_sample_size(round(issues * _DUPLICATES_PER_ISSUE), settings.pool),
    )
    # The negative sample is drawn from all numbers, including pull requests.
    numbers_per_issue = max(1.0, row.max_number / max(1, issues))
    drawn = _batches(sample * numbers_per_issue, crawl.issue_batch)
    points = (
        discovery * _points(crawl.search_batch)
        + threads * _points(_THREAD_CONNECTIONS * crawl.thread_batch)
        + top_ups * _points(crawl.thread_batch)
        + targets
        + drawn
    )
    return points, discovery + threads + top_ups + targets + drawn


def _batches(items: float, size: int) -> int:
    return math.ceil(round(items, 6) / size)


def _points(connections: int) -> int:
    """GitHub's cost formula: connections / 100, rounded, and at least one point."""
    return max(1, math.floor(connections / _CONNECTIONS_PER_POINT + 0.5))
