"""Decisions over all repositories: owners of names, near-duplicate texts, splits.

Only some numbers of each issue and pair are in memory, because GitHub has many millions of them. Negatives
are drawn by bucket (the third map), after the number for each repository is known.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct, field

from gis_builder.gh_archive.judge_threads import OUTCOMES, Judged, JudgedRepo, pack, unpack
from gis_builder.gh_archive.runners import digest_of
from gis_builder.pairing.negatives import make_negatives, shares
from gis_builder.pairing.pair_folder import Reasons, dropped_frame, reasons_of, row_order
from gis_builder.pairing.positives import Positives, make_positives
from gis_builder.pairing.split import BEYOND, RefTable, SameSplit, Splits, split_groups
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


# The latest repository of each name (in lower case), if one was deleted and created again: time and id.
Owners = dict[str, tuple[tuple[str, int], int]]


class _Bucket(NamedTuple):
    """The ids of a bucket's repositories by name, the indices of its positives, and a hash of its content."""

    repos: dict[str, int]
    positives: range
    digest: str


_PAIRS = {"first": pl.Int32, "second": pl.Int32, "hash": pl.UInt64, "label": pl.Int8}


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
        self._place[issues] = np.arange(len(self), len(self) + len(issues))
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
        texts = (
            self._texts[place]
            for place in np.sort(self._place[self._refs.indices(set(refs))]).tolist()
        )
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
        pairs = {index: self._pairs[index] for index in sorted(indices)}  # in the order of the file
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

    def add(self, judged: Judged, owners: Owners) -> None:
        """Add a bucket."""
        for repo in judged.repos:
            self.verdicts.update(
                {(outcome, reason): count for outcome, reason, count in repo.verdicts}
            )
            self.counts[repo.outcome] += 1
        start = len(self.pairs)
        ids: dict[str, int] = {}
        rejected: dict[IssueRef, str] = {}
        dropped: list[DroppedPair] = []
        for repo in judged.with_duplicates():
            if owners[repo.name.lower()][1] == repo.repo_id:
                ids[repo.name] = repo.repo_id
                rejected.update(repo.rejected)
                dropped += self._add_repo(repo)
            else:
                self.counts[NAME_TAKEN] += 1
        self.drop(rejected, dropped)
        digest = digest_of(pack(list(judged.with_duplicates())))
        self.buckets.append(_Bucket(ids, range(start, len(self.pairs)), digest))

    def _add_repo(self, repo: JudgedRepo) -> list[DroppedPair]:
        """Add a repository and its positives; returns the dropped ones."""
        for cluster in repo.clusters:
            self.same_split.add(cluster.members)
        self.clusters += len(repo.clusters)
        self.texts.extend(repo.texts)
        self.removed.update(repo.removed)
        texts = RenderedTexts({text.ref: text for text in repo.texts}, dict(repo.rejected))
        grounds = {(duplicate, original): reasons for duplicate, original, reasons in repo.grounds}
        seed = self.settings.seed
        positives = make_positives(repo.clusters, texts, grounds, self.settings.pair, seed)
        _limit(positives, self.settings.limits.per_repo_max, seed)
        self.pairs.extend(positives.pairs)
        return positives.dropped

    def drop(self, rejected: Mapping[IssueRef, str], dropped: Sequence[DroppedPair]) -> None:
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
        return connected(
            self.same_split.groups(), self.texts.issues, self.texts.issues[near_duplicates]
        )


def combine_buckets(
    paths: Sequence[Path], texts: Scratch, pairs: Scratch, settings: ArchiveSettings
) -> CombinedBuckets:
    """Read the buckets one by one; texts and positives are written to disk."""
    owners: Owners = {}
    refs = RefTable(_refs(paths, owners))
    combined = CombinedBuckets(
        *(settings, refs, SameSplit(refs)),
        IssueTextsOnDisk(texts, refs),
        PairsOnDisk(pairs, refs, settings.seed),
    )
    combined.counts.update(dict.fromkeys((*OUTCOMES, NAME_TAKEN), 0))
    for path in paths:
        combined.add(unpack(path, Judged), owners)
    return combined


def _refs(paths: Iterable[Path], owners: Owners) -> Iterator[IssueRef]:
    """Yield all issues of clusters or with texts; adds their repositories to the owners."""
    for path in paths:
        for repo in unpack(path, Judged).with_duplicates():
            name = repo.name.lower()
            claim = (repo.named_at, repo.repo_id)
            owners[name] = max(owners.get(name, claim), claim)
            for cluster in repo.clusters:
                yield from cluster.members
            for text in repo.texts:
                yield text.ref


def _limit(positives: Positives, limit: int | None, seed: int) -> None:
    """Limit the number of a repository's positives; the choice is random."""
    if limit is None or len(positives.pairs) <= limit:
        return
    order = sorted(
        positives.pairs, key=lambda pair: keyed_hash(seed, "limit", pair.first, pair.second)
    )
    excess = set(order[limit:])
    positives.pairs = [pair for pair in positives.pairs if pair not in excess]
    positives.dropped += [
        DroppedPair(pair.first, pair.second, 1, OVER_LIMIT) for pair in order[limit:]
    ]


def near_duplicate_groups(out: Path, texts: IssueTextsOnDisk, threshold: float) -> Indices:
    """The first text of each text's group of near-duplicates, cached in `out`; (text,)."""
    if not out.exists():
        groups = near_identical_to(texts, threshold).astype(np.int64)
        write_bytes(out, pack(groups.tobytes()), private=True)
    return np.frombuffer(unpack(out, bytes), np.int64)


class SplitAssignment(Struct):
    """The group and split of each issue, and the split of each positive."""

    group: Indices
    issues: Codes
    positives: Codes
    negatives_wanted: dict[str, int]


def assign_splits(combined: CombinedBuckets, near_duplicates: Indices) -> SplitAssignment:
    """Assign whole groups to splits, before negatives are drawn."""
    group = combined.groups(near_duplicates)
    settings = combined.settings
    table = combined.pairs.table
    usable = combined.texts.usable
    ends = table["first"].to_numpy(), table["second"].to_numpy()
    assigned = split_groups(
        combined.refs, ends, group, usable, settings.split, settings.pair.ratio, settings.seed
    )
    excess = combined.pairs.at(np.flatnonzero(assigned.positives == NOWHERE).tolist())
    combined.drop({}, [DroppedPair(pair.first, pair.second, 1, BEYOND) for pair in excess])
    return SplitAssignment(group, assigned.issues, assigned.positives, assigned.negatives_wanted)


class DrawInput(msgspec.Struct):
    """The input for drawing a bucket's negatives."""

    repos: list[int]  # repositories that own their names
    issues: list[tuple[IssueRef, str, IssueRef]]  # issue, split or empty, and group
    positives: dict[str, list[IssuePair]]
    wanted: dict[str, dict[str, int]]  # by split and repository


class BucketNegatives(msgspec.Struct):
    """The negatives of a bucket."""

    pairs: dict[str, list[IssuePair]]
    dropped: list[DroppedPair]
    missing: dict[str, int]
    with_single: int


def draw_inputs(combined: CombinedBuckets, assignment: SplitAssignment) -> Iterator[DrawInput]:
    """Yield the input of each bucket: splits, and the number of negatives of each repository."""
    refs = combined.refs
    usable = combined.texts.usable
    codes = assignment.issues
    repo_of = refs.repo_at(combined.pairs.table["first"].to_numpy())
    wanted: dict[str, dict[str, int]] = {}
    for split, count in assignment.negatives_wanted.items():  # in proportion to positives
        repos, counts = np.unique(
            repo_of[assignment.positives == SPLITS.index(split)], return_counts=True
        )
        names = (refs.repos[repo] for repo in repos.tolist())
        wanted[split] = dict(zip(names, shares(counts.tolist(), count), strict=True))
    for bucket in combined.buckets:
        issues = np.concatenate([np.empty(0, np.int64), *map(refs.of_repo, sorted(bucket.repos))])
        issues = issues[usable[issues]]
        splits = [SPLITS[code] if code != NOWHERE else "" for code in codes[issues].tolist()]
        positives: dict[str, list[IssuePair]] = {split: [] for split in wanted}
        pairs = combined.pairs.at(bucket.positives)
        codes_of_pairs = assignment.positives[bucket.positives.start : bucket.positives.stop]
        for pair, code in zip(pairs, codes_of_pairs.tolist(), strict=True):
            if code != NOWHERE:
                positives[SPLITS[code]].append(pair)
        yield DrawInput(
            sorted(bucket.repos.values()),
            list(zip(refs.at(issues), splits, refs.at(assignment.group[issues]), strict=True)),
            positives,
            {
                split: {repo: shares[repo] for repo in bucket.repos if repo in shares}
                for split, shares in wanted.items()
            },
        )


def draw_negatives(judged: Path, draw_input: Path, settings_json: str) -> Iterator[bytes]:
    """Draw the negatives of a bucket; large repositories don't make up for missing ones of others."""
    inputs = unpack(draw_input, DrawInput)
    settings = ArchiveSettings.model_validate_json(settings_json)
    split_of = {ref: split for ref, split, _ in inputs.issues if split}
    group = {ref: first for ref, _, first in inputs.issues}
    drawn = BucketNegatives(
        {split: [] for split in inputs.positives}, [], dict.fromkeys(inputs.positives, 0), 0
    )
    for repo in unpack(judged, Judged).with_duplicates():
        positives = {
            split: sorted(
                (pair for pair in pairs if pair.first.repo == repo.name),
                key=lambda pair: (pair.first, pair.second),
            )
            for split, pairs in inputs.positives.items()
        }
        if repo.repo_id not in inputs.repos or not any(positives.values()):
            continue
        texts = {text.ref: text for text in repo.texts}
        splits = Splits(
            {ref: split_of[ref] for ref in texts if ref in split_of},
            {ref: group[ref] for ref in texts},
            positives,
            {split: wanted.get(repo.name, 0) for split, wanted in inputs.wanted.items()},
        )
        links = {frozenset(link) for link in repo.links}
        negatives = make_negatives(
            splits, repo.clusters, texts, links, settings.pair, settings.seed
        )
        for split, pairs in negatives.pairs.items():
            drawn.pairs[split] += pairs
            drawn.missing[split] += negatives.missing.get(split, 0)
        drawn.dropped += negatives.dropped
        drawn.with_single += negatives.with_single
    yield pack(drawn)


class DrawnNegatives(NamedTuple):
    """The split of each pair, and counts over all buckets."""

    split_of: Codes
    missing: dict[str, int]
    with_single: int


def add_negatives(
    combined: CombinedBuckets, assignment: SplitAssignment, paths: Iterable[Path]
) -> DrawnNegatives:
    """Add the negatives of the buckets, one by one."""
    codes = array("b", assignment.positives.tobytes())
    missing = dict.fromkeys(assignment.negatives_wanted, 0)
    with_single = 0
    for path in paths:
        drawn = unpack(path, BucketNegatives)
        for name, pairs in drawn.pairs.items():
            combined.pairs.extend(pairs)
            codes.extend([SPLITS.index(name)] * len(pairs))
            missing[name] += drawn.missing[name]
        combined.drop({}, drawn.dropped)
        with_single += drawn.with_single
    return DrawnNegatives(np.asarray(codes), missing, with_single)
