"""Originals that have no event in the hours, asked of GitHub: what it says is kept, and asked for once.

A repository is judged again with what was learned, and may then name further ones: so until none is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gis_builder._archive.judged import Judged, Topped, ToppedRepo, pack, unpack
from gis_builder._archive.objects import Location, keep
from gis_builder._archive.plan import judge_again
from gis_builder._archive.settle import Owners, owners_of
from gis_builder._archive.tasks import Task, digest_of, file_named
from gis_builder._folders import held_store
from gis_builder._github import GitHub
from gis_builder._records import Issue, IssueRef, Kind
from gis_builder._store import Store

Opened = Callable[[Store], GitHub]
ISSUES, PULLS, MISSING = "issues", "pull_requests", "missing"


class ToppedUp(NamedTuple):
    """What came of it.

    Attributes:
        judged: The files of the partitions, judged with all that is known.
        counts: What the numbers that were asked for turned out to be.
    """

    judged: list[Location]
    counts: dict[str, int]


def top_up(
    judged: Sequence[Task],
    work: Path,
    results: Location,
    server: str,
    opened: Opened,
    run: Callable[[list[Task]], None],
) -> ToppedUp:
    """Ask for all that verdicts rest on and the hours don't have.

    Args:
        judged: The tasks that judged the partitions, done.
        work: The working folder.
        results: Where the files of tasks go.
        server: The root of GitHub's API, each of which has a store of its own.
        opened: Makes the client.
        run: Runs tasks.

    Raises:
        RemoteError: The server failed; what it said before is kept.
    """
    with held_store(work / "topped" / digest_of(server.encode())[:12]) as store, opened(store) as github:
        asking = _Asking(store, owners_of(task.out for task in judged))
        paths = [task.out for task in judged]
        while new := asking.take(paths):
            github.fetch(sorted(new))
            again = [_again(task, results, asking.told(place)) for place, task in enumerate(judged)]
            run([task for task in again if task is not None])
            paths = [task.out if more is None else more.out for task, more in zip(judged, again, strict=True)]
        return ToppedUp(paths, asking.counts())


def _again(task: Task, results: Location, topped: Topped) -> Task | None:
    if not topped.repos:
        return None
    told = pack(topped)
    told_in = file_named(results / "topped", task.out.name.partition(".")[0], "zlib", digest_of(told))
    keep(told_in, told)
    return judge_again(task, told_in)


class _Lacking(NamedTuple):
    """A repository, when its name was seen last, and its numbers that were asked for."""

    repo_id: int
    name: str
    named_at: tuple[str, int]
    numbers: set[int]


class _Asking:
    """What was asked for, by partition and repository, and what the store says of it."""

    def __init__(self, store: Store, owners: Owners) -> None:
        self._store, self._owners = store, owners
        self._asked: dict[int, dict[int, _Lacking]] = {}

    def take(self, paths: Sequence[Location]) -> set[IssueRef]:
        """Note what the partitions lack; returns what is new."""
        new: set[IssueRef] = set()
        for place, path in enumerate(paths):
            known = self._asked.setdefault(place, {})
            for repo in unpack(path, Judged).repos:
                # By its name the issues of another would come, where that took it over.
                if not repo.unknown or not self._owners.have(repo):
                    continue
                lacking = _Lacking(repo.repo_id, repo.name, repo.named_at, set())
                numbers = known.setdefault(repo.repo_id, lacking).numbers
                new |= {IssueRef(repo.name, number) for number in set(repo.unknown) - numbers}
                numbers |= set(repo.unknown)
        return new

    def told(self, place: int) -> Topped:
        """What is known of all that was asked for in a partition."""
        return Topped([self._of_repo(repo) for _, repo in sorted(self._asked[place].items())])

    def counts(self) -> dict[str, int]:
        """Of all partitions, by what they turned out to be."""
        counts = Counter({ISSUES: 0, PULLS: 0, MISSING: 0})
        for place in self._asked:
            for repo in self.told(place).repos:
                counts.update({ISSUES: len(repo.issues), PULLS: len(repo.pulls), MISSING: len(repo.missing)})
        return dict(counts)

    def _of_repo(self, repo: _Lacking) -> ToppedRepo:
        topped = ToppedRepo(repo.repo_id, [], [], [])
        for number in sorted(repo.numbers):
            ref = IssueRef(repo.name, number)
            kind = self._store.kind(ref)
            issue = self._issue(ref) if kind is Kind.ISSUE else None
            # What was opened later is of a repository that was made anew under the name.
            if issue is not None and issue.created_at <= repo.named_at[0]:
                topped.issues.append(replace(issue, repo=repo.name))
            elif kind is Kind.PULL:
                topped.pulls.append(number)
            else:
                topped.missing.append(number)
        return topped

    def _issue(self, ref: IssueRef) -> Issue | None:
        thread = self._store.thread(ref)
        return None if thread is None else thread.issue
