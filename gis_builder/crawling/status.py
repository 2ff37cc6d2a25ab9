"""The status of a crawl, read from its store, and the result of a crawl or import."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gis_builder.store import (
    RATE_LIMIT,
    RateLimit,
    RepoOutcome,
    RepoRow,
    Store,
    Tally,
    Usage,
)
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import RemoteError

_MAX_NAMED = 3  # repositories or files
# The stage while a kind of task is open, the latest first.
_STAGES = {"update": "updating", "search": "searching", "sweep": "sweeping"}
_COUNTED = ("issues", "threads", "left", "points", "requests")


@dataclass(frozen=True)
class RepoStatus:
    """The finished and remaining work of one repository."""

    row: RepoRow
    tally: Tally
    usage: Usage

    @property
    def stage(self) -> str:
        """The current stage."""
        if not self.row.is_crawlable:
            return self.row.outcome.value.replace("_", " ")
        for kind, stage in _STAGES.items():
            if kind in self.tally.left:
                return stage
        if self.tally.pending:
            return "reading threads"
        if self.tally.top_ups:
            return "completing threads"
        return "done" if self.tally.done else "waiting"

    @property
    def progress(self) -> float:
        """The finished share in [0, 1], estimated until the search has found all candidates."""
        if self.stage in ("done", "updating"):
            return 1.0
        tally = self.tally
        searches = tally.done["search"] + tally.left["search"]
        if searches:
            done = tally.done["search"] + tally.begun
            return done / max(1, searches + tally.begun + tally.pending)
        return min(0.99, tally.begun / max(1, self.row.issue_count))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of a repository."""
        tally = self.tally
        return {
            "repository": self.row.name,
            "outcome": self.row.outcome.value,
            "detail": self.row.detail,
            "stage": self.stage,
            "issues": tally.issues,
            "issues_expected": self.row.issue_count,
            "threads": tally.threads,
            "comments": tally.comments,
            "threads_left": tally.pending,
            "threads_to_complete": tally.top_ups,
            "tasks_left": tally.left.total(),
            "points": self.usage.points,
            "requests": self.usage.requests,
        }


@dataclass(frozen=True, repr=False)
class Status(Printed):
    """The progress of a whole crawl.

    Attributes:
        repositories: Each requested repository.
        usage: The cost of all requests.
        rate_limit: The last known limit of a token.
        warnings: Repository and text of each warning, such as on missing comments.
    """

    repositories: tuple[RepoStatus, ...]
    usage: Usage
    rate_limit: RateLimit | None
    warnings: tuple[tuple[str, str], ...]

    @property
    def eta_s(self) -> float | None:
        """Seconds left with one token, from the time per issue so far; None if unknown, 0 when done."""
        done = 0.0
        left = 0.0
        for repo in self._distinct():
            if repo.row.is_crawlable:
                done += repo.row.issue_count * repo.progress
                left += repo.row.issue_count * (1 - repo.progress)
        if not left:
            return 0.0
        return self.usage.seconds * left / done if done else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the status."""
        limit = self.rate_limit
        return {
            "repositories": [repo.to_dict() for repo in self.repositories],
            **self.totals(),
            "points_left": limit and limit.remaining,
            "points_reset_at": limit and limit.reset,
            "eta_s": None if self.eta_s is None else round(self.eta_s, 1),
            "warnings": [
                {"repository": repo, "text": text} for repo, text in self.warnings
            ],
        }

    def totals(self, names: Collection[str] | None = None) -> dict[str, Any]:
        """Sums over all or these repositories."""
        tallies = [repo.tally for repo in self._distinct(names)]
        return {
            "issues": sum(tally.issues for tally in tallies),
            "threads": sum(tally.threads for tally in tallies),
            "comments": sum(tally.comments for tally in tallies),
            "points": self.usage.points,
            "requests": self.usage.requests,
            "seconds": round(self.usage.seconds, 3),
        }

    def _distinct(self, names: Collection[str] | None = None) -> list[RepoStatus]:
        """All or these repositories; a repository with two names counts once."""
        by_name = {}
        for repo in self.repositories:
            if repo.row.full_name and (names is None or repo.row.name in names):
                by_name[repo.row.full_name] = repo
        return list(by_name.values())

    def table(self) -> ResultTable:
        """A row for each repository, and the totals."""
        # An import has no cost, so the columns for points and requests are left out.
        counted = _COUNTED if self.usage.requests else _COUNTED[:3]
        rows = ResultTable("repository", "stage", *counted, left=("stage",))
        for repo in self.repositories:
            figures: list[str | int | None] = [None] * len(_COUNTED)
            if repo.row.is_crawlable:
                figures = [
                    f"{repo.tally.issues:,}/{repo.row.issue_count:,}",
                    repo.tally.threads,
                    repo.tally.open_work,
                    repo.usage.points,
                    repo.usage.requests,
                ]
            rows.add_row(repo.row.name, repo.stage, *figures[: len(counted)])
        sums = {**self.totals(), "left": self.left}
        rows.add_rule()
        rows.add_row("all", "", *(sums[name] for name in counted))
        return rows

    @property
    def left(self) -> int:
        """Threads, searches and lists that are still to be fetched."""
        return sum(repo.tally.open_work for repo in self._distinct())

    def lines(self) -> list[str]:
        """Lines on renamed or missing repositories, time and points left, and warnings."""
        lines = outcome_lines(repo.row for repo in self.repositories)
        if self.usage.requests:
            lines.append(_format_time(self))
        if self.rate_limit:
            lines.append(self.rate_limit.describe(time.time()))
        if self.warnings:
            lines.append(f"{len(self.warnings)} warnings:")
        for repo, text in self.warnings:
            lines.append(f"  {repo}: {text}" if repo else f"  {text}")
        return lines


def read_status(store: Store) -> Status:
    """Read the status of a crawl; another process may be writing to the store."""
    rows = store.repos()
    usage = store.usage()
    tallies = store.tallies()
    repos = []
    for row in rows:
        tally = tallies.get(row.full_name, Tally())
        spent = usage.get(row.full_name, Usage())
        repos.append(RepoStatus(row, tally, spent))
    return Status(
        repositories=tuple(repos),
        usage=sum(usage.values(), Usage()),
        rate_limit=store.meta_json(RATE_LIMIT, RateLimit),
        warnings=tuple(store.warnings()),
    )


def _format_time(status: Status) -> str:
    spent = f"{status.usage.seconds:,.0f} s spent on requests and waits"
    if status.eta_s is None:
        return f"{spent}; time left unknown"
    if not status.eta_s:
        return spent
    return (
        f"{spent}; about {status.eta_s / 60:,.1f} min left at this speed, for one token"
    )


def outcome_lines(rows: Iterable[RepoRow]) -> list[str]:
    """Lines on renamed, missing and failed repositories; many with the same outcome share a line."""
    by_outcome: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.outcome is not RepoOutcome.OK:
            outcome = row.outcome.value.replace("_", " ")
            by_outcome.setdefault((outcome, row.detail), []).append(row.name)
    lines = []
    for (outcome, detail), names in by_outcome.items():
        reason = f" ({detail})" if detail else ""
        if len(names) > _MAX_NAMED:
            lines.append(
                f"{len(names)} repositories {outcome}{reason}: {first_names(names)}"
            )
        else:
            lines += [f"{name}: {outcome}{reason}" for name in names]
    return lines


def first_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_MAX_NAMED])
    others = len(names) - _MAX_NAMED
    return f"{shown} and {others:,} more" if others > 0 else shown


def without_issues(row: RepoRow, *, has_issues: bool) -> RepoRow | None:
    """The row of a repository whose issues are disabled, or that has none; None for any other."""
    if not has_issues:
        disabled = RepoOutcome.ISSUES_DISABLED
        return replace(row, outcome=disabled, detail="issues are disabled")
    if not row.issue_count:
        return replace(row, outcome=RepoOutcome.EMPTY, detail="no issues")
    return None


@dataclass(frozen=True, repr=False)
class Crawled(CommandResult):
    """The result of a crawl or an import.

    Attributes:
        work: The working folder.
        repositories: The outcome of each requested repository.
        status: The progress and the cost of the folder's crawl, over all runs.
        is_import: Whether all issues are from files.
    """

    work: Path
    repositories: Sequence[RepoRow]
    status: Status
    is_import: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: counts and cost."""
        outcomes = Counter(row.outcome.value for row in self.repositories)
        return {
            "repositories": len(self.repositories),
            "outcomes": dict(sorted(outcomes.items())),
            **self.status.totals({row.name for row in self.repositories}),
            "warnings": len(self.status.warnings),
        }

    def notes(self) -> list[str]:
        """Lines on renamed, missing and failed repositories, and the cost of all runs."""
        spent = self.status.usage
        notes = outcome_lines(self.repositories)
        if spent.requests:
            notes.append(
                f"{spent.points:,} points in {spent.requests:,} requests so far"
            )
        return notes

    def tables(self) -> list[ResultTable]:
        """Empty: `gis status` shows them."""
        return []

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The commands that find marked duplicates and, among all issues, unmarked ones."""
        work = ["--work", str(self.work)]
        steps = [("find the marked duplicates", ["gis", "detect", *work])]
        if self.is_import:
            goal = (
                "find unmarked ones by a model, with `aoe index` and `aoe duplicates`"
            )
            table = f"{self.work.stem}.parquet"
            steps.append((goal, ["gis", "render", *work, "--out", table]))
        return steps

    def __repr__(self) -> str:
        return repr(self.status)

    def _repr_html_(self) -> str:
        return self.status._repr_html_()


class IncompleteCrawlError(RemoteError):
    """Some repositories failed; fetched data is kept, and the same call continues.

    Attributes:
        crawled: The outcome of every repository.
    """

    def __init__(self, crawled: Crawled) -> None:
        self.crawled = crawled
        failed = [
            row for row in crawled.repositories if row.outcome is RepoOutcome.FAILED
        ]
        detail = failed[0].detail.removesuffix(
            "; run the same command again to continue"
        )
        super().__init__(
            f"{len(failed)} of {len(crawled.repositories)} repositories failed, first {failed[0].name} "
            f"({detail}); fetched data is kept: run the same command again to continue"
        )
