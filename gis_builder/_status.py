"""How far a crawl is, read from its store: while it runs, after it was stopped, and when it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.json import Decoder

from gis_builder._decoding import Malformed, decode
from gis_builder._store import RepoRow, Store, Usage
from pairkit.database import connect, database_errors
from pairkit.notebook import escape
from pairkit.terminal import table

if TYPE_CHECKING:
    from pairkit.result_table import ResultTable

RATE_LIMIT = "budget"  # the key of the store's note on what the server said last of its limit
_COUNTED = ("issues", "threads", "left", "points", "requests")
_POOL = "pool"  # a task that fixes a sample's order and is never done

# One snapshot, by repository: a crawl may be writing meanwhile.
_ISSUES = "SELECT repo, count(*), sum(depth > 0), sum(depth = 2) FROM issues WHERE NOT is_pull GROUP BY repo"
_COMMENTS = "SELECT repo, count(*) FROM comments GROUP BY repo"
_WISHES = "SELECT repo, count(*) FROM wishes GROUP BY repo"
_TOP_UPS = "SELECT repo, count(DISTINCT number) FROM top_ups GROUP BY repo"
_TASKS = "SELECT repo, kind, sum(done), sum(NOT done) FROM tasks WHERE kind <> ? GROUP BY repo, kind"


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """What of one repository is stored and what is still to be done."""

    row: RepoRow
    issues: int  # stored, with or without their threads
    begun: int  # threads of which something is stored
    threads: int  # whole threads
    comments: int
    wishes: int  # issues to be fetched by number
    top_ups: int  # threads to be completed
    done: Counter[str]  # finished tasks by kind
    left: Counter[str]  # open tasks by kind
    usage: Usage

    @property
    def stage(self) -> str:
        """What happens next, in a word or two."""
        if not self.row.is_crawlable:
            return self.row.outcome.value.replace("_", " ")
        for kind, words in (("update", "updating"), ("search", "searching"), ("sweep", "sweeping")):
            if any(task.endswith(kind) for task in self.left):
                return words
        if self.wishes:
            return "reading threads"
        if self.top_ups:
            return "completing threads"
        return "done" if self.done else "waiting"

    @property
    def open_work(self) -> int:
        """Threads, searches and lists that are still to be had."""
        return self.wishes + self.top_ups + self.left.total()

    @property
    def progress(self) -> float:
        """The share that is done, in [0, 1]; a guess while a search has not found all its candidates."""
        if self.stage in ("done", "updating"):
            return 1.0
        if self.done["search"] or self.left["search"]:
            done = self.done["search"] + self.begun
            return done / max(1, done + self.left["search"] + self.wishes)
        if self.done["rest sweep"] or self.left["rest sweep"]:
            return min(0.99, self.done["rest sweep"] / 3)  # of issues, comments and events
        return min(0.99, self.begun / max(1, self.row.issue_count))

    def to_dict(self) -> dict[str, Any]:
        """One row for scripts."""
        return {
            "repository": self.row.name,
            "outcome": self.row.outcome.value,
            "detail": self.row.detail,
            "stage": self.stage,
            "issues": self.issues,
            "issues_expected": self.row.issue_count,
            "threads": self.threads,
            "comments": self.comments,
            "wishes_left": self.wishes,
            "threads_to_complete": self.top_ups,
            "tasks_left": self.left.total(),
            "points": self.usage.points,
            "requests": self.usage.requests,
        }


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What the server said last of a token's limit."""

    limit: int
    remaining: int
    reset: Annotated[float, Meta(ge=0, le=1e12)]  # epoch seconds, the server's clock

    @classmethod
    def parse(cls, text: str | None) -> RateLimit | None:
        """Read the store's note; None where there is none, or none that can be read."""
        try:
            return decode((text or "").encode(), Decoder(cls))
        except Malformed:
            return None

    def words(self, now: float) -> str:
        """The limit in a sentence."""
        if now >= self.reset:
            return f"{self.limit:,} points left: the hour of the last answer is over"
        at = time.strftime("%H:%M", time.localtime(self.reset))
        return f"{self.remaining:,} of {self.limit:,} points left until {at}"


@dataclass(frozen=True, slots=True, repr=False)
class Status:
    """How far a whole crawl is.

    Attributes:
        repos: Each repository that was asked for.
        usage: What all of it cost, what no repository paid for included.
        rate_limit: What the server said last of a token's limit.
        warnings: Repository and words of what a person should know about how complete the crawl is.
    """

    repos: tuple[RepoStatus, ...]
    usage: Usage
    rate_limit: RateLimit | None
    warnings: tuple[tuple[str, str], ...]

    @property
    def eta_s(self) -> float | None:
        """Seconds to go for one worker at the pace so far; None where there is no pace yet, 0 when done.

        Repositories count by their number of issues. Waits for limits are part of the pace.
        """
        crawled = [repo for repo in self.repos if repo.row.is_crawlable]
        done = sum(repo.row.issue_count * repo.progress for repo in crawled)
        left = sum(repo.row.issue_count * (1 - repo.progress) for repo in crawled)
        if not left:
            return 0.0
        return self.usage.seconds * left / done if done else None

    def to_dict(self) -> dict[str, Any]:
        """The status for scripts."""
        limit = self.rate_limit
        return {
            "repositories": [repo.to_dict() for repo in self.repos],
            **self.totals(),
            "points_left": limit and limit.remaining,
            "points_reset_at": limit and limit.reset,
            "eta_s": None if self.eta_s is None else round(self.eta_s, 1),
            "warnings": [{"repository": repo, "words": words} for repo, words in self.warnings],
        }

    def totals(self, names: Collection[str] | None = None) -> dict[str, Any]:
        """Sums over all repositories, or those of these names; each once however often it was asked for."""
        asked = [repo for repo in self.repos if names is None or repo.row.name in names]
        distinct = {repo.row.full_name: repo for repo in asked if repo.row.full_name}.values()
        return {
            "issues": sum(repo.issues for repo in distinct),
            "threads": sum(repo.threads for repo in distinct),
            "comments": sum(repo.comments for repo in distinct),
            "points": self.usage.points,
            "requests": self.usage.requests,
            "seconds": round(self.usage.seconds, 3),
        }

    def table(self) -> ResultTable:
        """A row for each repository, and the sums."""
        rows = table("repository", "stage", *_COUNTED, left=("stage",))
        for repo in self.repos:
            figures = _figures(repo) if repo.row.is_crawlable else [None] * len(_COUNTED)
            rows.add_row(repo.row.name, repo.stage, *figures)
        totals = self.totals()
        rows.add_rule()
        rows.add_row("all", "", *(totals.get(name) if name != "left" else self.left for name in _COUNTED))
        return rows

    @property
    def left(self) -> int:
        """Threads, searches and lists that are still to be had."""
        return sum(repo.open_work for repo in self.repos)

    def notes(self) -> list[str]:
        """What is odd about repositories, the time to go, the points left, the warnings; a line each."""
        lines = [f"{repo.row.name}: {repo.row.detail}" for repo in self.repos if repo.row.detail]
        lines.append(_time_words(self))
        if self.rate_limit:
            lines.append(self.rate_limit.words(time.time()))
        if self.warnings:
            lines.append(f"{len(self.warnings)} warnings:")
            lines += [f"  {repo}: {words}" if repo else f"  {words}" for repo, words in self.warnings]
        return lines

    def __repr__(self) -> str:
        return "\n".join([str(self.table()), *self.notes()])

    def _repr_html_(self) -> str:
        lines = "<br>".join(map(escape, self.notes()))
        return f"{self.table()._repr_html_()}<p><small>{lines}</small></p>"


def read_status(store: Store) -> Status:
    """Read how far a crawl is; another process may be writing to the store.

    Raises:
        DataError: the store is damaged.
    """
    rows, usage = store.repos(), store.usage()
    with database_errors(store.path), closing(connect(store.path, read_only=True)) as connection:
        connection.execute("BEGIN")
        issues = {repo: counts for repo, *counts in connection.execute(_ISSUES)}
        comments, wishes, top_ups = (
            dict(connection.execute(sql).fetchall()) for sql in (_COMMENTS, _WISHES, _TOP_UPS)
        )
        tasks = connection.execute(_TASKS, (_POOL,)).fetchall()
    repos = []
    for row in rows:
        name = row.full_name
        stored, begun, threads = issues.get(name, (0, 0, 0))
        repos.append(
            RepoStatus(
                row=row,
                issues=stored,
                begun=begun,
                threads=threads,
                comments=comments.get(name, 0),
                wishes=wishes.get(name, 0),
                top_ups=top_ups.get(name, 0),
                done=Counter({kind: done for repo, kind, done, _ in tasks if repo == name and done}),
                left=Counter({kind: left for repo, kind, _, left in tasks if repo == name and left}),
                usage=usage.get(name, Usage()),
            )
        )
    limit = RateLimit.parse(store.meta(RATE_LIMIT))
    return Status(tuple(repos), sum(usage.values(), Usage()), limit, tuple(store.warnings()))


def _figures(repo: RepoStatus) -> list[str | int]:
    """Issues stored of those expected; whole threads; threads, searches and lists still to be had; cost."""
    counts = (repo.threads, repo.open_work, repo.usage.points, repo.usage.requests)
    return [f"{repo.issues:,}/{repo.row.issue_count:,}", *counts]


def _time_words(status: Status) -> str:
    spent = f"{status.usage.seconds:,.0f} s spent on requests and waits"
    if status.eta_s is None:
        return f"{spent}; too early to say how long it will take"
    if not status.eta_s:
        return spent
    return f"{spent}; about {status.eta_s / 60:,.1f} min to go at this pace, for one token"
