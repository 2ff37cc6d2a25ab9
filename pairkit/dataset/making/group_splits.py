"""Assign groups to splits as a whole, so that no two splits share a text.

`fill_splits` meets the requested sizes as closely as whole groups allow. With `draw_splits`, the split of a
group depends only on its own random number: sizes are met on average, and no group moves when others are
added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pairkit.base.system.seeded import apportion
from pairkit.similarity.groups import Indices, connected
from pairkit.similarity.near_duplicates import near_identical_to
from pairkit.similarity.terms import first_of_same

NOWHERE = -1
Codes = npt.NDArray[np.int8]  # the index of a split, or NOWHERE
Mask = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.int64]


def text_groups(texts: Sequence[str] | pl.Series) -> Indices:
    """The first text of each text's group: texts that are the same or near-identical; (text,)."""
    near_identical = near_identical_to(texts)
    return connected(near_identical, np.arange(len(texts)), first_of_same(texts))


def split_targets(total: int, shares: Sequence[float], groups: int) -> list[int]:
    """Sizes in these proportions that add up to `total`; each positive share gets 1 if there are groups."""
    targets = apportion(total, shares)
    if groups < len(shares):
        return targets
    for split, share in enumerate(shares):
        if share > 0 and targets[split] == 0:
            largest = targets.index(max(targets))
            targets[largest] -= 1
            targets[split] = 1
    return targets


def fill_splits(
    order: Indices,
    weights: Weights,
    targets: Sequence[int],
    *,
    exact: bool = False,
) -> Codes:
    """The split of each group, whose rows are its weight; (group,).

    The smallest split is filled first. Groups that don't fit are skipped. The largest split gets the rest.
    With `exact`, groups beyond the targets are in no split, and a split is larger than its target only if no
    group fits.
    """
    splits = np.full(len(weights), NOWHERE, np.int8)
    *smallest_first, largest = sorted(
        range(len(targets)), key=lambda split: (targets[split], -split)
    )
    if exact:
        smallest_first.append(largest)
    for split in smallest_first:
        target = targets[split]
        left = order[splits[order] == NOWHERE]
        fits = _first_fit(weights[left], target)
        splits[left[fits]] = split

        filled = weights[left[fits]].sum()
        left = left[~fits]
        least = target if exact else min(target, 1)
        reserved = 0 if exact else 1  # a group for the largest split
        if filled < least and len(left) > reserved:
            lightest = left[weights[left].argmin()]
            splits[lightest] = split
    if not exact:
        splits[splits == NOWHERE] = largest
    return splits


def _first_fit(weights: Weights, room: int) -> Mask:
    """Choose items in order, each if it still fits."""
    chosen = np.zeros(len(weights), np.bool_)
    candidates = np.flatnonzero(weights <= room)
    while len(candidates):
        filled = np.cumsum(weights[candidates])
        # At least the first candidate fits.
        count = int(np.searchsorted(filled, room, side="right"))
        chosen[candidates[:count]] = True
        room -= int(filled[count - 1])
        rest = candidates[count:]
        candidates = rest[weights[rest] <= room]
    return chosen


def draw_splits(draws: npt.NDArray[np.float64], shares: Sequence[float]) -> Indices:
    """The split of each group from its random number in [0, 1), in proportion to the shares; (group,)."""
    ends = np.cumsum(shares, dtype=np.float64)
    return np.searchsorted(ends / ends[-1], draws, side="right")
