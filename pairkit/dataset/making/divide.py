"""Splits without shared texts: existing ones without leaking rows, or new ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.records import SPLITS, typed_rows
from pairkit.similarity.groups import Groups
from pairkit.similarity.near_duplicates import near_identical

_PAGES = (("url1", "text1"), ("url2", "text2"))  # the page and text of an issue
_CLUSTERS = (("cluster", "text1"), ("cluster", "text2"))


@dataclass(frozen=True, slots=True)
class ConnectedTexts:
    """The texts of rows as numbers, in groups that must stay in one split."""

    texts: list[str]
    groups: Groups[int]
    first: list[int]  # of the first text of each row
    second: list[int]

    def units(self, row: int) -> tuple[int, int]:
        """The groups of the two texts of a row, each named after its first text."""
        return self.groups.find(self.first[row]), self.groups.find(self.second[row])


def connect_texts(rows: pl.DataFrame) -> ConnectedTexts:
    """Group texts that are near-identical, of one page, or of one cluster."""
    rows = typed_rows(rows)  # columns of these names may have other types
    texts = pl.concat([rows["text1"], rows["text2"].alias("text1")]).unique().sort().to_list()
    number_of = {text: number for number, text in enumerate(texts)}
    groups = Groups(range(len(texts)))
    for members in near_identical(texts):
        for member in members[1:]:
            groups.join(members[0], member)
    sides = {name: [number_of[text] for text in rows[name].to_list()] for name in ("text1", "text2")}
    for columns in (_PAGES, _CLUSTERS):
        first: dict[str, int] = {}
        for column, text in columns:
            keys = rows[column].to_list() if column in rows.columns else ()
            for key, number in zip(keys, sides[text], strict=False):
                if key:
                    groups.join(first.setdefault(key, number), number)
    return ConnectedTexts(texts, groups, sides["text1"], sides["text2"])


DROPPED = "why it is left out"  # a column, null for kept rows; unlikely to exist in a dataset
CROSSES = "crosses_splits"
RANKS, OTHER_RANK = {"test": 0, "validation": 1, "train": 3}, 2  # rows stay in the split of lowest rank


def keep_apart(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop rows that share a text, issue or cluster with a split of lower rank."""
    connected = connect_texts(rows)
    of_split: defaultdict[str, list[int]] = defaultdict(list)
    for row, split in enumerate(rows["split"].to_list()):
        of_split[split].append(row)
    owner: dict[int, str] = {}
    reasons: list[str | None] = [None] * rows.height
    for split in sorted(of_split, key=_strength):
        for row in of_split[split]:
            others = [owner[unit] for unit in connected.units(row) if owner.get(unit, split) != split]
            if others:
                reasons[row] = f"shared_with_{min(others, key=_strength)}"
        for row in of_split[split]:
            if reasons[row] is None:
                owner |= dict.fromkeys(connected.units(row), split)
    return rows.with_columns(pl.Series(DROPPED, reasons, pl.String))


def _strength(split: str) -> tuple[int, str]:
    return RANKS.get(split, OTHER_RANK), split


def divide(rows: pl.DataFrame, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Assign rows to new splits so that no text, issue or cluster is in two; `settings` as in run.json."""
    parts, seed, cut_negatives = _parts(settings["split"]), settings["seed"], settings["cut_negatives"]
    connected = connect_texts(rows)
    binding = _positive(rows) if cut_negatives else [True] * rows.height
    for row, binds in enumerate(binding):
        if binds:
            connected.groups.join(connected.first[row], connected.second[row])
    units = [connected.units(row) for row in range(rows.height)]
    sizes = Counter(unit1 for (unit1, _), binds in zip(units, binding, strict=True) if binds)
    loose = Counter({unit for pair in units for unit in pair if not sizes[unit]})  # only in negatives
    split_of = {
        **_assign_groups(sizes, parts, connected, seed),
        **_assign_groups(loose, parts, connected, seed),
    }
    splits = [split_of[unit1] for unit1, _ in units]
    reasons = [None if split_of[unit1] == split_of[unit2] else CROSSES for unit1, unit2 in units]
    divided = rows.with_columns(pl.Series("split", splits, pl.String), pl.Series(DROPPED, reasons, pl.String))
    if not cut_negatives:
        _check(splits, parts, max(sizes.values(), default=0))
    return divided


def _parts(split_sizes: Sequence[float]) -> dict[str, float]:
    """The share of each split, in [0, 1]."""
    if len(split_sizes) != len(SPLITS) or min(split_sizes) < 0 or not 0 < sum(split_sizes) < float("inf"):
        sizes = ",".join(f"{share:g}" for share in split_sizes)
        raise ConfigError(
            f"split_sizes = {sizes}: expected sizes of train, validation and test, such as 0.8,0.1,0.1"
        )
    return {split: share / sum(split_sizes) for split, share in zip(SPLITS, split_sizes, strict=True)}


def _positive(rows: pl.DataFrame) -> list[bool]:
    """Which labels are in the upper half of their range."""
    labels = rows["label"].cast(pl.Float64).to_list()
    middle = (min(labels) + max(labels)) / 2 if labels else 0.0
    return [label >= middle for label in labels]


def _assign_groups(
    sizes: Mapping[int, int], parts: Mapping[str, float], connected: ConnectedTexts, seed: int
) -> dict[int, str]:
    """Assign groups to splits: small splits are filled first, the largest gets the rest."""
    order = sorted(sizes, key=lambda name: (keyed_hash(seed, "group", connected.texts[name]), name))
    small = sorted(parts, key=lambda split: (parts[split], split))
    split_of: dict[int, str] = {}
    for split in small[:-1]:
        missing = round(parts[split] * sum(sizes.values()))
        before = len(split_of)
        for name in order:
            if name not in split_of and sizes[name] <= missing:
                split_of[name] = split
                missing -= sizes[name]
        left = [name for name in order if name not in split_of]
        if len(split_of) == before and missing and len(left) > 1:
            split_of[min(left, key=lambda name: sizes[name])] = split
    return {name: split_of.get(name, small[-1]) for name in order}


def _check(splits: Sequence[str], parts: Mapping[str, float], largest: int) -> None:
    counts = Counter(splits)
    for split, part in parts.items():
        expected = round(part * len(splits))
        if 2 * counts[split] < expected:
            raise DataError(
                f"{largest:,} of {len(splits):,} rows are connected by their texts, so {split} would get"
                f" {counts[split]:,} rows of {expected:,}; let only positives connect them"
                " (--cut-negatives), or give other --split-sizes"
            )
