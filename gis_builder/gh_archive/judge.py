"""The second map: the rows of a bucket to its judged repositories: verdicts, clusters, texts, mentions."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

import msgspec
import polars as pl

from gis_builder.crawling.crawl import negative_sample_size
from gis_builder.crawling.github.negative_sample import number_order
from gis_builder.detection.detector import judge_thread
from gis_builder.gh_archive import rows as r
from gis_builder.gh_archive.threads import RepoThreads, threads_of
from gis_builder.pairing.build import grounds_of, mentions_of
from gis_builder.pairing.positives import find_clusters
from gis_builder.pairing.text import RenderedTexts, render_issues
from gis_builder.settings import ArchiveSettings
from gis_builder.store.records import (
    DuplicateCluster,
    Grounds,
    Issue,
    IssueRef,
    IssueText,
    Thread,
    VerdictOutcome,
)
from pairkit.app.errors import DataError
from pairkit.system.lines import read_text_lines
from pairkit.system.seeded import keyed_hash

_SPARSE = 100  # if fewer than one number in so many is known, a list of all numbers is not made
WITH_DUPLICATES, WITHOUT_DUPLICATES, EXCLUDED = "with_duplicates", "without_duplicates", "excluded"
TOO_FEW = "too_few_closed_issues"
OUTCOMES = (EXCLUDED, TOO_FEW, WITH_DUPLICATES, WITHOUT_DUPLICATES)
_BY_BOT = "bot_author"
_Link = tuple[IssueRef, IssueRef]
_EXCLUSION = re.compile(r"@[^\s/#@]+|[A-Za-z0-9._-]+/(?:\*|[A-Za-z0-9._-]+(?:#[1-9][0-9]*)?)")


class JudgedRepo(msgspec.Struct, omit_defaults=True):
    """A repository with issues; only one with duplicates has more than an outcome and counts."""

    repo_id: int
    outcome: str
    verdicts: list[tuple[str, str, int]] = []  # outcome, reason and number of issues
    name: str = ""
    named_at: tuple[str, int] = ("", 0)
    clusters: list[DuplicateCluster] = []
    grounds: list[tuple[IssueRef, IssueRef, Grounds]] = []  # of (duplicate, original)
    texts: list[IssueText] = []
    links: list[_Link] = []  # the first mentions the second
    rejected: list[tuple[IssueRef, str]] = []
    removed: dict[str, int] = {}


class Judged(msgspec.Struct):
    """A bucket."""

    repos: list[JudgedRepo]

    def with_duplicates(self) -> Iterator[JudgedRepo]:
        """The repositories that have a part in the dataset."""
        return (repo for repo in self.repos if repo.outcome == WITH_DUPLICATES)


_Kind = TypeVar("_Kind")


def pack(value: object) -> bytes:
    """A file of records; equal values give equal bytes."""
    return zlib.compress(msgspec.msgpack.encode(value, order="deterministic"), 1)


def unpack(path: Path, kind: type[_Kind]) -> _Kind:
    """The records of a file."""
    return msgspec.msgpack.decode(zlib.decompress(path.read_bytes()), type=kind)


def read_exclusions(path: Path) -> tuple[str, ...]:
    """The entries of a file, in lower case and in order: one a line; ` # ` begins a comment."""
    entries: set[str] = set()
    for row, line in read_text_lines(path):
        entry = re.split(r"(?:^|\s)#(?:\s|$)", line.strip())[0].strip()
        if entry and not _EXCLUSION.fullmatch(entry):
            raise DataError("expected owner/name, owner/*, owner/name#12 or @login", path=path, row=row)
        entries.add(entry.lower().removesuffix("[bot]"))  # as authors are called here
    return tuple(sorted(entries - {""}))


class Exclusions:
    """Matches the entries of a takedown list, including former names of repositories."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = frozenset(entries)

    def has_repo(self, *names: str) -> bool:
        """Whether a repository of these names is left out as a whole."""
        lower = [name.lower() for name in names]
        return any(name in self._entries or f"{name.partition('/')[0]}/*" in self._entries for name in lower)

    def has_issue(self, issue: Issue, former_names: Collection[str] = ()) -> bool:
        """Whether an issue is left out, by its number or its author."""
        if self._has_person(issue.author):
            return True
        names = (issue.repo, *former_names)
        return any(f"{name.lower()}#{issue.number}" in self._entries for name in names)

    def without_comments(self, thread: Thread) -> Thread:
        """The thread without the comments of people whose words stay out, so that none is evidence."""
        if not self._entries:
            return thread
        return replace(thread, comments=tuple(c for c in thread.comments if not self._has_person(c.author)))

    def _has_person(self, login: str | None) -> bool:
        return login is not None and f"@{login.lower()}" in self._entries


def judge_bucket(files: Sequence[Path], settings: str, excluded: Sequence[str]) -> Iterator[bytes]:
    """Judge the repositories of a bucket."""
    judging = _Judging(ArchiveSettings.model_validate_json(settings), Exclusions(excluded))
    repos = list(judging.judge(r.read_rows(files)))
    repos.sort(key=lambda repo: (r.key_of(repo.repo_id), repo.repo_id))  # whatever the number of buckets
    yield pack(Judged(repos))


class _Judging:
    """Judges one repository after the other."""

    def __init__(self, settings: ArchiveSettings, excluded: Exclusions) -> None:
        self._settings, self._excluded = settings, excluded

    def judge(self, table: pl.DataFrame) -> Iterator[JudgedRepo]:
        """Judge the repositories of a table."""
        closed = (pl.col("state") == "closed").sum()
        issues = table.filter(pl.col("kind") == r.ISSUE).group_by("repo_id").agg(closed)
        has_enough = pl.col("state") >= self._settings.limits.min_closed
        for repo_id in issues.filter(~has_enough)["repo_id"]:
            yield JudgedRepo(repo_id, TOO_FEW)
        kept = table.join(issues.filter(has_enough), on="repo_id", how="semi", maintain_order="left")
        for _, rows in groupby(kept.iter_rows(named=True), key=lambda row: row["repo_id"]):
            yield self._repo(threads_of(rows))

    def _repo(self, repo: RepoThreads) -> JudgedRepo:
        if self._excluded.has_repo(repo.name, *repo.former_names):
            return JudgedRepo(repo.repo_id, EXCLUDED)
        counts: Counter[tuple[str, str]] = Counter()
        duplicates = []
        for thread in map(self._excluded.without_comments, repo.threads.values()):
            verdict = judge_thread(thread, repo.kind_of, repo.rules, self._settings.detect)
            counts[str(verdict.outcome), verdict.reason] += 1
            if verdict.outcome is VerdictOutcome.DUPLICATE:
                duplicates.append(verdict)
        verdicts = [(*key, count) for key, count in sorted(counts.items())]
        if not duplicates:
            return JudgedRepo(repo.repo_id, WITHOUT_DUPLICATES, verdicts)
        clusters = find_clusters(duplicates)
        texts = self._texts(repo, clusters, len(duplicates))
        usable = (found for ref in sorted(texts.usable) if (found := repo.threads.get(ref.number)))
        return JudgedRepo(
            repo.repo_id,
            WITH_DUPLICATES,
            verdicts,
            repo.name,
            repo.named_at,
            clusters,
            [(*edge, grounds) for edge, grounds in sorted(grounds_of(duplicates).items())],
            [texts.usable[ref] for ref in sorted(texts.usable)],
            sorted(_links(usable, texts.usable)),
            sorted(texts.rejected.items()),
            dict(sorted(texts.removed.items())),
        )

    def _texts(
        self, repo: RepoThreads, clusters: Sequence[DuplicateCluster], duplicates: int
    ) -> RenderedTexts:
        """The texts of all issues of clusters, and of a sample of others that serve in negatives."""
        settings = self._settings
        members = {ref.number for cluster in clusters for ref in cluster.members if ref.repo == repo.name}
        pool = islice(sample_order(repo, settings.seed), negative_sample_size(duplicates, settings.pool))
        wanted = [thread.issue for n in sorted({*members, *pool}) if (thread := repo.threads.get(n))]
        barred = {issue.ref: why for issue in wanted if (why := self._why_barred(issue, repo))}
        texts = render_issues((issue for issue in wanted if issue.ref not in barred), clusters, settings.text)
        texts.rejected |= barred
        return texts

    def _why_barred(self, issue: Issue, repo: RepoThreads) -> str | None:
        if self._excluded.has_issue(issue, repo.former_names):
            return EXCLUDED
        return _BY_BOT if issue.is_bot else None


def sample_order(repo: RepoThreads, seed: int) -> Iterable[int]:
    """The numbers of the issues in an order that the seed decides: that of a crawl, if most are known."""
    known = len(repo.threads) + len(repo.pulls)
    if repo.highest <= _SPARSE * known:
        return (n for n in number_order(repo.highest, repo.name, seed) if n in repo.threads)
    # One forged number must not make a list of millions.
    return sorted(repo.threads, key=lambda number: keyed_hash(seed, "pool", repo.name, number))


def _links(threads: Iterator[Thread], usable: Collection[IssueRef]) -> Iterator[_Link]:
    """Pairs of usable issues of which the first mentions the second."""
    for thread in threads:
        ref = thread.issue.ref
        yield from ((ref, other) for other in mentions_of(thread) if other in usable)
