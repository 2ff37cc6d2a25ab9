"""How far a crawl is, read from its store: while it runs, after it was stopped, and when it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gis_builder.store import RateLimit, RepoOutcome, RepoRow, Store, Tally, Usage
from pairkit.app.errors import RemoteError
from pairkit.app.result_table import ResultTable, escape

_FEW = 3  # repositories of one outcome that are named each on a line of its own
_COUNTED = ("issues", "threads", "left", "points", "requests")


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """What of one repository is stored and what is still to be done."""

    row: RepoRow
    tally: Tally
    usage: Usage

    @property
    def stage(self) -> str:
        """What happens next, in a word or two."""
        if not self.row.is_crawlable:
            return self.row.outcome.value.replace("_", " ")
        for kind, words in (("update", "updating"), ("search", "searching"), ("sweep", "sweeping")):
            if any(task.endswith(kind) for task in self.tally.left):
                return words
        if self.tally.pending:
            return "reading threads"
        if self.tally.top_ups:
            return "completing threads"
        return "done" if self.tally.done else "waiting"

    @property
    def progress(self) -> float:
        """The share that is done, in [0, 1]; a guess while a search has not found all its candidates."""
        if self.stage in ("done", "updating"):
            return 1.0
        if self.tally.done["search"] or self.tally.left["search"]:
            done = self.tally.done["search"] + self.tally.begun
            return done / max(1, done + self.tally.left["search"] + self.tally.pending)
        return min(0.99, self.tally.begun / max(1, self.row.issue_count))

    def to_dict(self) -> dict[str, Any]:
        """One row for scripts."""
        return {
            "repository": self.row.name,
            "outcome": self.row.outcome.value,
            "detail": self.row.detail,
            "stage": self.stage,
            "issues": self.tally.issues,
            "issues_expected": self.row.issue_count,
            "threads": self.tally.threads,
            "comments": self.tally.comments,
            "wishes_left": self.tally.pending,
            "threads_to_complete": self.tally.top_ups,
            "tasks_left": self.tally.left.total(),
            "points": self.usage.points,
            "requests": self.usage.requests,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Status:
    """How far a whole crawl is.

    Attributes:
        repositories: Each that was asked for.
        usage: What all of it cost, including what belongs to no repository.
        rate_limit: What the server said last of a token's limit.
        warnings: Repository and words of what a person should know about how complete the crawl is.
    """

    repositories: tuple[RepoStatus, ...]
    usage: Usage
    rate_limit: RateLimit | None
    warnings: tuple[tuple[str, str], ...]

    @property
    def eta_s(self) -> float | None:
        """Seconds to go for one worker at the pace so far; None where there is no pace yet, 0 when done.

        Repositories count by their number of issues. Waits for limits are part of the pace.
        """
        crawled = [repo for repo in self.repositories if repo.row.is_crawlable]
        done = sum(repo.row.issue_count * repo.progress for repo in crawled)
        left = sum(repo.row.issue_count * (1 - repo.progress) for repo in crawled)
        if not left:
            return 0.0
        return self.usage.seconds * left / done if done else None

    def to_dict(self) -> dict[str, Any]:
        """The status for scripts."""
        limit = self.rate_limit
        return {
            "repositories": [repo.to_dict() for repo in self.repositories],
            **self.totals(),
            "points_left": limit and limit.remaining,
            "points_reset_at": limit and limit.reset,
            "eta_s": None if self.eta_s is None else round(self.eta_s, 1),
            "warnings": [{"repository": repo, "words": words} for repo, words in self.warnings],
        }

    def totals(self, names: Collection[str] | None = None) -> dict[str, Any]:
        """Sums over all repositories, or those of these names; each once however often it was asked for."""
        asked = [repo for repo in self.repositories if names is None or repo.row.name in names]
        distinct = {repo.row.full_name: repo for repo in asked if repo.row.full_name}.values()
        return {
            "issues": sum(repo.tally.issues for repo in distinct),
            "threads": sum(repo.tally.threads for repo in distinct),
            "comments": sum(repo.tally.comments for repo in distinct),
            "points": self.usage.points,
            "requests": self.usage.requests,
            "seconds": round(self.usage.seconds, 3),
        }

    def table(self) -> ResultTable:
        """A row for each repository, and the sums."""
        rows = ResultTable("repository", "stage", *_COUNTED, left=("stage",))
        for repo in self.repositories:
            figures = _figures(repo) if repo.row.is_crawlable else [None] * len(_COUNTED)
            rows.add_row(repo.row.name, repo.stage, *figures)
        sums = {**self.totals(), "left": self.left}
        rows.add_rule()
        rows.add_row("all", "", *(sums[name] for name in _COUNTED))
        return rows

    @property
    def left(self) -> int:
        """Threads, searches and lists that are still to be had."""
        return sum(repo.tally.open_work for repo in self.repositories)

    def lines(self) -> list[str]:
        """What is odd about repositories, the time to go, the points left, the warnings; a line each."""
        lines = [*outcome_lines(repo.row for repo in self.repositories), _time_words(self)]
        if self.rate_limit:
            lines.append(self.rate_limit.words(time.time()))
        if self.warnings:
            lines.append(f"{len(self.warnings)} warnings:")
            lines += [f"  {repo}: {words}" if repo else f"  {words}" for repo, words in self.warnings]
        return lines

    def __repr__(self) -> str:
        return "\n".join([str(self.table()), *self.lines()])

    def _repr_html_(self) -> str:
        lines = "<br>".join(map(escape, self.lines()))
        return f"{self.table()._repr_html_()}<p><small>{lines}</small></p>"


def read_status(store: Store) -> Status:
    """Read how far a crawl is; another process may be writing to the store."""
    rows, usage, tallies = store.repos(), store.usage(), store.tallies()
    repos = [
        RepoStatus(row, tallies.get(row.full_name, Tally()), usage.get(row.full_name, Usage()))
        for row in rows
    ]
    return Status(tuple(repos), sum(usage.values(), Usage()), store.rate_limit(), tuple(store.warnings()))


def _figures(repo: RepoStatus) -> list[str | int]:
    """Issues stored of those expected; whole threads; threads, searches and lists still to be had; cost."""
    counts = (repo.tally.threads, repo.tally.open_work, repo.usage.points, repo.usage.requests)
    return [f"{repo.tally.issues:,}/{repo.row.issue_count:,}", *counts]


def _time_words(status: Status) -> str:
    spent = f"{status.usage.seconds:,.0f} s spent on requests and waits"
    if status.eta_s is None:
        return f"{spent}; too early to say how long it will take"
    if not status.eta_s:
        return spent
    return f"{spent}; about {status.eta_s / 60:,.1f} min to go at this pace, for one token"


def outcome_lines(rows: Iterable[RepoRow]) -> list[str]:
    """The repositories that were not simply found: each on a line, or many of one kind on one."""
    kinds: dict[tuple[str, str], list[RepoRow]] = {}
    for row in rows:
        if row.outcome is not RepoOutcome.OK:
            kinds.setdefault((row.outcome.value.replace("_", " "), row.detail), []).append(row)
    lines = []
    for (words, detail), alike in kinds.items():
        why = f" ({detail})" if detail else ""
        if len(alike) > _FEW:
            names = ", ".join(row.name for row in alike[:_FEW])
            lines.append(f"{len(alike)} repositories {words}{why}: {names} and {len(alike) - _FEW} more")
        else:
            lines += [f"{row.name}: {words}{why}" for row in alike]
    return lines


@dataclass(frozen=True, repr=False)
class Crawled:
    """What a crawl, or an import, brought into its working folder.

    Attributes:
        work: The folder.
        repositories: What became of each repository that was asked for.
        status: How far the folder's crawl is, and what it cost in all its runs.
    """

    work: Path
    repositories: Sequence[RepoRow]
    status: Status

    def to_dict(self) -> dict[str, Any]:
        """What was brought, and its cost, as one object for scripts."""
        outcomes = Counter(row.outcome.value for row in self.repositories)
        return {
            "repositories": len(self.repositories),
            "outcomes": dict(sorted(outcomes.items())),
            **self.status.totals({row.name for row in self.repositories}),
            "warnings": len(self.status.warnings),
        }

    def notes(self) -> list[str]:
        """The repositories that were not simply crawled, and what all of it cost; a line each."""
        spent = self.status.usage
        cost = f"{spent.points:,} points in {spent.requests:,} requests so far"
        return [*outcome_lines(self.repositories), cost]

    def tables(self) -> list[ResultTable]:
        """None: `gis status` shows them."""
        return []

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """What comes after a crawl."""
        return [("find the duplicates", ["gis", "detect", "--work", str(self.work)])]

    def __repr__(self) -> str:
        return repr(self.status)

    def _repr_html_(self) -> str:
        return self.status._repr_html_()


class IncompleteCrawlError(RemoteError):
    """Some repositories failed; what was fetched is kept, and the same call continues.

    Attributes:
        crawled: What became of all of them.
    """

    def __init__(self, crawled: Crawled) -> None:
        self.crawled = crawled
        failed = [row for row in crawled.repositories if row.outcome is RepoOutcome.FAILED]
        super().__init__(
            f"{len(failed)} of {len(crawled.repositories)} repositories failed, the first {failed[0].name} "
            f"({failed[0].detail}); what was fetched is kept: run the same command again to continue"
        )
