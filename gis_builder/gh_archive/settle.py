"""Decisions over all repositories: owners of names, near-duplicate texts, splits.

Only some numbers of each issue and pair are in memory, because GitHub has many millions of them. Negatives
are drawn by bucket (the third map), after the number for each repository is known.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct, field

from gis_builder.gh_archive.judge_threads import (
    OUTCOMES,
    JudgedRepo,
    pack,
    read_judged,
    unpack,
    with_duplicates,
)
from gis_builder.gh_archive.runners import digest_of
from gis_builder.pairing.negatives import Negatives, make_negatives, shares
from gis_builder.pairing.pair_folder import (
    Reasons,
    dropped_frame,
    reasons_of,
    row_order,
)
from gis_builder.pairing.positives import Positives, make_positives
from gis_builder.pairing.split import (
    BEYOND,
    RefTable,
    SameSplit,
    SplitInput,
    SplitResult,
    Splits,
    split_groups,
)
from gis_builder.pairing.text import RenderedTexts
from gis_builder.settings import SPLITS, ArchiveSettings
from gis_builder.store.issue_records import DroppedPair, IssuePair, IssueRef, IssueText
from pairkit.base.system.files import write_bytes
from pairkit.base.system.records_on_disk import RecordsOnDisk, Scratch
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.group_splits import NOWHERE, Codes
from pairkit.similarity.groups import Indices, connected
from pairkit.similarity.near_duplicates import near_identical_to

NAME_TAKEN = "name_taken_over"
OVER_LIMIT = "per_repo_max"
_PAIRS = {
    "first": pl.Int32,
    "second": pl.Int32,
    "hash": pl.UInt64,
    "label": pl.Int8,
}


class _Owner(NamedTuple):
    """The latest repository of a name, if one was deleted and created again; later ones are greater."""

    named_at: tuple[str, int]
    repo_id: int


Owners = dict[str, _Owner]  # by name in lower case


class _Bucket(NamedTuple):
    """The ids of a bucket's repositories by name, the indices of its positives, and a hash of its content."""

    repos: dict[str, int]
    positives: range
    digest: str


class IssueTextsOnDisk:
    """The texts of all issues that may be in a pair, as a sequence of strings."""

    def __init__(self, scratch: Scratch, refs: RefTable) -> None:
        self._refs = refs
        self._texts = RecordsOnDisk(scratch, IssueText)
        self._issues = array("q")
        self._place = np.full(len(refs), -1, np.int32)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> str:
        return self._texts[index].text

    def extend(self, texts: Sequence[IssueText]) -> None:
        """Add texts."""
        issues = self._refs.indices(text.ref for text in texts)
        first = len(self)
        self._place[issues] = np.arange(first, first + len(issues))
        self._issues.extend(issues.tolist())
        self._texts.extend(texts)

    @property
    def issues(self) -> Indices:
        """The index of each text's issue among the references; (text,)."""
        return np.asarray(self._issues)

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Whether each reference has a text; (reference,)."""
        return self._place >= 0

    def of(self, refs: Iterable[IssueRef]) -> dict[IssueRef, IssueText]:
        """Read the texts of these issues."""
        places = self._place[self._refs.indices(set(refs))]
        in_order = np.sort(places).tolist()  # of the file
        texts = [self._texts[place] for place in in_order]
        return {text.ref: text for text in texts}


class PairsOnDisk:
    """The pairs of the dataset, and a table of their issues (indices of references) and their order."""

    def __init__(self, scratch: Scratch, refs: RefTable, seed: int) -> None:
        self._refs = refs
        self._row_order = row_order(seed)
        self._pairs = RecordsOnDisk(scratch, IssuePair)
        self._frames = [pl.DataFrame(schema=_PAIRS)]

    def __len__(self) -> int:
        return len(self._pairs)

    def extend(self, pairs: Sequence[IssuePair]) -> None:
        """Add pairs."""
        columns = {
            "first": self._refs.indices(pair.first for pair in pairs),
            "second": self._refs.indices(pair.second for pair in pairs),
            "hash": [self._row_order(pair)[0] for pair in pairs],
            "label": [pair.label for pair in pairs],
        }
        self._frames.append(pl.DataFrame(columns, schema=_PAIRS))
        self._pairs.extend(pairs)

    @property
    def table(self) -> pl.DataFrame:
        """The columns place (index), first, second, hash and label of each pair."""
        self._frames = [pl.concat(self._frames)]
        return self._frames[0].with_row_index("place")

    def at(self, places: Iterable[int]) -> list[IssuePair]:
        """Read pairs by index."""
        indices = list(places)
        # They are read in the order of the file, which is faster.
        pairs = {index: self._pairs[index] for index in sorted(indices)}
        return [pairs[index] for index in indices]


class CombinedBuckets(Struct):
    """The judged repositories of all buckets and their positives."""

    settings: ArchiveSettings
    refs: RefTable
    same_split: SameSplit
    texts: IssueTextsOnDisk
    pairs: PairsOnDisk
    reasons: Reasons = field(default_factory=Counter)  # of dropped issues and pairs
    dropped: list[pl.DataFrame] = []
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    clusters: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    buckets: list[_Bucket] = []

    def add(self, judged: Sequence[JudgedRepo], owners: Owners) -> None:
        """Add a bucket."""
        for repo in judged:
            for outcome, reason, count in repo.verdicts:
                self.verdicts[outcome, reason] += count
            self.counts[repo.outcome] += 1
        start = len(self.pairs)
        ids = {}
        rejected = {}
        dropped = []
        repos = with_duplicates(judged)
        for repo in repos:
            if owners[repo.name.lower()].repo_id != repo.repo_id:
                self.counts[NAME_TAKEN] += 1
                continue
            ids[repo.name] = repo.repo_id
            rejected.update(repo.rejected)
            dropped += self._add_repo(repo)
        self.drop(rejected, dropped)
        positives = range(start, len(self.pairs))
        self.buckets.append(_Bucket(ids, positives, digest_of(pack(repos))))

    def _add_repo(self, repo: JudgedRepo) -> list[DroppedPair]:
        """Add a repository and its positives; returns the dropped ones."""
        for cluster in repo.clusters:
            self.same_split.add(cluster.members)
        self.clusters += len(repo.clusters)
        self.texts.extend(list(repo.texts.values()))
        self.removed.update(repo.removed)
        texts = RenderedTexts(repo.texts, repo.rejected)
        seed = self.settings.seed
        positives = make_positives(
            repo.clusters, texts, repo.grounds, self.settings.pair, seed
        )
        _limit(positives, self.settings.limits.per_repo_max, seed)
        self.pairs.extend(positives.pairs)
        return positives.dropped

    def drop(
        self, rejected: Mapping[IssueRef, str], dropped: Sequence[DroppedPair]
    ) -> None:
        """Record rejected issues and dropped pairs."""
        self.reasons.update(reasons_of(rejected, dropped))
        self.dropped.append(dropped_frame(rejected, dropped))

    def verdicts_by_outcome(self) -> dict[str, dict[str, int]]:
        """The counts by outcome and reason, in the format of `gis build`."""
        by_outcome: dict[str, dict[str, int]] = {}
        for (outcome, reason), count in sorted(self.verdicts.items()):
            by_outcome.setdefault(outcome, {})[reason] = count
        return by_outcome

    def groups(self, near_duplicates: Indices) -> Indices:
        """The first issue of each issue's group, connected by clusters and near-duplicate texts."""
        issues = self.texts.issues
        return connected(self.same_split.groups(), issues, issues[near_duplicates])


def combine_buckets(
    paths: Sequence[Path],
    texts: Scratch,
    pairs: Scratch,
    settings: ArchiveSettings,
) -> CombinedBuckets:
    """Read the buckets one by one; texts and positives are written to disk."""
    owners: Owners = {}
    refs = RefTable(_refs(paths, owners))
    combined = CombinedBuckets(
        settings=settings,
        refs=refs,
        same_split=SameSplit(refs),
        texts=IssueTextsOnDisk(texts, refs),
        pairs=PairsOnDisk(pairs, refs, settings.seed),
    )
    combined.counts.update(dict.fromkeys((*OUTCOMES, NAME_TAKEN), 0))
    for path in paths:
        combined.add(read_judged(path), owners)
    return combined


def _refs(paths: Iterable[Path], owners: Owners) -> Iterator[IssueRef]:
    """Yield all issues of clusters or with texts; adds their repositories to the owners."""
    for path in paths:
        for repo in with_duplicates(read_judged(path)):
            name = repo.name.lower()
            owner = _Owner(repo.named_at, repo.repo_id)
            owners[name] = max(owners.get(name, owner), owner)
            for cluster in repo.clusters:
                yield from cluster.members
            yield from repo.texts


def _limit(positives: Positives, limit: int | None, seed: int) -> None:
    """Limit the number of a repository's positives; the choice is random."""
    if limit is None:
        return
    shuffled = sorted(
        positives.pairs,
        key=lambda pair: keyed_hash(seed, "limit", pair.first, pair.second),
    )
    positives.dropped += [pair.dropped(OVER_LIMIT) for pair in shuffled[limit:]]
    kept = set(shuffled[:limit])
    positives.pairs = [pair for pair in positives.pairs if pair in kept]


def near_duplicate_groups(
    out: Path, texts: IssueTextsOnDisk, threshold: float
) -> Indices:
    """The first text of each text's group of near-duplicates, cached in `out`; (text,)."""
    if not out.exists():
        groups = near_identical_to(texts, threshold).astype(np.int64)
        write_bytes(out, pack(groups.tobytes()), private=True)
    return np.frombuffer(unpack(out, bytes), np.int64)


def assign_splits(combined: CombinedBuckets, near_duplicates: Indices) -> SplitResult:
    """Assign whole groups to splits, before negatives are drawn."""
    table = combined.pairs.table
    task = SplitInput(
        refs=combined.refs,
        first=table["first"].to_numpy(),
        second=table["second"].to_numpy(),
        groups=combined.groups(near_duplicates),
        usable=combined.texts.usable,
    )
    assigned = split_groups(task, combined.settings)
    excess = combined.pairs.at(np.flatnonzero(assigned.positives == NOWHERE).tolist())
    combined.drop({}, [pair.dropped(BEYOND) for pair in excess])
    return assigned


class DrawInput(Struct):
    """The input for drawing a bucket's negatives."""

    repos: list[int]  # repositories that own their names
    splits: Splits  # of the bucket, without the numbers of negatives
    wanted: dict[str, dict[str, int]]  # by split and repository


def draw_inputs(
    combined: CombinedBuckets, assigned: SplitResult
) -> Iterator[DrawInput]:
    """Yield the input of each bucket: splits, and the number of negatives of each repository."""
    refs = combined.refs
    usable = combined.texts.usable
    wanted = _wanted_by_repo(combined, assigned)
    for bucket in combined.buckets:
        issues_by_repo = [refs.of_repo(repo) for repo in sorted(bucket.repos)]
        issues = np.concatenate([np.empty(0, np.int64), *issues_by_repo])
        pairs = combined.pairs.at(bucket.positives)
        codes = assigned.positives[bucket.positives.start : bucket.positives.stop]
        wanted_of_bucket = {
            split: {repo: counts[repo] for repo in bucket.repos if repo in counts}
            for split, counts in wanted.items()
        }
        splits = assigned.named(refs, issues[usable[issues]], pairs, codes)
        yield DrawInput(sorted(bucket.repos.values()), splits, wanted_of_bucket)


def _wanted_by_repo(
    combined: CombinedBuckets, assigned: SplitResult
) -> dict[str, dict[str, int]]:
    """The numbers of negatives by split and repository, in proportion to the positives."""
    refs = combined.refs
    repo_of = refs.repo_at(combined.pairs.table["first"].to_numpy())
    wanted = {}
    for split, count in assigned.negatives_wanted.items():
        is_of_split = assigned.positives == SPLITS.index(split)
        repos, positives = np.unique(repo_of[is_of_split], return_counts=True)
        names = [refs.repos[repo] for repo in repos.tolist()]
        counts = shares(positives.tolist(), count)
        wanted[split] = dict(zip(names, counts, strict=True))
    return wanted


def draw_negatives(
    judged: Path, draw_input: Path, settings_json: str
) -> Iterator[bytes]:
    """Draw the negatives of a bucket; large repositories don't make up for missing ones of others."""
    inputs = unpack(draw_input, DrawInput)
    settings = ArchiveSettings.model_validate_json(settings_json)
    names = inputs.splits.positives
    drawn = Negatives(
        pairs={split: [] for split in names}, missing=dict.fromkeys(names, 0)
    )
    for repo in with_duplicates(read_judged(judged)):
        if repo.repo_id not in inputs.repos:
            continue
        splits = _splits_of_repo(repo, inputs)
        if not any(splits.positives.values()):
            continue
        links = set(map(frozenset, repo.links))
        negatives = make_negatives(
            splits, repo.clusters, repo.texts, links, settings.pair, settings.seed
        )
        for split, pairs in negatives.pairs.items():
            drawn.pairs[split] += pairs
            drawn.missing[split] += negatives.missing.get(split, 0)
        drawn.dropped += negatives.dropped
        drawn.with_single += negatives.with_single
    yield pack(drawn)


def _splits_of_repo(repo: JudgedRepo, inputs: DrawInput) -> Splits:
    """The part of a bucket's splits on one repository, with the numbers of its negatives."""
    of_bucket = inputs.splits
    splits = Splits(
        of={ref: of_bucket.of[ref] for ref in repo.texts if ref in of_bucket.of},
        group=of_bucket.group,
    )
    for split, pairs in of_bucket.positives.items():
        own = [pair for pair in pairs if pair.first.repo == repo.name]
        splits.positives[split] = sorted(own, key=attrgetter("first", "second"))
        splits.negatives_wanted[split] = inputs.wanted[split].get(repo.name, 0)
    return splits


class DrawnNegatives(NamedTuple):
    """The split of each pair, and counts over all buckets."""

    split_of: Codes
    missing: dict[str, int]
    with_single: int


def add_negatives(
    combined: CombinedBuckets,
    assigned: SplitResult,
    paths: Iterable[Path],
) -> DrawnNegatives:
    """Add the negatives of the buckets, one by one."""
    codes = array("b", assigned.positives.tobytes())
    missing = dict.fromkeys(assigned.negatives_wanted, 0)
    with_single = 0
    for path in paths:
        drawn = unpack(path, Negatives)
        for name, pairs in drawn.pairs.items():
            combined.pairs.extend(pairs)
            codes.extend([SPLITS.index(name)] * len(pairs))
            missing[name] += drawn.missing[name]
        combined.drop({}, drawn.dropped)
        with_single += drawn.with_single
    return DrawnNegatives(np.asarray(codes), missing, with_single)
