"""The third task: the rows of a share of the repositories to verdicts, clusters, texts and positives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

import polars as pl

from gis_builder._archive import rows as r
from gis_builder._archive.exclusions import Exclusions
from gis_builder._archive.judged import Judged, JudgedRepo, pack
from gis_builder._archive.threads import RepoThreads, threads_of
from gis_builder._assemble import grounds_of, mentions_of
from gis_builder._crawl import pool_size
from gis_builder._detect import clusters as find_clusters
from gis_builder._detection import judge_thread
from gis_builder._github.pool import number_order
from gis_builder._pairs.positives import Positives, make_positives
from gis_builder._pairs.text import Texts, render_issues
from gis_builder._records import Cluster, DroppedPair, IssueRef, Outcome, Thread, Verdict
from gis_builder._settings import ArchiveSettings
from pairkit.keyed import keyed_hash

BY_BOT, EXCLUDED, OVER_LIMIT = "bot_author", "excluded", "per_repo_max"


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
    kept = table.join(enough.select("repo_id"), on="repo_id", how="semi", maintain_order="left")
    for _, rows in groupby(kept.iter_rows(named=True), key=lambda row: row["repo_id"]):
        judge.take(threads_of(rows))
    return pack(judge.result())


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
        verdicts = [
            judge_thread(thread, repo.kind_of, repo.rules, self.settings.detect)
            for thread in map(self._excluded.without_comments, repo.threads.values())
        ]
        self._verdicts.update((str(verdict.outcome), verdict.reason) for verdict in verdicts)
        duplicates = [verdict for verdict in verdicts if verdict.outcome is Outcome.DUPLICATE]
        self.counts["with_duplicates" if duplicates else "without_duplicates"] += 1
        if duplicates:
            self._repos.append(self._judged(repo, duplicates))

    def result(self) -> Judged:
        """All of it, in an order that the rows decide."""
        verdicts: dict[str, dict[str, int]] = {}
        for (outcome, reason), count in sorted(self._verdicts.items()):
            verdicts.setdefault(outcome, {})[reason] = count
        return Judged(self._repos, verdicts, dict(sorted(self.counts.items())))

    def _judged(self, repo: RepoThreads, duplicates: Sequence[Verdict]) -> JudgedRepo:
        settings = self.settings
        clusters = find_clusters(duplicates)
        texts = self._texts(repo, clusters, len(duplicates))
        positives = make_positives(clusters, texts, grounds_of(duplicates), settings.pair, settings.seed)
        _limit(positives, settings.limits.per_repo_max, settings.seed)
        threads = (repo.threads[ref.number] for ref in sorted(texts.usable))
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
        )

    def _texts(self, repo: RepoThreads, clusters: Sequence[Cluster], duplicates: int) -> Texts:
        """The texts of all issues of clusters, and of a sample of others that serve in negatives."""
        members = {ref.number for cluster in clusters for ref in cluster.members if ref.repo == repo.name}
        order = number_order(repo.highest, repo.name, self.settings.seed)
        pool = islice((n for n in order if n in repo.threads), pool_size(duplicates, self.settings.pool))
        wanted = [repo.threads[n].issue for n in sorted({*members, *pool}) if n in repo.threads]
        barred = {issue.ref: why for issue in wanted if (why := self._why_barred(issue.ref, repo))}
        texts = render_issues(
            (issue for issue in wanted if issue.ref not in barred), clusters, self.settings.text
        )
        texts.rejected |= barred
        return texts

    def _why_barred(self, ref: IssueRef, repo: RepoThreads) -> str | None:
        issue = repo.threads[ref.number].issue
        if self._excluded.has_issue(issue, repo.former_names):
            return EXCLUDED
        return BY_BOT if issue.is_bot else None


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
