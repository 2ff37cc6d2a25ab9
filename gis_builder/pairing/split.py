"""Decide which split each issue belongs to, before any negative is drawn.

What must not be parted is put into one group: a cluster, and clusters or single issues that near-identical
texts tie together. Groups, never pairs, are dealt to train, validation and test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from gis_builder.pairing.deal import NOWHERE, deal
from gis_builder.settings.pairs import SPLITS, SplitSettings
from gis_builder.store.records import Cluster, DroppedPair, IssueRef, IssueText, Pair
from gis_builder.store.ref_table import RefTable, Together
from pairkit.similarity.near_duplicates import near_identical

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
    """Deal whole groups to the splits, see `deal`."""
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
    dealt = deal(refs, (first, second), groups, is_usable, settings, ratio, seed)

    splits = Splits(negatives_wanted=dealt.negatives_wanted)
    splits.positives = {split: [] for split in dealt.negatives_wanted}
    for pair, code in zip(pairs, dealt.positives.tolist(), strict=True):
        if code == NOWHERE:
            splits.dropped.append(DroppedPair(pair.first, pair.second, 1, BEYOND))
        else:
            splits.positives[SPLITS[code]].append(pair)
    own = np.flatnonzero(is_usable)
    for ref, group, code in zip(refs.at(own), refs.at(groups[own]), dealt.issues[own].tolist(), strict=True):
        splits.group[ref] = group
        if code != NOWHERE:
            splits.of[ref] = SPLITS[code]
    return splits


def tie_similar(texts: Mapping[IssueRef, IssueText], threshold: float) -> list[list[IssueRef]]:
    """Groups of two or more issues tied by near-identical texts, over all repositories; each ascending."""
    refs = sorted(texts)
    groups = near_identical([texts[ref].text for ref in refs], threshold)
    return [[refs[place] for place in members] for members in groups]
