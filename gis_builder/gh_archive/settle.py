"""Decisions over all repositories: owners of names, near-duplicate texts, splits.

An issue or pair takes only some numbers in memory here, as all of GitHub has many millions of them. Negatives
are drawn by bucket again (the third map), once each repository's share of them is known.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from gis_builder.gh_archive.judge import OUTCOMES, Judged, JudgedRepo, pack, unpack
from gis_builder.gh_archive.maps import FileTask, do
from gis_builder.gh_archive.stored import IssueTextsOnDisk, PairsOnDisk
from gis_builder.pairing.dataset import Reasons, dropped_frame, reasons_of
from gis_builder.pairing.negatives import make_negatives, shares
from gis_builder.pairing.positives import Positives, make_positives
from gis_builder.pairing.ref_table import RefTable, Together
from gis_builder.pairing.split import BEYOND, NOWHERE, Codes, split_groups
from gis_builder.pairing.text import RenderedTexts
from gis_builder.settings import ArchiveSettings
from gis_builder.settings.pairs import SPLITS
from gis_builder.store.records import DroppedPair, IssuePair, IssueRef
from pairkit.similarity.groups import Places, connected
from pairkit.similarity.near_duplicates import near_identical_to
from pairkit.system.records_on_disk import Scratch
from pairkit.system.seeded import keyed_hash

NAME_TAKEN, OVER_LIMIT = "name_taken_over", "per_repo_max"


class Owners:
    """The owner of each name: if a repository was deleted and created anew, the later one."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._latest: dict[str, tuple[tuple[str, int], int]] = {}
        for path in paths:
            for repo in unpack(path, Judged).with_duplicates():
                self.note(repo)

    def note(self, repo: JudgedRepo) -> None:
        """Add a repository."""
        name = repo.name.lower()
        self._latest[name] = max(self._latest.get(name, (("", 0), 0)), (repo.named_at, repo.repo_id))

    def have(self, repo: JudgedRepo) -> bool:
        """Whether a repository owns its name."""
        return self._latest[repo.name.lower()][1] == repo.repo_id


class _Bucket(NamedTuple):
    """Ids by name of the repositories of a bucket, and the places of its positives."""

    repos: dict[str, int]
    positives: range


@dataclass(slots=True)
class CombinedBuckets:
    """The judged repositories of all buckets, with their positives."""

    settings: ArchiveSettings
    refs: RefTable
    together: Together
    texts: IssueTextsOnDisk
    pairs: PairsOnDisk
    reasons: Reasons = field(default_factory=Counter)  # of everything that was left out
    left_out: list[pl.DataFrame] = field(default_factory=list)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    clusters: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    buckets: list[_Bucket] = field(default_factory=list)

    def add(self, judged: Judged, owners: Owners) -> None:
        """Add a bucket."""
        for repo in judged.repos:
            self.verdicts.update({(outcome, reason): count for outcome, reason, count in repo.verdicts})
            self.counts[repo.outcome] += 1
        before = len(self.pairs)
        own: dict[str, int] = {}
        rejected: dict[IssueRef, str] = {}
        dropped: list[DroppedPair] = []
        for repo in judged.with_duplicates():
            if owners.have(repo):
                own[repo.name] = repo.repo_id
                rejected.update(repo.rejected)
                dropped += self._add_repo(repo)
            else:
                self.counts[NAME_TAKEN] += 1
        self.leave_out(rejected, dropped)
        self.buckets.append(_Bucket(own, range(before, len(self.pairs))))

    def _add_repo(self, repo: JudgedRepo) -> list[DroppedPair]:
        """Add a repository, and its positives; returns those that were left out."""
        for cluster in repo.clusters:
            self.together.add(cluster.members)
        self.clusters += len(repo.clusters)
        self.texts.extend(repo.texts)
        self.removed.update(repo.removed)
        texts = RenderedTexts({text.ref: text for text in repo.texts}, dict(repo.rejected))
        grounds = {(duplicate, original): why for duplicate, original, why in repo.grounds}
        seed = self.settings.seed
        made = make_positives(repo.clusters, texts, grounds, self.settings.pair, seed)
        _limit(made, self.settings.limits.per_repo_max, seed)
        self.pairs.extend(made.pairs)
        return made.dropped

    def leave_out(self, rejected: Mapping[IssueRef, str], dropped: Sequence[DroppedPair]) -> None:
        """Note issues and pairs that were left out."""
        self.reasons.update(reasons_of(rejected, dropped))
        self.left_out.append(dropped_frame(rejected, dropped))

    def verdicts_by_outcome(self) -> dict[str, dict[str, int]]:
        """Counts by outcome and reason, as `gis build` has them."""
        found: dict[str, dict[str, int]] = {}
        for (outcome, reason), count in sorted(self.verdicts.items()):
            found.setdefault(outcome, {})[reason] = count
        return found

    def groups(self, tied: Places) -> Places:
        """The least issue of each issue's group: of its cluster, and of near-identical texts."""
        return connected(self.together.groups(), self.texts.issues, self.texts.issues[tied])


def combine_buckets(
    paths: Sequence[Path], texts: Scratch, pairs: Scratch, settings: ArchiveSettings
) -> CombinedBuckets:
    """Read all buckets, one in memory at a time; their texts and positives go to disk."""
    owners = Owners()
    refs = RefTable(_refs(paths, owners))
    combined = CombinedBuckets(
        *(settings, refs, Together(refs)),
        IssueTextsOnDisk(texts, refs),
        PairsOnDisk(pairs, refs, settings.seed),
    )
    combined.counts.update(dict.fromkeys((*OUTCOMES, NAME_TAKEN), 0))
    for path in paths:
        combined.add(unpack(path, Judged), owners)
    return combined


def _refs(paths: Iterable[Path], owners: Owners) -> Iterator[IssueRef]:
    """All issues of clusters or with texts; their repositories are added to the owners."""
    for path in paths:
        for repo in unpack(path, Judged).with_duplicates():
            owners.note(repo)
            for cluster in repo.clusters:
                yield from cluster.members
            for text in repo.texts:
                yield text.ref


def _limit(made: Positives, most: int | None, seed: int) -> None:
    """Keep at most so many positives of one repository; the seed decides which."""
    if most is None or len(made.pairs) <= most:
        return
    order = sorted(made.pairs, key=lambda pair: keyed_hash(seed, "limit", pair.first, pair.second))
    over = set(order[most:])
    made.pairs = [pair for pair in made.pairs if pair not in over]
    made.dropped += [DroppedPair(pair.first, pair.second, 1, OVER_LIMIT) for pair in order[most:]]


def tie(out: Path, texts: IssueTextsOnDisk, threshold: float) -> Places:
    """The first text of each text's group of near-identical ones, kept in `out`; (text,)."""
    do(FileTask((out,), _tied, (texts, threshold)))
    return np.frombuffer(unpack(out, bytes), np.int64)


def _tied(texts: IssueTextsOnDisk, threshold: float) -> Iterator[bytes]:
    yield pack(near_identical_to(texts, threshold).astype(np.int64).tobytes())


@dataclass(slots=True)
class SplitAssignment:
    """The group of each issue, and the split of issues and positives."""

    group: Places
    issues: Codes
    positives: Codes
    negatives_wanted: dict[str, int]


def split(combined: CombinedBuckets, tied: Places) -> SplitAssignment:
    """Assign whole groups to the splits, before there are any negatives."""
    group, settings = combined.groups(tied), combined.settings
    table, usable = combined.pairs.table, combined.texts.usable
    ends = table["first"].to_numpy(), table["second"].to_numpy()
    assigned = split_groups(
        combined.refs, ends, group, usable, settings.split, settings.pair.ratio, settings.seed
    )
    beyond = combined.pairs.at(np.flatnonzero(assigned.positives == NOWHERE).tolist())
    combined.leave_out({}, [DroppedPair(pair.first, pair.second, 1, BEYOND) for pair in beyond])
    return SplitAssignment(group, assigned.issues, assigned.positives, assigned.negatives_wanted)


class Placed(msgspec.Struct):
    """Input for drawing the negatives of a bucket."""

    repos: list[int]  # repositories that own their names
    issues: list[tuple[IssueRef, str, IssueRef]]  # with split, if they have one, and group
    positives: dict[str, list[IssuePair]]
    wanted: dict[str, dict[str, int]]  # by split and repository


class Drawn(msgspec.Struct):
    """The negatives of a bucket."""

    pairs: dict[str, list[IssuePair]]
    dropped: list[DroppedPair]
    missing: dict[str, int]
    with_single: int


def placed(combined: CombinedBuckets, assignment: SplitAssignment) -> Iterator[Placed]:
    """The splits, and what each repository draws, by bucket."""
    refs, usable, codes = combined.refs, combined.texts.usable, assignment.issues
    repo_of = refs.repo_at(combined.pairs.table["first"].to_numpy())
    wanted: dict[str, dict[str, int]] = {}
    for split, count in assignment.negatives_wanted.items():  # in proportion to positives
        own = repo_of[assignment.positives == SPLITS.index(split)]
        repos, counts = np.unique(own, return_counts=True)
        given = shares(counts.tolist(), count)
        wanted[split] = dict(zip((refs.repos[repo] for repo in repos.tolist()), given, strict=True))
    for bucket in combined.buckets:
        issues = np.concatenate([np.empty(0, np.int64), *map(refs.of_repo, sorted(bucket.repos))])
        issues = issues[usable[issues]]
        splits = [SPLITS[code] if code != NOWHERE else "" for code in codes[issues].tolist()]
        positives: dict[str, list[IssuePair]] = {split: [] for split in wanted}
        pairs, of = (
            combined.pairs.at(bucket.positives),
            assignment.positives[bucket.positives.start : bucket.positives.stop],
        )
        for pair, code in zip(pairs, of.tolist(), strict=True):
            if code != NOWHERE:
                positives[SPLITS[code]].append(pair)
        yield Placed(
            sorted(bucket.repos.values()),
            list(zip(refs.at(issues), splits, refs.at(assignment.group[issues]), strict=True)),
            positives,
            {
                split: {repo: shares[repo] for repo in bucket.repos if repo in shares}
                for split, shares in wanted.items()
            },
        )


def draw_negatives(judged: Path, placed_in: Path, settings: str) -> Iterator[bytes]:
    """The negatives of a bucket; no repository draws what another lacks, or the large would prevail."""
    given, chosen = unpack(placed_in, Placed), ArchiveSettings.model_validate_json(settings)
    split_of = {ref: split for ref, split, _ in given.issues if split}
    group = {ref: first for ref, _, first in given.issues}
    drawn = Drawn({split: [] for split in given.positives}, [], dict.fromkeys(given.positives, 0), 0)
    for repo in unpack(judged, Judged).with_duplicates():
        positives = {
            split: sorted(
                (pair for pair in pairs if pair.first.repo == repo.name),
                key=lambda pair: (pair.first, pair.second),
            )
            for split, pairs in given.positives.items()
        }
        if repo.repo_id not in given.repos or not any(positives.values()):
            continue
        texts = {text.ref: text for text in repo.texts}
        made = make_negatives(
            positives,
            {split: wanted.get(repo.name, 0) for split, wanted in given.wanted.items()},
            {ref: split_of[ref] for ref in texts if ref in split_of},
            {ref: group[ref] for ref in texts},
            repo.clusters,
            texts,
            {frozenset(link) for link in repo.links},
            chosen.pair,
            chosen.seed,
        )
        for split, pairs in made.pairs.items():
            drawn.pairs[split] += pairs
            drawn.missing[split] += made.missing.get(split, 0)
        drawn.dropped += made.dropped
        drawn.with_single += made.with_single
    yield pack(drawn)


class DrawnNegatives(NamedTuple):
    """The result of drawing."""

    split_of: Codes
    missing: dict[str, int]
    with_single: int


def add_negatives(
    combined: CombinedBuckets, assignment: SplitAssignment, paths: Iterable[Path]
) -> DrawnNegatives:
    """Add the negatives of all buckets, one of them in memory at a time."""
    codes = array("b", assignment.positives.tobytes())
    missing, with_single = dict.fromkeys(assignment.negatives_wanted, 0), 0
    for path in paths:
        drawn = unpack(path, Drawn)
        for name, pairs in drawn.pairs.items():
            combined.pairs.extend(pairs)
            codes.extend([SPLITS.index(name)] * len(pairs))
            missing[name] += drawn.missing[name]
        combined.leave_out({}, drawn.dropped)
        with_single += drawn.with_single
    return DrawnNegatives(np.asarray(codes), missing, with_single)
