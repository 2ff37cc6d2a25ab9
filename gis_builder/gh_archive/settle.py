"""Splits over all repositories, and the third map: the negatives of a bucket.

Negatives are drawn by bucket, after their number for each repository is known.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gis_builder.gh_archive.combined_buckets import CombinedBuckets, IssueTextsOnDisk
from gis_builder.gh_archive.judge_threads import (
    pack,
    read_judged,
    unpack,
    with_duplicates,
)
from gis_builder.pairing.negatives import Negatives, make_negatives, shares
from gis_builder.pairing.split import SplitInput, SplitResult, Splits, split_groups
from gis_builder.settings import SPLITS, ArchiveSettings
from pairkit.base.system.files import write_bytes
from pairkit.dataset.making.group_splits import Codes
from pairkit.similarity.groups import Indices, connected
from pairkit.similarity.near_duplicates import near_identical_to

DrawInput = dict[int, Splits]  # of the repositories of a bucket, by id


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
    issues = combined.texts.issues
    clusters = combined.same_split.groups()
    task = SplitInput(
        refs=combined.refs,
        first=table["first"].to_numpy(),
        second=table["second"].to_numpy(),
        groups=connected(clusters, issues, issues[near_duplicates]),
        usable=combined.texts.usable,
    )
    return split_groups(task, combined.settings)


def draw_inputs(
    combined: CombinedBuckets, assigned: SplitResult
) -> Iterator[DrawInput]:
    """Yield the splits of each bucket's repositories; the positives in no split are recorded as dropped."""
    refs = combined.refs
    usable = combined.texts.usable
    wanted = _wanted_by_repo(combined, assigned)
    for bucket in combined.buckets:
        splits_of: DrawInput = {}
        dropped = []
        for repo_id, name, places in bucket.repos:
            issues = refs.of_repo(name)
            pairs = combined.pairs.at(places)
            codes = assigned.positives[places.start : places.stop]
            splits = assigned.named(refs, issues[usable[issues]], pairs, codes)
            for split, positives in splits.positives.items():
                positives.sort(key=attrgetter("first", "second"))
                splits.negatives_wanted[split] = wanted[split].get(name, 0)
            dropped += splits.dropped
            splits_of[repo_id] = splits
        combined.drop({}, dropped)
        yield splits_of


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
    splits_of = unpack(draw_input, DrawInput)
    settings = ArchiveSettings.model_validate_json(settings_json)
    drawn = []
    for repo in with_duplicates(read_judged(judged)):
        splits = splits_of.get(repo.repo_id)
        if splits is not None and any(splits.positives.values()):
            links = set(map(frozenset, repo.links))
            negatives = make_negatives(
                splits, repo.clusters, repo.texts, links, settings.pair, settings.seed
            )
            drawn.append(negatives)
    yield pack(drawn)


class DrawnNegatives(NamedTuple):
    """The split of each pair, and counts over all buckets."""

    split_of: Codes
    missing: dict[str, int]
    with_single: int


def add_negatives(
    combined: CombinedBuckets, assigned: SplitResult, paths: Iterable[Path]
) -> DrawnNegatives:
    """Add the negatives of the buckets, one by one."""
    codes = array("b", assigned.positives.tobytes())
    missing = dict.fromkeys(assigned.negatives_wanted, 0)
    with_single = 0
    for path in paths:
        dropped = []
        for drawn in unpack(path, list[Negatives]):
            for name, pairs in drawn.pairs.items():
                combined.pairs.extend(pairs)
                codes.extend([SPLITS.index(name)] * len(pairs))
                missing[name] += drawn.missing[name]
            dropped += drawn.dropped
            with_single += drawn.with_single
        combined.drop({}, dropped)
    return DrawnNegatives(np.asarray(codes), missing, with_single)
