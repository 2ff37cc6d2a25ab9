"""Assign issues to splits before negatives are drawn.

Clusters and single issues with near-identical texts form groups, and each group is assigned to one split.
Everything is in arrays, since there may be tens of millions of issues.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gis_builder.settings import SPLITS, DatasetSettings
from gis_builder.store import (
    DroppedPair,
    DuplicateCluster,
    IssuePair,
    IssueRef,
    IssueText,
)
from pairkit.base.errors import ConfigError
from pairkit.base.system.seeded import keyed_hash, keyed_unit
from pairkit.dataset.making.group_splits import (
    NOWHERE,
    Codes,
    draw_splits,
    fill_splits,
    split_targets,
)
from pairkit.similarity.groups import Indices, connected, singletons
from pairkit.similarity.near_duplicates import near_identical

_BITS = 24  # of an issue's number; `decoding.MAX_NUMBER` fits
_NUMBER = (1 << _BITS) - 1


class RefTable:
    """Distinct references in ascending order, identified by their index."""

    def __init__(self, refs: Iterable[IssueRef]) -> None:
        codes: dict[str, int] = {}  # of repositories, in order of occurrence
        keys = array("q")
        for repo, number in refs:
            code = codes.setdefault(repo, len(codes))
            keys.append(code << _BITS | number)
        self.repos = sorted(codes)
        self._rank = {repo: rank for rank, repo in enumerate(self.repos)}
        ranks = np.array([self._rank[repo] for repo in codes], np.int64)
        by_code = np.asarray(keys)
        self._keys = np.unique(ranks[by_code >> _BITS] << _BITS | by_code & _NUMBER)

    def __len__(self) -> int:
        return len(self._keys)

    def at(self, indices: Indices) -> Iterator[IssueRef]:
        """The references at these indices."""
        for key in self._keys[indices].tolist():
            yield IssueRef(self.repos[key >> _BITS], key & _NUMBER)

    def indices(self, refs: Iterable[IssueRef]) -> Indices:
        """The indices of references that are in the table; (reference,)."""
        keys = (self._rank[repo] << _BITS | number for repo, number in refs)
        return np.searchsorted(self._keys, np.fromiter(keys, np.int64))

    def repo_at(self, indices: Indices) -> npt.NDArray[np.int64]:
        """The index in `repos` of the repository of each reference; (reference,)."""
        return self._keys[indices] >> _BITS

    def of_repo(self, repo: str) -> Indices:
        """The indices of a repository's references, ascending."""
        rank = self._rank.get(repo)
        if rank is None:
            return np.empty(0, np.int64)
        ends = [rank << _BITS, (rank + 1) << _BITS]
        return np.arange(*np.searchsorted(self._keys, ends))


class SameSplit:
    """Groups of references that must be in the same split."""

    def __init__(self, refs: RefTable) -> None:
        self._refs = refs
        self._first = array("i")
        self._second = array("i")

    def add(self, members: Iterable[IssueRef]) -> None:
        """Add references that must stay together."""
        indices = self._refs.indices(members).tolist()
        self._first.extend(indices[:1] * (len(indices) - 1))
        self._second.extend(indices[1:])

    def groups(self) -> Indices:
        """For each reference, the lowest index in its group; (reference,)."""
        return connected(
            singletons(len(self._refs)),
            np.asarray(self._first),
            np.asarray(self._second),
        )


class SplitResult(NamedTuple):
    """The groups and splits of issues, and the splits of positives."""

    groups: Indices
    issues: Codes
    positives: Codes
    negatives_wanted: dict[str, int]

    def named(
        self,
        refs: RefTable,
        issues: Indices,
        pairs: Sequence[IssuePair],
        codes: Codes,
    ) -> Splits:
        """The splits of some issues and positives by reference."""
        splits = Splits(positives={split: [] for split in self.negatives_wanted})
        codes_of_issues = self.issues[issues].tolist()
        for ref, code in zip(refs.at(issues), codes_of_issues, strict=True):
            if code != NOWHERE:
                splits.of[ref] = SPLITS[code]
        lowest = refs.at(self.groups[issues])
        splits.group = dict(zip(refs.at(issues), lowest, strict=True))
        for pair, code in zip(pairs, codes.tolist(), strict=True):
            if code == NOWHERE:
                splits.dropped.append(pair.dropped("beyond_requested_size"))
            else:
                splits.positives[SPLITS[code]].append(pair)
        return splits


class SplitInput(NamedTuple):
    """The issues and positives to split, as indices of references."""

    refs: RefTable
    first: Indices  # of each positive
    second: Indices
    groups: Indices  # the lowest issue of each issue's group; (reference,)
    usable: npt.NDArray[np.bool_]  # whether an issue has a text; (reference,)


class _WeightedGroups(NamedTuple):
    """The groups with positives, in the order of their first positive."""

    names: Indices  # the lowest issue of each group
    weights: npt.NDArray[np.int64]  # number of positives
    group_of_positive: Indices  # index of the group of each positive


def split_groups(task: SplitInput, settings: DatasetSettings) -> SplitResult:
    """Assign whole groups to the splits."""
    exact = settings.split.exact
    weighted = _weighted_groups(task)
    targets = _targets(weighted, settings)
    order = _even_order(task.refs, weighted, settings.seed)
    assigned = fill_splits(order, weighted.weights, [*targets.values()], exact=exact)
    positives = assigned[weighted.group_of_positive]
    if exact:
        excess = _beyond_targets(task, weighted, assigned, targets, settings.seed)
        positives[excess] = NOWHERE
    return SplitResult(
        groups=task.groups,
        positives=positives,
        negatives_wanted=_negatives_wanted(positives, targets, settings),
        issues=_issue_splits(task, weighted.names, assigned, settings),
    )


def _weighted_groups(task: SplitInput) -> _WeightedGroups:
    order = np.lexsort((task.second, task.first))
    names, first_use, group, weights = np.unique(
        task.groups[task.first[order]],
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    by_first_use = np.argsort(first_use)
    rank = np.empty(len(names), np.int64)
    rank[by_first_use] = np.arange(len(names))
    group_of_positive = np.empty(len(order), np.int64)
    group_of_positive[order] = rank[group]
    return _WeightedGroups(
        names[by_first_use], weights[by_first_use], group_of_positive
    )


def _even_order(refs: RefTable, weighted: _WeightedGroups, seed: int) -> Indices:
    """An order of the groups that spreads every repository evenly."""
    repos = refs.repo_at(weighted.names)
    hashes = [keyed_hash(seed, "group", name) for name in refs.at(weighted.names)]
    order = np.lexsort((np.array(hashes, np.uint64), repos))
    repo_ids, starts, counts = np.unique(
        repos[order], return_index=True, return_counts=True
    )
    weights = weighted.weights[order]
    weight_before = np.cumsum(weights) - weights
    weight_before -= np.repeat(weight_before[starts], counts)
    totals = np.bincount(repos, weighted.weights)[repo_ids]
    names = [refs.repos[repo] for repo in repo_ids.tolist()]
    offsets = [keyed_unit(seed, "repo", name) for name in names]
    offset = np.repeat(offsets, counts)
    position = np.empty(len(order))
    position[order] = (weight_before + offset * weights) / np.repeat(totals, counts)
    return np.lexsort((weighted.names, position))


def _targets(weighted: _WeightedGroups, settings: DatasetSettings) -> dict[str, int]:
    """Number of positives for each split; raises ConfigError if exact sizes need more than there are."""
    split = settings.split
    ratio = settings.pair.ratio
    positives = len(weighted.group_of_positive)
    targets = split_targets(positives, split.fractions, len(weighted.names))
    if split.exact and split.sizes is not None:
        targets = [_positives_of(size, ratio) for size in split.sizes]
        if sum(targets) > positives:
            sizes = ",".join(f"{size:g}" for size in split.sizes)
            possible = _largest_sizes(split.fractions, ratio, positives)
            largest = ",".join(map(str, possible))
            raise ConfigError(
                f"split_sizes = {sizes}: needs {sum(targets)} positives, but there are {positives};"
                f" the largest possible sizes are {largest}"
            )
    return dict(zip(SPLITS, targets, strict=True))


def _positives_of(rows: float, ratio: float) -> int:
    """The positives among the rows of a split, of which there are `ratio` negatives each."""
    at_least_one = max(1, round(rows / (1 + ratio)))
    return min(int(rows), at_least_one)


def _largest_sizes(
    fractions: Sequence[float], ratio: float, positives: int
) -> list[int]:
    """The largest split sizes in these proportions that the positives suffice for."""
    most = int(positives * (1 + ratio)) + 1
    for rows in range(most, 0, -1):
        sizes = [int(rows * fraction) for fraction in fractions]
        if sum(_positives_of(size, ratio) for size in sizes) <= positives:
            return sizes
    return [0] * len(fractions)


def _beyond_targets(
    task: SplitInput,
    weighted: _WeightedGroups,
    assigned: Codes,
    targets: Mapping[str, int],
    seed: int,
) -> list[int]:
    """Random positives of the last groups of splits above their targets."""
    excess = []
    for code, split in enumerate(SPLITS):
        groups_of_split = np.flatnonzero(assigned == code)
        weights = weighted.weights[groups_of_split]
        weight_before = np.cumsum(weights) - weights
        room = np.maximum(targets[split] - weight_before, 0)
        is_large = weights > room
        for group, limit in zip(groups_of_split[is_large], room[is_large], strict=True):
            members = np.flatnonzero(weighted.group_of_positive == group)
            firsts = task.refs.at(task.first[members])
            seconds = task.refs.at(task.second[members])
            pairs = zip(firsts, seconds, strict=True)
            hashes = [keyed_hash(seed, "trim", *pair) for pair in pairs]
            shuffled = members[np.argsort(np.array(hashes, np.uint64))]
            excess += shuffled[limit:].tolist()
    return excess


def _negatives_wanted(
    positives: Codes, targets: Mapping[str, int], settings: DatasetSettings
) -> dict[str, int]:
    """The number of negatives by split; raises ConfigError if an exact split has too few positives."""
    counts = np.bincount(positives[positives != NOWHERE], minlength=len(SPLITS))
    sizes = dict(zip(SPLITS, counts.tolist(), strict=True))
    used = [split for split in SPLITS if targets[split] or sizes[split]]
    splits = sorted(used, key=lambda split: not targets[split])  # requested ones first
    rows = {split: round(sizes[split] * (1 + settings.pair.ratio)) for split in splits}
    if settings.split.exact:
        for split in splits:
            if sizes[split] < targets[split]:
                raise ConfigError(
                    f"split: {split} needs {targets[split]} positives, but whole clusters give only"
                    f" {sizes[split]}; request fewer rows or use fractions"
                )
        if settings.split.sizes is not None:
            rows = dict(zip(SPLITS, map(int, settings.split.sizes), strict=True))
    return {split: rows[split] - sizes[split] for split in splits}


def _issue_splits(
    task: SplitInput, names: Indices, assigned: Codes, settings: DatasetSettings
) -> Codes:
    """The split of each usable issue; `names` are the groups with positives, others get a random split."""
    split_of_group = np.full(len(task.refs), NOWHERE, np.int8)  # by the lowest issue
    split_of_group[names] = assigned
    is_single = np.zeros(len(task.refs), np.bool_)
    is_single[task.groups[task.usable]] = True
    is_single[names] = False
    singles = np.flatnonzero(is_single)
    draws = [
        keyed_unit(settings.seed, "single", name) for name in task.refs.at(singles)
    ]
    split_of_group[singles] = draw_splits(
        np.array(draws, np.float64), settings.split.fractions
    )
    return np.where(task.usable, split_of_group[task.groups], np.int8(NOWHERE))


class Splits(Struct):
    """The splits of issues and positives, and the number of negatives for each split."""

    of: dict[IssueRef, str] = {}
    # The lowest issue of each issue's group; two issues of one group are never a negative.
    group: dict[IssueRef, IssueRef] = {}
    positives: dict[str, list[IssuePair]] = {}
    negatives_wanted: dict[str, int] = {}
    dropped: list[DroppedPair] = []


def split_issues(
    positives: Sequence[IssuePair],
    clusters: Iterable[DuplicateCluster],
    usable: Collection[IssueRef],
    near_duplicates: Iterable[Sequence[IssueRef]],
    settings: DatasetSettings,
) -> Splits:
    """Assign issues and positives to splits, see `split_groups`."""
    tied_issues = [*(cluster.members for cluster in clusters), *near_duplicates]
    pairs = sorted(positives, key=attrgetter("first", "second"))
    firsts = [pair.first for pair in pairs]
    seconds = [pair.second for pair in pairs]
    refs = RefTable(chain(usable, *tied_issues))
    same_split = SameSplit(refs)
    for members in tied_issues:
        same_split.add(members)
    is_usable = np.zeros(len(refs), np.bool_)
    is_usable[refs.indices(usable)] = True
    task = SplitInput(
        refs=refs,
        first=refs.indices(firsts),
        second=refs.indices(seconds),
        groups=same_split.groups(),
        usable=is_usable,
    )
    assigned = split_groups(task, settings)
    splits = assigned.named(refs, np.flatnonzero(is_usable), pairs, assigned.positives)
    splits.negatives_wanted = assigned.negatives_wanted
    return splits


def group_near_duplicates(
    texts: Mapping[IssueRef, IssueText],
    threshold: float,
) -> list[list[IssueRef]]:
    """Groups of issues with near-identical texts, across repositories; each ascending."""
    refs = sorted(texts)
    groups = near_identical([texts[ref].text for ref in refs], threshold)
    return [[refs[index] for index in members] for members in groups]
