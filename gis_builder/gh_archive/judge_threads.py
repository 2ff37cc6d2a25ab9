"""The second map: the rows of a bucket to judged repositories.

Rows become threads (`threads_of`), and these verdicts, clusters, texts and mentions (`judge_bucket`), without
what is excluded. `explain_archived` repeats this for one issue.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl
from msgspec import Struct

from gis_builder.crawling.crawl import negative_sample_size
from gis_builder.crawling.github.fetch import number_order
from gis_builder.detection.decision import decide
from gis_builder.detection.detector import parse_issue
from gis_builder.detection.explain import Explanation, explained
from gis_builder.detection.statements import Rules, instant
from gis_builder.gh_archive.archive_rows import (
    COMMENT,
    EVENT,
    ISSUE,
    MEMBER,
    PULL,
    REPO,
    key_of,
    read_rows,
    record_of,
)
from gis_builder.pairing.build_pairs import grounds_of, mentions_of
from gis_builder.pairing.positives import Edge, find_clusters
from gis_builder.pairing.text import RenderedTexts, render_issues, template_lines
from gis_builder.settings import ArchiveSettings, DetectSettings
from gis_builder.store.issue_records import (
    Comment,
    DuplicateCluster,
    Event,
    Grounds,
    Issue,
    IssueRef,
    IssueText,
    Kind,
    Thread,
    VerdictOutcome,
    with_closer,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.base.system.text_lines import read_text_lines

_SAME_MOMENT = timedelta(minutes=1)
# If less than one in this many numbers is known, no list of all numbers is created.
_SPARSE = 100
WITH_DUPLICATES = "with_duplicates"
WITHOUT_DUPLICATES = "without_duplicates"
EXCLUDED = "excluded"
TOO_FEW = "too_few_closed_issues"
OUTCOMES = (EXCLUDED, TOO_FEW, WITH_DUPLICATES, WITHOUT_DUPLICATES)
_BY_BOT = "bot_author"
_EXCLUSION = re.compile(
    r"@[^\s/#@]+|[A-Za-z0-9._-]+/(?:\*|[A-Za-z0-9._-]+(?:#[1-9][0-9]*)?)"
)
_Packed = TypeVar("_Packed")
_Row = Mapping[str, Any]


class RepoThreads(Struct):
    """The threads of a repository in the archive."""

    repo_id: int
    name: str
    named_at: tuple[str, int]
    former_names: frozenset[str] = frozenset()
    threads: dict[int, Thread] = {}
    pulls: frozenset[int] = frozenset()

    def rules(self, settings: DetectSettings) -> Rules:
        """The detection rules, with the repository's former names."""
        return Rules(
            former_names=self.former_names, min_confidence=settings.min_confidence
        )

    @property
    def highest(self) -> int:
        """The highest known number."""
        return max((*self.threads, *self.pulls), default=0)

    def full_name(self, repo: str) -> str:
        """The present name of this repository, instead of a former name or another spelling."""
        names = {name.lower() for name in (self.name, *self.former_names)}
        return self.name if repo.lower() in names else repo

    def kind_of(self, ref: IssueRef) -> Kind:
        """The kind of a reference; unknown numbers may be lost or older than the hours."""
        if self.full_name(ref.repo) == self.name:
            if ref.number in self.threads:
                return Kind.ISSUE
            if ref.number in self.pulls:
                return Kind.PULL
        return Kind.UNKNOWN


def threads_of(rows: Iterable[_Row]) -> RepoThreads:
    """Build the threads of a repository from its newest rows."""
    by_kind: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    names = sorted(by_kind[REPO], key=itemgetter("event_at", "event_id"))
    latest = names[-1]
    repo = RepoThreads(
        repo_id=latest["repo_id"],
        name=latest["name"],
        named_at=(latest["event_at"], latest["event_id"]),
        former_names=frozenset(row["name"] for row in names) - {latest["name"]},
        pulls=frozenset(row["number"] for row in by_kind[PULL]),
    )
    members = {row["name"] for row in by_kind[MEMBER]}
    comments: defaultdict[int, list[Comment]] = defaultdict(list)
    for row in by_kind[COMMENT]:
        association = _association(row, repo.name, members)
        comment = record_of(Comment, row, author_association=association)
        comments[row["number"]].append(comment)
    events: defaultdict[int, list[Event]] = defaultdict(list)
    for row in by_kind[EVENT]:
        event = record_of(Event, row, kind=row["action"], actor=row["author"])
        events[row["number"]].append(event)
    for row in by_kind[ISSUE]:
        number = row["number"]
        if number not in repo.pulls:
            issue = record_of(
                Issue,
                row,
                repo=repo.name,
                author_association=_association(row, repo.name, members),
                updated_at=row["changed_at"],
                labels=tuple(row["labels"]),
            )
            repo.threads[number] = _thread(issue, comments[number], events[number])
    return repo


def _association(row: _Row, repo: str, members: Collection[str]) -> str:
    """The association of a row's author with the repository, which some events lack."""
    if row["association"] is not None:
        return str(row["association"])
    author = row["author"]
    if author is not None and repo.lower().startswith(f"{author.lower()}/"):
        return "OWNER"
    return "MEMBER" if author in members else "NONE"


def _thread(issue: Issue, comments: list[Comment], events: list[Event]) -> Thread:
    closed_at = issue.closed_at
    if issue.state == "closed" and closed_at is not None:
        closings = [event.created_at for event in events if event.kind == "closed"]
        earliest = instant(closed_at) - _SAME_MOMENT
        if not closings or instant(max(closings)) < earliest:
            # The closing event was lost.
            lost = Event("closed", None, closed_at, state_reason=issue.state_reason)
            events.append(lost)
    comments.sort(key=attrgetter("created_at", "id"))
    events.sort(key=attrgetter("created_at"))  # they were sorted by id
    return Thread(with_closer(issue, events), tuple(comments), tuple(events))


class JudgedRepo(Struct, omit_defaults=True):
    """A repository with issues; without duplicates it has only an outcome and counts."""

    repo_id: int
    outcome: str
    verdicts: list[tuple[str, str, int]] = []  # outcome, reason and number of issues
    name: str = ""
    named_at: tuple[str, int] = ("", 0)
    clusters: list[DuplicateCluster] = []
    grounds: dict[Edge, Grounds] = {}
    texts: dict[IssueRef, IssueText] = {}
    links: list[Edge] = []  # the first mentions the second
    rejected: dict[IssueRef, str] = {}
    removed: dict[str, int] = {}


def pack(value: object) -> bytes:
    """Serialise records; equal values in the same order give equal bytes."""
    return zlib.compress(msgspec.msgpack.encode(value), 1)


def unpack(path: Path, kind: type[_Packed]) -> _Packed:
    """Read the records of a file."""
    return msgspec.msgpack.decode(zlib.decompress(path.read_bytes()), type=kind)


def read_judged(path: Path) -> list[JudgedRepo]:
    """Read the judged repositories of a bucket."""
    return unpack(path, list[JudgedRepo])


def with_duplicates(repos: Iterable[JudgedRepo]) -> list[JudgedRepo]:
    """The repositories that contribute to the dataset."""
    return [repo for repo in repos if repo.outcome == WITH_DUPLICATES]


def read_exclusions(path: Path) -> tuple[str, ...]:
    """Read a file with one entry per line, as sorted lower-case entries; ` # ` starts a comment."""
    entries = set()
    for row, line in read_text_lines(path):
        entry, *_ = re.split(r"(?:^|\s)#(?:\s|$)", line.strip())
        entry = entry.strip()
        if entry and not _EXCLUSION.fullmatch(entry):
            raise DataError(
                "expected owner/name, owner/*, owner/name#12 or @login",
                path=path,
                row=row,
            )
        entries.add(entry.lower().removesuffix("[bot]"))  # as in the names of authors
    return tuple(sorted(entries - {""}))


class Exclusions:
    """Matches repositories, issues and authors against exclusions."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = frozenset(entries)

    def has_repo(self, *names: str) -> bool:
        """Whether a repository with any of these names is excluded."""
        lower = {name.lower() for name in names}
        owners = {f"{name.partition('/')[0]}/*" for name in lower}
        return not self._entries.isdisjoint(lower | owners)

    def has_issue(self, issue: Issue, former_names: Collection[str] = ()) -> bool:
        """Whether an issue is excluded by number or author."""
        if self._has_person(issue.author):
            return True
        names = (issue.repo, *former_names)
        return any(f"{name.lower()}#{issue.number}" in self._entries for name in names)

    def without_comments(self, thread: Thread) -> Thread:
        """Remove the comments of excluded authors, so that they are not evidence either."""
        kept = tuple(c for c in thread.comments if not self._has_person(c.author))
        return replace(thread, comments=kept)

    def _has_person(self, login: str | None) -> bool:
        return login is not None and f"@{login.lower()}" in self._entries


def judge_bucket(
    files: Sequence[Path],
    settings: str,
    excluded: Sequence[str],
    earlier: tuple[Path, Path] | None,
) -> Iterator[bytes]:
    """Judge the repositories of a bucket; `earlier`: a judged bucket, and the keys that changed since."""
    judge = _Judge(ArchiveSettings.model_validate_json(settings), Exclusions(excluded))
    repos = []
    is_changed = None
    if earlier is not None:
        judged, changed = earlier
        keys = set(pl.read_parquet(changed, glob=False)["key"])
        kept = read_judged(judged)
        repos = [repo for repo in kept if key_of(repo.repo_id) not in keys]
        is_changed = pl.col("key").is_in(keys)
    repos += judge.judge(read_rows(files, is_changed))
    # An order that doesn't depend on the number of buckets.
    repos.sort(key=lambda repo: (key_of(repo.repo_id), repo.repo_id))
    yield pack(repos)


class _Judge:
    """Judges repositories."""

    def __init__(self, settings: ArchiveSettings, excluded: Exclusions) -> None:
        self._settings = settings
        self._excluded = excluded

    def judge(self, table: pl.DataFrame) -> Iterator[JudgedRepo]:
        """Judge the repositories of a table, one by one."""
        is_closed = pl.col("state") == "closed"
        issues = table.filter(pl.col("kind") == ISSUE)
        repos = issues.group_by("repo_id").agg(closed=is_closed.sum())
        has_enough = pl.col("closed") >= self._settings.limits.min_closed
        for repo_id in repos.filter(~has_enough)["repo_id"]:
            yield JudgedRepo(repo_id, TOO_FEW)
        large = repos.filter(has_enough)
        kept = table.join(large, on="repo_id", how="semi", maintain_order="left")
        by_repo = groupby(kept.iter_rows(named=True), key=itemgetter("repo_id"))
        for _, rows in by_repo:
            yield self._repo(threads_of(rows))

    def _repo(self, repo: RepoThreads) -> JudgedRepo:
        if self._excluded.has_repo(repo.name, *repo.former_names):
            return JudgedRepo(repo.repo_id, EXCLUDED)
        counts: Counter[tuple[str, str]] = Counter()
        duplicates = []
        rules = repo.rules(self._settings.detect)
        threads = map(self._excluded.without_comments, repo.threads.values())
        repo.threads = {thread.issue.number: thread for thread in threads}
        for thread in repo.threads.values():
            verdict = decide(thread, repo.kind_of, rules)
            counts[str(verdict.outcome), verdict.reason] += 1
            if verdict.outcome is VerdictOutcome.DUPLICATE:
                duplicates.append(verdict)
        verdicts = [(*key, count) for key, count in sorted(counts.items())]
        if not duplicates:
            return JudgedRepo(repo.repo_id, WITHOUT_DUPLICATES, verdicts)
        clusters = find_clusters(duplicates)
        texts = self._texts(repo, clusters, len(duplicates))
        links: list[Edge] = []
        for ref in texts.usable:
            mentions = mentions_of(repo.threads[ref.number], repo.full_name)
            targets = mentions.intersection(texts.usable)
            links += ((ref, target) for target in sorted(targets))
        return JudgedRepo(
            repo_id=repo.repo_id,
            outcome=WITH_DUPLICATES,
            verdicts=verdicts,
            name=repo.name,
            named_at=repo.named_at,
            clusters=clusters,
            grounds=grounds_of(duplicates),
            texts=texts.usable,
            links=links,
            rejected=texts.rejected,
            removed=dict(texts.removed),
        )

    def _texts(
        self, repo: RepoThreads, clusters: Sequence[DuplicateCluster], duplicates: int
    ) -> RenderedTexts:
        """Render the issues of clusters, and a sample of others for negatives."""
        settings = self._settings
        size = negative_sample_size(duplicates, settings.pool)
        numbers = set(islice(sample_order(repo, settings.seed), size))
        for cluster in clusters:
            numbers |= {ref.number for ref in cluster.members if ref.repo == repo.name}
        accepted = []
        rejected = {}
        for number in sorted(numbers.intersection(repo.threads)):
            issue = repo.threads[number].issue
            if self._excluded.has_issue(issue, repo.former_names):
                rejected[issue.ref] = EXCLUDED
            elif issue.is_bot:
                rejected[issue.ref] = _BY_BOT
            else:
                accepted.append(issue)
        template = template_lines(thread.issue for thread in repo.threads.values())
        texts = render_issues(accepted, {repo.name: template}, settings.text)
        texts.rejected |= rejected
        return texts


def sample_order(repo: RepoThreads, seed: int) -> Iterable[int]:
    """Shuffle the numbers of the issues; unless they are sparse, in the same order as a crawl."""

    def draw(number: int) -> int:
        return keyed_hash(seed, "pool", repo.name, number)

    known = len(repo.threads) + len(repo.pulls)
    if repo.highest > _SPARSE * known:
        # One forged number must not create a list of millions.
        return sorted(repo.threads, key=draw)
    order = number_order(repo.highest, repo.name, seed)
    return (number for number in order if number in repo.threads)


def explain_archived(work: Path, name: str, settings: DetectSettings) -> Explanation:
    """Explain the verdict on an issue."""
    issue = parse_issue(name)
    files = list(work.glob("rows-*/*/*.parquet"))
    is_name = pl.col("name").str.to_lowercase() == issue.repo.lower()
    names = read_rows(files, (pl.col("kind") == REPO) & is_name)
    newest_first = names.sort("event_at", "event_id", descending=True)
    for key, repo_id in newest_first.select("key", "repo_id").iter_rows():
        is_of_repo = (pl.col("key") == key) & (pl.col("repo_id") == repo_id)
        rows = read_rows(files, is_of_repo)
        repo = threads_of(rows.iter_rows(named=True))
        thread = repo.threads.get(issue.number)
        if thread:
            return explained(thread, repo.kind_of, repo.rules(settings))
    raise ConfigError(
        f"{name}: not among the issues of {work}, or not in the hours of its last run"
    )
