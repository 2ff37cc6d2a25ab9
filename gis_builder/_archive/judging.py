"""Judges repositories one by one: verdicts, clusters, texts, positives, and what was left out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from gis_builder._archive.exclusions import Exclusions
from gis_builder._archive.judged import Judged, JudgedRepo, by_outcome
from gis_builder._archive.templates import template_authors
from gis_builder._archive.threads import RepoThreads
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
WITH_DUPLICATES, WITHOUT_DUPLICATES = "with_duplicates", "without_duplicates"
BY_BOT, BY_TEMPLATE, EXCLUDED, OVER_LIMIT = "bot_author", "template_author", "excluded", "per_repo_max"


class Judging:
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
        self.counts[WITH_DUPLICATES if duplicates else WITHOUT_DUPLICATES] += 1
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
        return Judged(self._repos, by_outcome(self._verdicts), dict(sorted(self.counts.items())))

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
        pool = islice(pool_order(repo, self.settings.seed), pool_size(duplicates, self.settings.pool))
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


def pool_order(repo: RepoThreads, seed: int) -> Iterable[int]:
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
