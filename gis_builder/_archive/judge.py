"""The third task: the rows of a share of the repositories to verdicts, clusters, texts and positives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path

import polars as pl

from gis_builder._archive import rows as r
from gis_builder._archive.exclusions import Exclusions
from gis_builder._archive.judged import Judged, JudgedRepo, Topped, pack, unpack
from gis_builder._archive.templates import template_authors
from gis_builder._archive.threads import RepoThreads, threads_of
from gis_builder._assemble import grounds_of, mentions_of
from gis_builder._crawl import pool_size
from gis_builder._detect import clusters as find_clusters
from gis_builder._detection import judge_thread
from gis_builder._github.pool import number_order
from gis_builder._pairs.positives import Positives, make_positives
from gis_builder._pairs.text import Texts, render_issues
from gis_builder._records import Cluster, DroppedPair, Issue, IssueRef, Kind, Outcome, Thread, Verdict
from gis_builder._settings import ArchiveSettings
from pairkit.keyed import keyed_hash

_SPARSE = 100  # numbers of a repository for each that is known, beyond which its numbers are not all ordered
WITH = "with_duplicates"
BY_BOT, BY_TEMPLATE, EXCLUDED, OVER_LIMIT = "bot_author", "template_author", "excluded", "per_repo_max"


def judge_share(files: Sequence[Path], low: int, high: int, settings: str, excluded: Sequence[str]) -> bytes:
    """Judge the repositories whose keys are in [low, high).

    Args:
        files: Rows of any months.
        low: The least key.
        high: The key after the greatest.
        settings: `ArchiveSettings` as JSON.
        excluded: See `Exclusions`.
    """
    judge = _Judge(ArchiveSettings.model_validate_json(settings), Exclusions(excluded))
    table = r.read_share(files, low, high)
    is_closed = (pl.col("kind") == r.ISSUE) & (pl.col("state") == "closed")
    closed = table.filter(is_closed).group_by("repo_id").len()
    enough = closed.filter(pl.col("len") >= judge.settings.limits.min_closed)
    with_issues = table.filter(pl.col("kind") == r.ISSUE)["repo_id"].n_unique()
    judge.counts["too_few_closed_issues"] += with_issues - enough.height
    wanted = _of_languages(table, enough["repo_id"], judge.settings.limits.languages, judge.counts)
    kept = table.join(wanted.to_frame(), on="repo_id", how="semi", maintain_order="left")
    for _, rows in groupby(kept.iter_rows(named=True), key=lambda row: row["repo_id"]):
        judge.take(threads_of(rows))
    return pack(judge.result())


def _of_languages(
    table: pl.DataFrame, repos: pl.Series, languages: Collection[str], counts: Counter[str]
) -> pl.Series:
    """Those repositories whose language, as it was named last, is one of these; all where these are none."""
    if not languages:
        return repos
    named = table.filter((pl.col("kind") == r.LANGUAGE) & pl.col("repo_id").is_in(repos.implode()))
    latest = named.sort("event_at", "event_id").unique("repo_id", keep="last")
    found = [
        repo for repo, name in latest.select("repo_id", "name").iter_rows() if name.casefold() in languages
    ]
    counts["unknown_language"] += repos.len() - latest.height
    counts["other_language"] += latest.height - len(found)
    return pl.Series("repo_id", sorted(found), pl.Int64)


def judge_more(
    judged: Path,
    topped: Path,
    files: Sequence[Path],
    low: int,
    high: int,
    settings: str,
    excluded: Sequence[str],
) -> bytes:
    """Judge those repositories again of which more is known by now.

    Args:
        judged: What `judge_share` made.
        topped: What is known now, see `topup`.
        files: See `judge_share`, as what follows.
        low: See there.
        high: See there.
        settings: See there.
        excluded: See there.
    """
    before, more = unpack(judged, Judged), {repo.repo_id: repo for repo in unpack(topped, Topped).repos}
    judge = _Judge(ArchiveSettings.model_validate_json(settings), Exclusions(excluded))
    table = r.read_share(files, low, high, more)
    for repo_id, rows in groupby(table.iter_rows(named=True), key=lambda row: row["repo_id"]):
        repo, learned = threads_of(rows), more[repo_id]
        repo.learn(learned.issues, learned.pulls, learned.missing)
        judge.take(repo)
    return pack(_replaced(before, judge.result(), more))


def _replaced(before: Judged, anew: Judged, which: Collection[int]) -> Judged:
    """A partition with some repositories as they were judged anew."""
    repos = {repo.repo_id: repo for repo in anew.repos}
    verdicts = _counted(before.verdicts) + _counted(anew.verdicts)
    counts = Counter(before.counts) + Counter(anew.counts)
    for repo in before.repos:
        if repo.repo_id in which:
            verdicts.subtract({(outcome, reason): count for outcome, reason, count in repo.verdicts})
            counts[WITH] -= 1
        else:
            repos[repo.repo_id] = repo
    kept = [repos[repo.repo_id] for repo in before.repos if repo.repo_id in repos]
    return Judged(kept, _by_outcome(verdicts), dict(sorted(counts.items())))


def _counted(verdicts: Mapping[str, Mapping[str, int]]) -> Counter[tuple[str, str]]:
    return Counter({(name, reason): n for name, reasons in verdicts.items() for reason, n in reasons.items()})


def _by_outcome(verdicts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (outcome, reason), count in sorted(verdicts.items()):
        if count:
            found.setdefault(outcome, {})[reason] = count
    return found


class _Judge:
    """Judges one repository after the other."""

    def __init__(self, settings: ArchiveSettings, excluded: Exclusions) -> None:
        self.settings, self._excluded = settings, excluded
        self.counts: Counter[str] = Counter()
        self._repos: list[JudgedRepo] = []
        self._verdicts: Counter[tuple[str, str]] = Counter()

    def take(self, repo: RepoThreads) -> None:
        """Judge a repository."""
        if self._excluded.has_repo(repo.name, *repo.former_names):
            self.counts["excluded"] += 1
            return
        unknown: set[int] = set()
        counts: Counter[tuple[str, str]] = Counter()
        duplicates = []
        for thread in map(self._excluded.without_comments, repo.threads.values()):
            verdict, asked = self._verdict(thread, repo)
            counts[str(verdict.outcome), verdict.reason] += 1
            if verdict.outcome is Outcome.DUPLICATE:
                duplicates.append(verdict)
                unknown |= asked
        self._verdicts += counts
        self.counts[WITH if duplicates else "without_duplicates"] += 1
        if duplicates:
            judged = self._judged(repo, duplicates)
            judged.verdicts = [(*key, count) for key, count in sorted(counts.items())]
            judged.unknown = sorted(unknown)
            self._repos.append(judged)

    def _verdict(self, thread: Thread, repo: RepoThreads) -> tuple[Verdict, set[int]]:
        """A verdict, and the numbers of the repository that it rests on and of which nothing is known."""
        unknown: set[int] = set()

        def kind_of(ref: IssueRef) -> Kind:
            kind = repo.kind_of(ref)
            if kind is Kind.UNKNOWN and repo.is_home(ref):
                unknown.add(ref.number)
            return kind

        verdict = judge_thread(thread, kind_of, repo.rules, self.settings.detect)
        for target in verdict.targets:
            kind_of(target)
        return verdict, unknown

    def result(self) -> Judged:
        """All of it, in an order that the rows decide."""
        return Judged(self._repos, _by_outcome(self._verdicts), dict(sorted(self.counts.items())))

    def _judged(self, repo: RepoThreads, duplicates: Sequence[Verdict]) -> JudgedRepo:
        settings = self.settings
        clusters = find_clusters(duplicates)
        texts = self._texts(repo, clusters, len(duplicates))
        positives = make_positives(clusters, texts, grounds_of(duplicates), settings.pair, settings.seed)
        _limit(positives, settings.limits.per_repo_max, settings.seed)
        threads = (thread for ref in sorted(texts.usable) if (thread := repo.thread(ref.number)))
        return JudgedRepo(
            repo.repo_id,
            repo.name,
            repo.named_at,
            clusters,
            [texts.usable[ref] for ref in sorted(texts.usable)],
            positives.pairs,
            sorted(_links(threads, texts.usable)),
            sorted(texts.rejected.items()),
            sorted(positives.dropped),
            dict(sorted(texts.removed.items())),
            verdicts=[],
            unknown=[],
        )

    def _texts(self, repo: RepoThreads, clusters: Sequence[Cluster], duplicates: int) -> Texts:
        """The texts of all issues of clusters, and of a sample of others that serve in negatives."""
        members = {ref.number for cluster in clusters for ref in cluster.members if ref.repo == repo.name}
        pool = islice(_order(repo, self.settings.seed), pool_size(duplicates, self.settings.pool))
        wanted = [thread.issue for n in sorted({*members, *pool}) if (thread := repo.thread(n))]
        issues = (thread.issue for thread in repo.threads.values())
        bots = template_authors(issues, self.settings.limits.template_bots)
        barred = {issue.ref: why for issue in wanted if (why := self._why_barred(issue, repo, bots))}
        texts = render_issues(
            (issue for issue in wanted if issue.ref not in barred), clusters, self.settings.text
        )
        texts.rejected |= barred
        return texts

    def _why_barred(self, issue: Issue, repo: RepoThreads, bots: Collection[str]) -> str | None:
        if self._excluded.has_issue(issue, repo.former_names):
            return EXCLUDED
        if issue.is_bot:
            return BY_BOT
        return BY_TEMPLATE if issue.author in bots else None


def _order(repo: RepoThreads, seed: int) -> Iterable[int]:
    """The numbers of the issues in an order that the seed decides: that of a crawl, where most are known."""
    known = len(repo.threads) + len(repo.pulls)
    if repo.highest <= _SPARSE * known:
        return (n for n in number_order(repo.highest, repo.name, seed) if n in repo.threads)
    # One forged number must not make a list of millions.
    return sorted(repo.threads, key=lambda number: keyed_hash(seed, "pool", repo.name, number))


def _limit(positives: Positives, most: int | None, seed: int) -> None:
    """Keep no more positives than one repository may give; which ones, the seed decides."""
    if most is None or len(positives.pairs) <= most:
        return
    order = sorted(positives.pairs, key=lambda pair: keyed_hash(seed, "limit", pair.first, pair.second))
    over = set(order[most:])
    positives.pairs = [pair for pair in positives.pairs if pair not in over]
    positives.dropped += [DroppedPair(pair.first, pair.second, 1, OVER_LIMIT) for pair in over]


def _links(threads: Iterator[Thread], usable: Collection[IssueRef]) -> Iterator[tuple[IssueRef, IssueRef]]:
    """Pairs of usable issues of which one mentions the other, the mentioning first."""
    for thread in threads:
        ref = thread.issue.ref
        yield from ((ref, other) for other in mentions_of(thread) if other in usable)
