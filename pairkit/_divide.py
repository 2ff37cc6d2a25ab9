"""Splits that share no text: kept as they are, less what leaks, or made anew."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from pairkit._ties import Ties, tie
from pairkit.errors import ConfigError, DataError
from pairkit.keyed import keyed_hash
from pairkit.records import SPLITS

DROPPED = "why it is left out"  # a column, null for a row that stays; a name that no dataset has
CROSSES = "crosses_splits"
RANKS, OTHER_RANK = {"test": 0, "validation": 1, "train": 3}, 2  # of splits; the least is the strongest


def keep_apart(rows: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Drop rows of a weaker split that share a text, issue or cluster with a stronger one.

    Test is stronger than validation, and both are stronger than any other: what a model is judged by stays.

    Args:
        rows: With `split`; see `pairkit._ties.tie`.
        threshold: See there.

    Returns:
        The rows with a reason where one is dropped, such as `shared_with_test`.
    """
    ties = tie(rows, threshold)
    of_split: defaultdict[str, list[int]] = defaultdict(list)
    for row, split in enumerate(rows["split"].to_list()):
        of_split[split].append(row)
    owner: dict[int, str] = {}
    reasons: list[str | None] = [None] * rows.height
    for split in sorted(of_split, key=_strength):
        for row in of_split[split]:
            others = [owner[unit] for unit in ties.units(row) if owner.get(unit, split) != split]
            if others:
                reasons[row] = f"shared_with_{min(others, key=_strength)}"
        for row in of_split[split]:
            if reasons[row] is None:
                owner |= dict.fromkeys(ties.units(row), split)
    return rows.with_columns(pl.Series(DROPPED, reasons, pl.String))


def _strength(split: str) -> tuple[int, str]:
    return RANKS.get(split, OTHER_RANK), split


def divide(
    rows: pl.DataFrame, shares: Sequence[float], seed: int, threshold: float, *, cut_negatives: bool
) -> pl.DataFrame:
    """Give every row a new split, so that no text, issue or cluster stands in two.

    Rows that have a text in common, directly or through others, are of one group, and groups are dealt.

    Args:
        rows: See `pairkit._ties.tie`; with `label`.
        shares: What train, validation and test get of the rows, in proportion.
        seed: Decides which groups go where.
        threshold: See `pairkit._ties.tie`.
        cut_negatives: Let positives alone tie, and drop the negatives that would then reach over splits.

    Returns:
        The rows with their `split`, and a reason where one is dropped.

    Raises:
        ConfigError: The shares are none.
        DataError: Too much hangs together for such shares.
    """
    parts = _parts(shares)
    ties = tie(rows, threshold)
    binding = _positive(rows) if cut_negatives else [True] * rows.height
    for row, binds in enumerate(binding):
        if binds:
            ties.groups.join(ties.one[row], ties.other[row])
    units = [ties.units(row) for row in range(rows.height)]
    sizes = Counter(one for (one, _), binds in zip(units, binding, strict=True) if binds)
    loose = Counter({unit for pair in units for unit in pair if not sizes[unit]})  # of negatives alone
    dealt = {**_dealt(sizes, parts, ties, seed), **_dealt(loose, parts, ties, seed)}
    splits = [dealt[one] for one, _ in units]
    reasons = [None if dealt[one] == dealt[other] else CROSSES for one, other in units]
    divided = rows.with_columns(pl.Series("split", splits, pl.String), pl.Series(DROPPED, reasons, pl.String))
    if not cut_negatives:
        _check(splits, parts, max(sizes.values(), default=0))
    return divided


def _parts(shares: Sequence[float]) -> dict[str, float]:
    """What each split gets, in [0, 1]."""
    if len(shares) != len(SPLITS) or min(shares) < 0 or not 0 < sum(shares) < float("inf"):
        told = ",".join(f"{share:g}" for share in shares)
        raise ConfigError(
            f"split = {told}: expected shares of train, validation and test, such as 0.8,0.1,0.1"
        )
    return {split: share / sum(shares) for split, share in zip(SPLITS, shares, strict=True)}


def _positive(rows: pl.DataFrame) -> list[bool]:
    """Labels in the upper half of those that there are."""
    labels = rows["label"].cast(pl.Float64).to_list()
    middle = (min(labels) + max(labels)) / 2 if labels else 0.0
    return [label >= middle for label in labels]


def _dealt(sizes: Mapping[int, int], parts: Mapping[str, float], ties: Ties, seed: int) -> dict[int, str]:
    """Groups to splits: the small splits are filled first, and the largest takes what is left.

    A group that is larger than what a split misses is passed over; a split that got none takes the least.
    """
    order = sorted(sizes, key=lambda name: (keyed_hash(seed, "group", ties.texts[name]), name))
    small = sorted(parts, key=lambda split: (parts[split], split))
    dealt: dict[int, str] = {}
    for split in small[:-1]:
        missing = round(parts[split] * sum(sizes.values()))
        before = len(dealt)
        for name in order:
            if name not in dealt and sizes[name] <= missing:
                dealt[name] = split
                missing -= sizes[name]
        left = [name for name in order if name not in dealt]
        if len(dealt) == before and missing and len(left) > 1:
            dealt[min(left, key=lambda name: sizes[name])] = split
    return {name: dealt.get(name, small[-1]) for name in order}


def _check(splits: Sequence[str], parts: Mapping[str, float], largest: int) -> None:
    found = Counter(splits)
    for split, part in parts.items():
        wanted = round(part * len(splits))
        if 2 * found[split] < wanted:
            raise DataError(
                f"{largest:,} of {len(splits):,} rows belong together by their texts, so {split} would get"
                f" {found[split]:,} rows of {wanted:,}; let positives alone tie them"
                " (--cut-negatives, cut_negatives=True), or give other shares"
            )
