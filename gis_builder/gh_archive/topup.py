"""Originals that have no event in the hours, fetched from GitHub by number; each number is asked for once.

A repository is judged again with the answers, which may lead to further numbers, until there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gis_builder.crawling.github import GitHub
from gis_builder.gh_archive.judge import Judged, JudgedRepo, ToppedRepo, unpack
from gis_builder.gh_archive.settle import Owners
from gis_builder.store import Store
from gis_builder.store.records import Issue, IssueRef, Kind

ISSUES, PULLS, MISSING = "issues", "pull_requests", "missing"
JudgeAgain = Callable[[list[list[ToppedRepo]]], list[Path]]


class _Lacking(NamedTuple):
    """A repository, the time of its last name, and its numbers that were asked for."""

    repo_id: int
    name: str
    named_at: tuple[str, int]
    numbers: set[int]


def top_up(
    judged: Sequence[Path], store: Store, github: GitHub, judge_again: JudgeAgain
) -> tuple[list[Path], dict[str, int]]:
    """The buckets as judged with everything that GitHub has, and how many numbers of each kind it had.

    `judge_again` takes the answers for each bucket.
    """
    asked: list[dict[int, _Lacking]] = [{} for _ in judged]
    owners = Owners(judged)
    paths = list(judged)
    answers: list[list[ToppedRepo]] = []
    while new := {ref for path, known in zip(paths, asked, strict=True) for ref in _new(path, known, owners)}:
        github.fetch(sorted(new))
        answers = [[_answer(store, repo) for _, repo in sorted(known.items())] for known in asked]
        paths = judge_again(answers)
    counts = Counter({ISSUES: 0, PULLS: 0, MISSING: 0})
    for repo in (repo for bucket in answers for repo in bucket):
        counts.update({ISSUES: len(repo.issues), PULLS: len(repo.pulls), MISSING: len(repo.missing)})
    return paths, dict(counts)


def _new(path: Path, known: dict[int, _Lacking], owners: Owners) -> Iterator[IssueRef]:
    """What a bucket lacks and was not asked for yet; it is noted as asked for."""
    for repo in unpack(path, Judged).with_duplicates():
        # After a change of owner, the name leads to another repository's issues.
        if repo.unknown and owners.have(repo):
            numbers = known.setdefault(repo.repo_id, _lacking(repo)).numbers
            yield from (IssueRef(repo.name, number) for number in set(repo.unknown) - numbers)
            numbers |= set(repo.unknown)


def _lacking(repo: JudgedRepo) -> _Lacking:
    return _Lacking(repo.repo_id, repo.name, repo.named_at, set())


def _answer(store: Store, repo: _Lacking) -> ToppedRepo:
    """What the store has of the numbers that a repository lacks."""
    topped = ToppedRepo(repo.repo_id, [], [], [])
    for number in sorted(repo.numbers):
        ref = IssueRef(repo.name, number)
        kind = store.kind(ref)
        issue = _issue(store, ref) if kind is Kind.ISSUE else None
        # An issue that was opened later belongs to a new repository of the same name.
        if issue is not None and issue.created_at <= repo.named_at[0]:
            topped.issues.append(replace(issue, repo=repo.name))
        elif kind is Kind.PULL:
            topped.pulls.append(number)
        else:
            topped.missing.append(number)
    return topped


def _issue(store: Store, ref: IssueRef) -> Issue | None:
    thread = store.thread(ref)
    return None if thread is None else thread.issue
