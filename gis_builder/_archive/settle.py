"""What is decided over all repositories: whose a name is, which texts are near-identical, the splits.

Of each issue and pair only some numbers are in memory here, since of all of GitHub there are many millions.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gis_builder._archive.judged import Drawn, Judged, JudgedRepo, Placed, Ties, pack, unpack, verdict_counts
from gis_builder._archive.left_out import LeftOut
from gis_builder._archive.objects import Location
from gis_builder._archive.pairs import PairsOnDisk
from gis_builder._archive.tasks import Task, damaged, do
from gis_builder._archive.texts import TextsOnDisk
from gis_builder._deal import NOWHERE, Codes, deal
from gis_builder._pairs.negatives import shares
from gis_builder._records import IssueRef
from gis_builder._ref_table import RefTable, Together
from gis_builder._settings import ArchiveSettings
from gis_builder._settings.pairs import SPLITS
from gis_builder._split import BEYOND
from pairkit.connected import Places, connected
from pairkit.records_on_disk import Scratch
from pairkit.similar import near_identical_to

NAME_TAKEN = "name_taken_over"


class Owners:
    """Whose each name is: where a repository was deleted and made anew, the later one's.

    Issues of both would have the same references and pages, and only the later one's are to be found there.
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[tuple[str, int], int]] = {}

    def note(self, repo: JudgedRepo) -> None:
        """Take a repository in."""
        name = repo.name.lower()
        self._latest[name] = max(self._latest.get(name, (("", 0), 0)), (repo.named_at, repo.repo_id))

    def have(self, repo: JudgedRepo) -> bool:
        """Whether its name is a repository's, of those that were noted."""
        return self._latest[repo.name.lower()][1] == repo.repo_id


def owners_of(paths: Iterable[Location]) -> Owners:
    """Whose the names are in these partitions."""
    owners = Owners()
    for path in paths:
        for repo in unpack(path, Judged).repos:
            owners.note(repo)
    return owners


class _Partition(NamedTuple):
    """Ids by name of the repositories of a partition, and where its positives are."""

    repos: dict[str, int]
    positives: range


@dataclass(slots=True)
class Gathered:
    """What the partitions say together.

    Attributes:
        refs: All issues that it is about.
        together: Those of one cluster.
        texts: Of those that may stand in a pair.
        pairs: The positives, and later the negatives, too.
        left_out: What was left out.
        verdicts: How many of each outcome and reason.
        counts: Of repositories, by what became of them.
        clusters: How many there are.
        removed: What rendering took out of texts.
    """

    refs: RefTable
    together: Together
    texts: TextsOnDisk
    pairs: PairsOnDisk
    left_out: LeftOut
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    clusters: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    partitions: list[_Partition] = field(default_factory=list)

    def add(self, judged: Judged, owners: Owners) -> None:
        """Take a partition in."""
        self.verdicts.update(verdict_counts(judged.verdicts))
        self.counts.update(judged.counts)
        before = len(self.pairs)
        own = [repo for repo in judged.repos if owners.have(repo)]
        self.counts[NAME_TAKEN] += len(judged.repos) - len(own)
        for repo in own:
            self._add_repo(repo)
        repos = {repo.name: repo.repo_id for repo in own}
        self.partitions.append(_Partition(repos, range(before, len(self.pairs))))

    def _add_repo(self, repo: JudgedRepo) -> None:
        for cluster in repo.clusters:
            self.together.add(cluster.members)
        self.clusters += len(repo.clusters)
        self.texts.extend(repo.texts)
        self.pairs.extend(repo.positives)
        self.left_out.add_issues(repo.rejected)
        self.left_out.add_pairs(repo.dropped)
        self.removed.update(repo.removed)

    def groups(self, tied: Places) -> Places:
        """The least issue of each one's group: of its cluster, and of texts that are near-identical.

        Args:
            tied: See `tie`.
        """
        return connected(self.together.groups(), self.texts.issues, self.texts.issues[tied])


def gather(paths: Sequence[Location], texts: Scratch, pairs: Scratch, seed: int) -> Gathered:
    """Read all partitions, one in memory at a time; their texts and positives go to disk."""
    owners = Owners()
    refs = RefTable(_refs(paths, owners))
    gathered = Gathered(
        *(refs, Together(refs), TextsOnDisk(texts, refs), PairsOnDisk(pairs, refs, seed), LeftOut(refs))
    )
    for path in paths:
        gathered.add(unpack(path, Judged), owners)
    return gathered


def _refs(paths: Iterable[Location], owners: Owners) -> Iterator[IssueRef]:
    """All issues that partitions name; their repositories are noted."""
    for path in paths:
        for repo in unpack(path, Judged).repos:
            owners.note(repo)
            for cluster in repo.clusters:
                yield from cluster.members
            for text in repo.texts:
                yield text.ref
            for ref, _ in repo.rejected:
                yield ref
            for drop in repo.dropped:
                yield from (drop.first, drop.second)


def tie(out: Location, texts: TextsOnDisk, threshold: float) -> Places:
    """The first text of each one's group of near-identical texts, kept in `out`; (text,).

    Raises:
        DataError: The file that was kept is damaged, or of other texts.
    """
    do(Task(out, _tied, (texts, threshold)))
    try:
        first = np.frombuffer(unpack(out, Ties).first, np.int64)
    except ValueError as error:
        raise damaged(out, error) from error
    if len(first) != len(texts) or (first < 0).any() or (first > np.arange(len(texts))).any():
        raise damaged(out, ValueError("of other texts"))
    return first


def _tied(texts: TextsOnDisk, threshold: float) -> bytes:
    return pack(Ties(near_identical_to(texts, threshold).astype(np.int64).tobytes()))


@dataclass(slots=True)
class Settled:
    """Where everything went.

    Attributes:
        group: The least issue of each one's group; (reference,).
        issues: The split of each issue; (reference,).
        positives: The split of each positive; (positive,).
        negatives_wanted: Of each split that there is.
    """

    group: Places
    issues: Codes
    positives: Codes
    negatives_wanted: dict[str, int]


def split(gathered: Gathered, tied: Places, settings: ArchiveSettings) -> Settled:
    """Deal whole groups to the splits, before any negative is there.

    Raises:
        ConfigError: There are not enough positives for the numbers of rows asked for.
    """
    group = gathered.groups(tied)
    first, second = gathered.pairs.ends
    dealt = deal(
        *(gathered.refs, (first, second), group, gathered.texts.usable, settings.split),
        *(settings.pair.ratio, settings.seed),
    )
    beyond = dealt.positives == NOWHERE
    gathered.left_out.add_positives(first[beyond], second[beyond], BEYOND)
    return Settled(group, dealt.issues, dealt.positives, dealt.negatives_wanted)


def placed(gathered: Gathered, settled: Settled) -> Iterator[Placed]:
    """What each partition is told of the splits."""
    wanted = {
        split: _wanted(gathered, settled.positives == SPLITS.index(split), count)
        for split, count in settled.negatives_wanted.items()
    }
    usable = gathered.texts.usable
    for partition in gathered.partitions:
        yield _placed(gathered, settled, partition, wanted, usable)


def _wanted(gathered: Gathered, own: Codes, count: int) -> dict[str, int]:
    """How many negatives each repository draws, in proportion to its positives."""
    first, _ = gathered.pairs.ends
    repos, counts = np.unique(gathered.refs.repo_at(first[: len(own)][own]), return_counts=True)
    given = shares(counts.tolist(), count)
    return {gathered.refs.repos[repo]: share for repo, share in zip(repos.tolist(), given, strict=True)}


def _placed(
    gathered: Gathered,
    settled: Settled,
    partition: _Partition,
    wanted: Mapping[str, Mapping[str, int]],
    usable: npt.NDArray[np.bool_],
) -> Placed:
    refs = gathered.refs
    issues = np.concatenate([np.empty(0, np.int64), *map(refs.of_repo, sorted(partition.repos))])
    issues = issues[usable[issues]]
    dealt = issues[settled.issues[issues] != NOWHERE]
    positives = np.arange(partition.positives.start, partition.positives.stop)
    of = settled.positives[positives]
    return Placed(
        sorted(partition.repos.values()),
        [
            (ref, SPLITS[code])
            for ref, code in zip(refs.at(dealt), settled.issues[dealt].tolist(), strict=True)
        ],
        list(zip(refs.at(issues), refs.at(settled.group[issues]), strict=True)),
        {
            split: gathered.pairs.at(gathered.pairs.in_order(positives[of == SPLITS.index(split)]))
            for split in wanted
        },
        {
            split: {repo: share for repo in partition.repos if (share := shares.get(repo)) is not None}
            for split, shares in wanted.items()
        },
    )


class Negatives(NamedTuple):
    """What came of drawing.

    Attributes:
        split_of: The split of each pair, positives and negatives; (pair,).
        missing: How many negatives each split lacks.
        with_single: Negatives with an issue that stands in no positive.
    """

    split_of: Codes
    missing: dict[str, int]
    with_single: int


def add_negatives(gathered: Gathered, settled: Settled, paths: Iterable[Location]) -> Negatives:
    """Take in what the partitions drew, one of them in memory at a time."""
    codes = array("b", settled.positives.tobytes())
    missing, with_single = dict.fromkeys(settled.negatives_wanted, 0), 0
    for path in paths:
        drawn = unpack(path, Drawn)
        for name, pairs in drawn.pairs.items():
            gathered.pairs.extend(pairs)
            codes.extend([SPLITS.index(name)] * len(pairs))
            missing[name] += drawn.missing.get(name, 0)
        gathered.left_out.add_pairs(drawn.dropped)
        with_single += drawn.with_single
    return Negatives(np.asarray(codes), missing, with_single)
