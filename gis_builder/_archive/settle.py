"""What is decided over all repositories: whose a name is, which texts are near-identical, the splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gis_builder._archive.judged import Judged, JudgedRepo, Placed, Ties, pack, unpack
from gis_builder._archive.tasks import Task, do
from gis_builder._archive.texts import TextsOnDisk
from gis_builder._pairs.negatives import shares
from gis_builder._records import Cluster, DroppedPair, IssueRef, Pair
from gis_builder._settings import ArchiveSettings
from gis_builder._split import Splits, split_issues, tie_similar

NAME_TAKEN = "name_taken_over"


@dataclass(slots=True)
class Gathered:
    """What the partitions say together, texts apart."""

    verdicts: dict[str, dict[str, int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    clusters: list[Cluster] = field(default_factory=list)
    positives: list[Pair] = field(default_factory=list)
    rejected: dict[IssueRef, str] = field(default_factory=dict)
    dropped: list[DroppedPair] = field(default_factory=list)
    removed: Counter[str] = field(default_factory=Counter)
    repos: list[dict[str, int]] = field(default_factory=list)  # ids by name, of each partition

    def add(self, judged: Judged, owners: Mapping[str, int]) -> list[JudgedRepo]:
        """Take a partition in; returns the repositories whose name is theirs."""
        for outcome, reasons in judged.verdicts.items():
            known = self.verdicts.setdefault(outcome, {})
            for reason, count in reasons.items():
                known[reason] = known.get(reason, 0) + count
        self.counts.update(judged.counts)
        own = [repo for repo in judged.repos if owners[repo.name.lower()] == repo.repo_id]
        self.counts[NAME_TAKEN] += len(judged.repos) - len(own)
        for repo in own:
            self.clusters += repo.clusters
            self.positives += repo.positives
            self.rejected.update(repo.rejected)
            self.dropped += repo.dropped
            self.removed.update(repo.removed)
        self.repos.append({repo.name: repo.repo_id for repo in own})
        return own

    def verdict_counts(self) -> dict[str, dict[str, int]]:
        """As `gis build` has them, in order."""
        return {outcome: dict(sorted(reasons.items())) for outcome, reasons in sorted(self.verdicts.items())}


def owners_of(paths: Iterable[Path]) -> dict[str, int]:
    """Whose each name is, in lower case: where a repository was deleted and made anew, the later one's.

    Issues of both would have the same references and pages, and only the later one's are to be found there.
    """
    latest: dict[str, tuple[tuple[str, int], int]] = {}
    for path in paths:
        for repo in unpack(path, Judged).repos:
            name = repo.name.lower()
            latest[name] = max(latest.get(name, (("", 0), 0)), (repo.named_at, repo.repo_id))
    return {name: repo_id for name, (_, repo_id) in latest.items()}


def gather(paths: Sequence[Path], texts: TextsOnDisk) -> Gathered:
    """Read all partitions, one in memory at a time; their texts go to disk."""
    owners = owners_of(paths)
    gathered = Gathered()
    for path in paths:
        for repo in gathered.add(unpack(path, Judged), owners):
            texts.add(repo.texts)
    return gathered


def tie(out: Path, texts: TextsOnDisk, threshold: float) -> list[list[IssueRef]]:
    """Groups of issues with near-identical texts, kept in `out`."""
    do(Task(out, _tied, (texts, threshold)))
    return unpack(out, Ties).groups


def _tied(texts: TextsOnDisk, threshold: float) -> bytes:
    return pack(Ties(tie_similar(texts, threshold)))


def split(
    gathered: Gathered, texts: TextsOnDisk, ties: Iterable[Sequence[IssueRef]], settings: ArchiveSettings
) -> Splits:
    """Deal whole groups to the splits.

    Raises:
        ConfigError: There are not enough positives for the numbers of rows asked for.
    """
    return split_issues(
        *(gathered.positives, gathered.clusters, texts, ties, settings.split),
        *(settings.pair.ratio, settings.seed),
    )


def placed(gathered: Gathered, splits: Splits) -> list[Placed]:
    """What each partition is told of the splits."""
    by_repo: defaultdict[str, list[IssueRef]] = defaultdict(list)
    for ref in sorted(splits.group):
        by_repo[ref.repo].append(ref)
    place_of = {name: place for place, repos in enumerate(gathered.repos) for name in repos}
    found = [_placed(repos, by_repo, splits) for repos in gathered.repos]
    for split, pairs in splits.positives.items():
        for pair in pairs:
            found[place_of[pair.first.repo]].positives[split].append(pair)
        for repo, count in _wanted(pairs, splits.negatives_wanted[split]).items():
            found[place_of[repo]].wanted[split][repo] = count
    return found


def _wanted(positives: Iterable[Pair], count: int) -> dict[str, int]:
    """How many negatives each repository draws, in proportion to its positives."""
    counts = sorted(Counter(pair.first.repo for pair in positives).items())
    given = shares([positives for _, positives in counts], count)
    return {repo: share for (repo, _), share in zip(counts, given, strict=True)}


def _placed(own: Mapping[str, int], by_repo: Mapping[str, Sequence[IssueRef]], splits: Splits) -> Placed:
    """Of a partition's issues; its positives, and how many negatives they want, are still to be added."""
    refs = [ref for repo in sorted(own) for ref in by_repo.get(repo, ())]
    return Placed(
        sorted(own.values()),
        [(ref, splits.of[ref]) for ref in refs if ref in splits.of],
        [(ref, splits.group[ref]) for ref in refs],
        {split: [] for split in splits.positives},
        {split: {} for split in splits.positives},
    )
