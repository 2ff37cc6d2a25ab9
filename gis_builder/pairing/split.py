"""Decide which split each issue belongs to, before any negative is drawn.

What must not be parted is put into one group: a cluster, and clusters or single issues that near-identical
texts tie together. Groups, never pairs, are assigned to train, validation and test; by arrays alone, as there
may be tens of millions of issues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gis_builder.pairing.ref_table import RefTable, Together
from gis_builder.settings.pairs import SPLITS, SplitSettings
from gis_builder.store.records import DroppedPair, DuplicateCluster, IssuePair, IssueRef, IssueText
from pairkit.app.errors import ConfigError
from pairkit.similarity.groups import Places
from pairkit.similarity.near_duplicates import near_identical
from pairkit.system.seeded import keyed_hash, keyed_unit

NOWHERE = -1
Codes = npt.NDArray[np.int8]  # places in SPLITS, or NOWHERE


class SplitResult(NamedTuple):
    """The splits of issues and positives."""

    issues: Codes
    positives: Codes
    negatives_wanted: dict[str, int]


class _WeightedGroups(NamedTuple):
    """The groups with positives, in the order of their first positive."""

    names: Places
    weights: npt.NDArray[np.int64]
    of_positive: Places


def split_groups(
    refs: RefTable,
    pairs: tuple[Places, Places],
    groups: Places,
    usable: npt.NDArray[np.bool_],
    settings: SplitSettings,
    ratio: float,
    seed: int,
) -> SplitResult:
    """Assign whole groups to the splits."""
    weighted = _weighed(pairs, groups)
    count = len(weighted.of_positive)
    targets = _targets(settings, ratio, count, len(weighted.names))
    assigned = _assign_splits(_order(refs, weighted, seed), weighted.weights, targets, settings.exact)
    positives = assigned[weighted.of_positive]
    if settings.exact:
        _trim(positives, refs, pairs, weighted, assigned, targets, seed)
    sizes = np.bincount(positives[positives != NOWHERE], minlength=len(SPLITS)).tolist()
    named = [split for split, target in targets.items() if target]
    named += [split for place, split in enumerate(SPLITS) if sizes[place] and split not in named]
    if settings.exact:
        _check_filled({split: sizes[SPLITS.index(split)] for split in named}, targets)
    rows = dict(zip(SPLITS, settings.sizes or (), strict=False)) if settings.exact else {}
    wanted = {}
    for split in named:
        own = sizes[SPLITS.index(split)]
        wanted[split] = int(rows.get(split, round(own * (1 + ratio)))) - own
    return SplitResult(_issues(refs, groups, usable, weighted, assigned, settings, seed), positives, wanted)


def _weighed(pairs: tuple[Places, Places], groups: Places) -> _WeightedGroups:
    first, second = pairs
    order = np.lexsort((second, first))
    names, place, found, weights = np.unique(
        groups[first[order]], return_index=True, return_inverse=True, return_counts=True
    )
    by_first = np.argsort(place)
    rank = np.empty(len(names), np.int64)
    rank[by_first] = np.arange(len(names))
    of_positive = np.empty(len(order), np.int64)
    of_positive[order] = rank[found]
    return _WeightedGroups(names[by_first], weights[by_first], of_positive)


def _order(refs: RefTable, weighted: _WeightedGroups, seed: int) -> Places:
    """An order of the groups of which every stretch holds about the same share of every repository."""
    repos = refs.repo_at(weighted.names)
    hashes = np.fromiter(
        (keyed_hash(seed, "group", name) for name in refs.at(weighted.names)), np.uint64, len(repos)
    )
    order = np.lexsort((hashes, repos))
    of_repo, begins, counts = np.unique(repos[order], return_index=True, return_counts=True)
    weights = weighted.weights[order]
    before = np.cumsum(weights) - weights
    before -= np.repeat(before[begins], counts)
    total = np.repeat(np.add.reduceat(weights, begins) if len(begins) else weights, counts)
    offset = np.repeat([keyed_unit(seed, "repo", refs.repos[repo]) for repo in of_repo.tolist()], counts)
    place = np.empty(len(order))
    place[order] = (before + offset * weights) / total
    return np.lexsort((weighted.names, place))


def _targets(settings: SplitSettings, ratio: float, positives: int, groups: int) -> dict[str, int]:
    """Positives for each split."""
    if settings.exact and settings.sizes is not None:
        wanted = [_positives_of(size, ratio) for size in settings.sizes]
        if sum(wanted) > positives:
            largest = ",".join(map(str, _largest(settings.fractions, ratio, positives)))
            raise ConfigError(
                f"split_sizes = {','.join(f'{size:g}' for size in settings.sizes)}: needs {sum(wanted)}"
                f" positives, and there are {positives}; the largest in this proportion is {largest}"
            )
        return dict(zip(SPLITS, wanted, strict=True))
    return dict(zip(SPLITS, _apportion(positives, settings.fractions, groups), strict=True))


def _positives_of(rows: float, ratio: float) -> int:
    return min(int(rows), max(1, round(rows / (1 + ratio)))) if rows else 0


def _largest(fractions: Sequence[float], ratio: float, positives: int) -> list[int]:
    rows = int(positives * (1 + ratio)) + 1
    while rows and sum(_positives_of(int(rows * f), ratio) for f in fractions) > positives:
        rows -= 1
    return [int(rows * f) for f in fractions]


def _apportion(total: int, fractions: Sequence[float], groups: int) -> list[int]:
    """Whole numbers in these proportions that add up to `total`, none of them 0 if that is possible."""
    shares = [total * f for f in fractions]
    parts = [int(share) for share in shares]
    for place in sorted(range(len(parts)), key=lambda i: (parts[i] - shares[i], i))[: total - sum(parts)]:
        parts[place] += 1
    if groups >= len(parts):
        for place, fraction in enumerate(fractions):
            if fraction > 0 and parts[place] == 0:
                parts[parts.index(max(parts))] -= 1
                parts[place] = 1
    return parts


def _assign_splits(
    order: Places, weights: npt.NDArray[np.int64], targets: Mapping[str, int], exact: bool
) -> Codes:
    """The split of each group: the small splits are filled first, and a group too big is passed over."""
    assigned = np.full(len(weights), NOWHERE, np.int8)
    for split in sorted(targets, key=lambda s: (targets[s], s)):
        code, left = SPLITS.index(split), order[assigned[order] == NOWHERE]
        taken = _filling(weights[left], targets[split])
        assigned[left[taken]] = code
        left = left[~taken]
        if exact and len(left) and weights[assigned == code].sum() < targets[split]:
            assigned[left[np.argmin(weights[left])]] = code
    if not exact:
        assigned[assigned == NOWHERE] = 0
    return assigned


def _filling(weights: npt.NDArray[np.int64], room: int) -> npt.NDArray[np.bool_]:
    """Which of things are taken if each is that still fits, one after the other."""
    taken = np.zeros(len(weights), np.bool_)
    candidates = np.arange(len(weights))
    while room and len(candidates := candidates[weights[candidates] <= room]):
        filled = np.cumsum(weights[candidates])
        many = int(np.searchsorted(filled, room, side="right"))  # at least the first fits
        taken[candidates[:many]] = True
        room -= int(filled[many - 1])
        candidates = candidates[many:]
    return taken


def _trim(
    positives: Codes,
    refs: RefTable,
    pairs: tuple[Places, Places],
    weighted: _WeightedGroups,
    assigned: Codes,
    targets: Mapping[str, int],
    seed: int,
) -> None:
    """Take positives beyond a split's size out of its last groups; the seed decides which."""
    for code, split in enumerate(SPLITS):
        own = np.flatnonzero(assigned == code)
        weights = weighted.weights[own]
        room = np.maximum(targets[split] - (np.cumsum(weights) - weights), 0)
        for group, most in zip(own[weights > room].tolist(), room[weights > room].tolist(), strict=True):
            members = np.flatnonzero(weighted.of_positive == group)
            ends = zip(*(refs.at(side[members]) for side in pairs), strict=True)
            ordered = sorted(
                (keyed_hash(seed, "trim", *refs_of_pair), refs_of_pair, member)
                for refs_of_pair, member in zip(ends, members.tolist(), strict=True)
            )
            positives[[member for *_, member in ordered[most:]]] = NOWHERE


def _check_filled(sizes: Mapping[str, int], targets: Mapping[str, int]) -> None:
    for split, count in sizes.items():
        if count < targets[split]:
            raise ConfigError(
                f"split asks for {targets[split]} positives in {split}, and whole clusters leave"
                f" {count} for it; ask for fewer rows or give fractions"
            )


def _issues(
    refs: RefTable,
    groups: Places,
    usable: npt.NDArray[np.bool_],
    weighted: _WeightedGroups,
    assigned: Codes,
    settings: SplitSettings,
    seed: int,
) -> Codes:
    """The split of each usable issue: its group's, which is drawn where the group has no positive."""
    of_group = np.full(len(refs), NOWHERE, np.int8)  # by the least issue
    of_group[weighted.names] = assigned
    single = np.zeros(len(refs), np.bool_)
    single[groups[usable]] = True
    single[weighted.names] = False
    names = np.flatnonzero(single)
    of_group[names] = np.fromiter(
        (_split_of_single(name, settings, seed) for name in refs.at(names)), np.int8
    )
    return np.where(usable, of_group[groups], np.int8(NOWHERE))


def _split_of_single(name: object, settings: SplitSettings, seed: int) -> int:
    """The split of an issue (or tied issues) without a positive: a draw in the splits' proportions."""
    draw = keyed_unit(seed, "single", name)
    for place, fraction in enumerate(settings.fractions):
        draw -= fraction
        if draw < 0:
            return place
    return 0


BEYOND = "beyond_requested_size"


@dataclass(slots=True)
class Splits:
    """Where every issue and positive went, and how many negatives each split wants."""

    of: dict[IssueRef, str] = field(default_factory=dict)
    group: dict[IssueRef, IssueRef] = field(default_factory=dict)  # issues of one group are never a negative
    positives: dict[str, list[IssuePair]] = field(default_factory=dict)
    negatives_wanted: dict[str, int] = field(default_factory=dict)
    dropped: list[DroppedPair] = field(default_factory=list)


def split_issues(
    positives: Sequence[IssuePair],
    clusters: Iterable[DuplicateCluster],
    usable: Collection[IssueRef],
    ties: Iterable[Sequence[IssueRef]],
    settings: SplitSettings,
    ratio: float,
    seed: int,
) -> Splits:
    """Assign whole groups to the splits, see `deal`."""
    together = [*(cluster.members for cluster in clusters), *ties]
    pairs = sorted(positives, key=lambda pair: (pair.first, pair.second))
    ends = (ref for pair in pairs for ref in (pair.first, pair.second))
    refs = RefTable(chain(usable, ends, *together))
    tied = Together(refs)
    for members in together:
        tied.add(members)
    groups = tied.groups()
    is_usable = np.zeros(len(refs), np.bool_)
    is_usable[refs.places(usable)] = True
    first, second = refs.places(pair.first for pair in pairs), refs.places(pair.second for pair in pairs)
    assigned = split_groups(refs, (first, second), groups, is_usable, settings, ratio, seed)

    splits = Splits(negatives_wanted=assigned.negatives_wanted)
    splits.positives = {split: [] for split in assigned.negatives_wanted}
    for pair, code in zip(pairs, assigned.positives.tolist(), strict=True):
        if code == NOWHERE:
            splits.dropped.append(DroppedPair(pair.first, pair.second, 1, BEYOND))
        else:
            splits.positives[SPLITS[code]].append(pair)
    own = np.flatnonzero(is_usable)
    for ref, group, code in zip(
        refs.at(own), refs.at(groups[own]), assigned.issues[own].tolist(), strict=True
    ):
        splits.group[ref] = group
        if code != NOWHERE:
            splits.of[ref] = SPLITS[code]
    return splits


def tie_similar(texts: Mapping[IssueRef, IssueText], threshold: float) -> list[list[IssueRef]]:
    """Groups of two or more issues tied by near-identical texts, over all repositories; each ascending."""
    refs = sorted(texts)
    groups = near_identical([texts[ref].text for ref in refs], threshold)
    return [[refs[place] for place in members] for members in groups]
