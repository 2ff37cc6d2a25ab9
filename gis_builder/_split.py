"""Decide which split each issue belongs to, before any negative is drawn.

What must not be parted is put into one group: a cluster, and clusters or single issues that near-identical
texts tie together. Groups, never pairs, are dealt to train, validation and test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from gis_builder._records import Cluster, DroppedPair, IssueRef, IssueText, Pair
from gis_builder._settings.pairs import SPLITS, SplitSettings
from pairkit.errors import ConfigError
from pairkit.groups import Groups
from pairkit.keyed import keyed_hash, keyed_unit
from pairkit.similar import near_identical

BEYOND = "beyond_requested_size"


@dataclass(slots=True)
class Splits:
    """Where every issue and positive went, and how many negatives each split wants."""

    of: dict[IssueRef, str] = field(default_factory=dict)
    group: dict[IssueRef, IssueRef] = field(default_factory=dict)  # issues of one group are never a negative
    positives: dict[str, list[Pair]] = field(default_factory=dict)
    negatives_wanted: dict[str, int] = field(default_factory=dict)
    dropped: list[DroppedPair] = field(default_factory=list)


def split_issues(
    positives: Sequence[Pair],
    clusters: Iterable[Cluster],
    usable: Collection[IssueRef],
    ties: Iterable[Sequence[IssueRef]],
    settings: SplitSettings,
    ratio: float,
    seed: int,
) -> Splits:
    """Deal whole groups to the splits.

    Args:
        positives: The positive pairs, which are what sizes are measured in.
        clusters: Their clusters; all members of one stay together.
        usable: Every issue that may stand in a pair, those without duplicates included.
        ties: Sets of issues with near-identical texts.
        settings: The sizes; row counts are met exactly, fractions as closely as whole groups allow.
        ratio: Negatives for each positive.
        seed: Decides everything that the sizes leave open.

    Raises:
        ConfigError: There are not enough positives for the row counts asked for.
    """
    groups = _groups(clusters, usable, ties)
    by_group: defaultdict[IssueRef, list[Pair]] = defaultdict(list)
    for pair in sorted(positives, key=lambda p: (p.first, p.second)):
        by_group[groups.find(pair.first)].append(pair)
    targets = _targets(settings, ratio, len(positives), len(by_group))
    dealt = _deal(_order(by_group, seed), {n: len(p) for n, p in by_group.items()}, targets, settings.exact)

    splits = Splits(group={ref: groups.find(ref) for ref in sorted(usable)})
    splits.positives = {split: [] for split, target in targets.items() if target}
    for name, pairs in by_group.items():
        _place(splits, pairs, dealt.get(name), targets, settings.exact, seed)
    for ref, name in splits.group.items():
        split = dealt.get(name) if name in by_group else _single(name, settings, seed)
        if split is not None:
            splits.of[ref] = split
    if settings.exact:
        _check_filled(splits, targets)
    sizes = dict(zip(SPLITS, settings.sizes or (), strict=False)) if settings.exact else {}
    for split, pairs in splits.positives.items():
        pairs.sort(key=lambda p: (p.first, p.second))
        splits.negatives_wanted[split] = int(sizes.get(split, round(len(pairs) * (1 + ratio)))) - len(pairs)
    return splits


def _check_filled(splits: Splits, targets: Mapping[str, int]) -> None:
    for split, pairs in splits.positives.items():
        if len(pairs) < targets[split]:
            raise ConfigError(
                f"split asks for {targets[split]} positives in {split}, and whole clusters leave"
                f" {len(pairs)} for it; ask for fewer rows or give fractions"
            )


def _groups(
    clusters: Iterable[Cluster], usable: Collection[IssueRef], ties: Iterable[Sequence[IssueRef]]
) -> Groups[IssueRef]:
    groups = Groups(usable)
    for together in [*(cluster.members for cluster in clusters), *ties]:
        for other in together[1:]:
            groups.join(together[0], other)
    return groups


def _order(by_group: Mapping[IssueRef, Sequence[Pair]], seed: int) -> list[IssueRef]:
    """An order of which every stretch holds about the same share of every repository.

    Within a repository groups stand in the order of their keyed hashes, spread evenly over [0, 1) by the
    number of their pairs; the repositories are then merged. A new group shifts the others by a hair only.
    """
    by_repo: defaultdict[str, list[IssueRef]] = defaultdict(list)
    for name in by_group:
        by_repo[name.repo].append(name)
    place: dict[IssueRef, float] = {}
    for repo, names in by_repo.items():
        total = sum(len(by_group[name]) for name in names)
        offset = keyed_unit(seed, "repo", repo)
        before = 0
        for name in sorted(names, key=lambda n: keyed_hash(seed, "group", n)):
            place[name] = (before + offset * len(by_group[name])) / total
            before += len(by_group[name])
    return sorted(place, key=lambda name: (place[name], name))


def _targets(settings: SplitSettings, ratio: float, positives: int, groups: int) -> dict[str, int]:
    """Positives for each split."""
    if settings.exact and settings.sizes is not None:
        wanted = [_positives_of(size, ratio) for size in settings.sizes]
        if sum(wanted) > positives:
            largest = ",".join(map(str, _largest(settings.fractions, ratio, positives)))
            raise ConfigError(
                f"split = {','.join(f'{size:g}' for size in settings.sizes)}: needs {sum(wanted)} positives,"
                f" and there are {positives}; the largest in this proportion is {largest}"
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


def _deal(
    order: Sequence[IssueRef], weight: Mapping[IssueRef, int], targets: Mapping[str, int], exact: bool
) -> dict[IssueRef, str]:
    """Fill the small splits first; a group too big for what is missing is passed over.

    Without exact sizes train takes whatever is left. With them a split that whole groups can't fill takes the
    smallest group that is left, which is trimmed afterwards.
    """
    dealt: dict[IssueRef, str] = {}
    for split in sorted(targets, key=lambda s: (targets[s], s)):
        missing = targets[split]
        for name in order:
            if name not in dealt and weight[name] <= missing:
                dealt[name] = split
                missing -= weight[name]
        if exact and missing:
            left = [name for name in order if name not in dealt]
            if left:
                dealt[min(left, key=lambda n: weight[n])] = split
    if not exact:
        dealt |= {name: SPLITS[0] for name in order if name not in dealt}
    return dealt


def _place(
    splits: Splits,
    pairs: Sequence[Pair],
    split: str | None,
    targets: Mapping[str, int],
    exact: bool,
    seed: int,
) -> None:
    kept: Sequence[Pair] = ()
    if split is not None:
        room = targets[split] - len(splits.positives.setdefault(split, []))
        kept = sorted(pairs, key=lambda p: keyed_hash(seed, "trim", p.first, p.second))[
            : room if exact else None
        ]
        splits.positives[split] += kept
    taken = set(kept)
    splits.dropped += [DroppedPair(p.first, p.second, 1, BEYOND) for p in pairs if p not in taken]


def _single(name: IssueRef, settings: SplitSettings, seed: int) -> str:
    """The split of an issue (or tied issues) without a positive: a draw in the splits' proportions."""
    draw = keyed_unit(seed, "single", name)
    for split, fraction in zip(SPLITS, settings.fractions, strict=True):
        draw -= fraction
        if draw < 0:
            return split
    return SPLITS[0]


def tie_similar(texts: Mapping[IssueRef, IssueText], threshold: float) -> list[list[IssueRef]]:
    """Groups of two or more issues tied by near-identical texts, over all repositories; each ascending.

    Args:
        texts: Every usable text, those of issues without a duplicate included.
        threshold: Jaccard similarity of word triples, see `pairkit.similar`.
    """
    refs = sorted(texts)
    groups = near_identical(_TextsOf(refs, texts), threshold)
    return [[refs[place] for place in members] for members in groups]


class _TextsOf(Sequence[str]):
    """The texts of some issues, looked up when they are asked for: they may lie on disk."""

    def __init__(self, refs: Sequence[IssueRef], texts: Mapping[IssueRef, IssueText]) -> None:
        self._refs, self._texts = refs, texts

    def __len__(self) -> int:
        return len(self._refs)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._texts[ref].text for ref in self._refs[place]]
        return self._texts[self._refs[place]].text
