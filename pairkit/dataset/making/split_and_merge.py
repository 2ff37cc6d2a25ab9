"""Splits without shared texts: existing ones without leaking rows, or new ones; and merged datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.frames import is_plain, join_frames
from pairkit.dataset.labels import CONFLICT
from pairkit.dataset.making.group_splits import (
    NOWHERE,
    Codes,
    Mask,
    fill_splits,
    split_targets,
    text_groups,
)
from pairkit.dataset.making.made import (
    CONFLICTING,
    DROPPED,
    MadeDataset,
    build_result,
    check_out,
    run_record,
    write_result,
)
from pairkit.dataset.reading.in_memory import Source, contents_of, path_of
from pairkit.dataset.records import (
    FILE,
    PAIR,
    ROW,
    SPLITS,
    PairDataset,
    all_texts,
    differs_from_first,
    label_scale,
    labels_differ,
    named_split,
    typed_rows,
    unordered,
)
from pairkit.similarity.groups import Indices, connected
from pairkit.similarity.terms import same_text

_PLACE = "place of the row"
_RANK = "rank of the split"
_KEY = "page or cluster"
_TEXT = "number of the text"

CROSSES = "crosses_splits"
REPEATED = "repeated"
_ROUNDING = 0.01  # of shares such as 0.33
# Rows stay in the split of lowest rank.
_RANKS = {"test": 0, "validation": 1, "train": 3}
_OTHER_RANK = 2

_SPLIT = """
A dataset divided by `pairs split`. Each pair occurs once, in either order. Rows that share a text,
directly or through other rows, are in one split; so are near-identical texts (Jaccard similarity of
word triples), issues and clusters.
"""

Conflicts = Literal["drop", "first", "error", "keep"]

_MAX_PLACES = 3  # in a message
_FIRST = ("split", "source", FILE, ROW, "text1", "text2", "label")
_MERGED = """
Datasets merged by `pairs merge`. Each pair occurs once, in either order. No text, issue or
cluster is in two splits, and neither are near-identical texts (Jaccard similarity of word triples).
"""


@dataclass(frozen=True)
class ConnectedTexts:
    """The distinct texts of rows, in groups that must stay in one split."""

    texts: list[str]
    groups: Indices  # the first text of each text's group; (text,)
    first: Indices  # the index of the first text of each row; (row,)
    second: Indices


def connect_texts(rows: pl.DataFrame) -> ConnectedTexts:
    """Group texts that are the same, near-identical, of one page, or of one cluster."""
    rows = typed_rows(rows)  # columns of these names may have other types
    distinct = all_texts(rows).unique().sort()
    texts = distinct.to_list()
    first = distinct.search_sorted(rows["text1"])
    second = distinct.search_sorted(rows["text2"])
    groups = text_groups(texts)
    for key1, key2 in (("url1", "url2"), ("cluster", "cluster")):
        parts = []
        for key, side in ((key1, first), (key2, second)):
            if key in rows.columns:
                parts.append(pl.DataFrame({_KEY: rows[key], _TEXT: side}))
        if not parts:
            continue
        has_key = pl.col(_KEY).str.strip_chars() != ""
        members = pl.concat(parts).filter(has_key)
        leaders = members.select(pl.first(_TEXT).over(_KEY)).to_series()
        groups = connected(groups, leaders.to_numpy(), members[_TEXT].to_numpy())
    return ConnectedTexts(texts, groups, first.to_numpy(), second.to_numpy())


def keep_apart(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop rows that share a text, issue or cluster with a split of lower rank."""
    connected_texts = connect_texts(rows)
    groups = connected_texts.groups
    first_groups = groups[connected_texts.first].tolist()
    second_groups = groups[connected_texts.second].tolist()
    split_of_row = rows["split"]

    owner: dict[int, str] = {}
    reasons: list[str | None] = [None] * rows.height
    for split in sorted(split_of_row.unique(), key=_split_rank):
        kept = set()
        for row in (split_of_row == split).arg_true():
            groups_of_row = {first_groups[row], second_groups[row]}
            owners = [owner[group] for group in groups_of_row if group in owner]
            if owners:
                reasons[row] = f"shared_with_{min(owners, key=_split_rank)}"
            else:
                kept |= groups_of_row
        owner |= dict.fromkeys(kept, split)  # only rows that stay own their texts
    return rows.with_columns(pl.Series(DROPPED, reasons, pl.String))


def _split_rank(split: str) -> tuple[int, str]:
    return _RANKS.get(split, _OTHER_RANK), split


def divide(
    rows: pl.DataFrame,
    split_sizes: Sequence[float],
    seed: int,
    binds: Mask | None = None,
) -> pl.DataFrame:
    """Assign rows to new splits so that no text, issue or cluster is in two.

    The two texts of a row stay together if the row binds (default: all rows do). Other rows are dropped if
    their texts are in different splits.
    """
    shares = _split_shares(split_sizes)
    connected_texts = connect_texts(rows)
    first = connected_texts.first
    second = connected_texts.second
    is_binding: Mask | slice = slice(None) if binds is None else binds
    groups = connected(connected_texts.groups, first[is_binding], second[is_binding])

    row_counts = np.bincount(groups[first[is_binding]], minlength=len(groups))
    with_rows = np.flatnonzero(row_counts)
    without_rows = np.setdiff1d(groups, with_rows)  # only texts of rows that don't bind
    weights = np.maximum(row_counts, 1)
    split_of = np.full(len(groups), NOWHERE, np.int8)
    for names in (without_rows, with_rows):
        order = _drawn_order([connected_texts.texts[name] for name in names], seed)
        targets = split_targets(int(weights[names].sum()), shares, len(names))
        split_of[names] = fill_splits(order, weights[names], targets)

    splits = split_of[groups[first]]
    crosses = pl.Series(splits != split_of[groups[second]])
    if binds is None:  # then the last targets are of all rows
        remedy = "give other --split-sizes (1,0,0: training rows only)"
        if not _is_positive(rows).all():
            remedy = f"let only positives connect them (--cut-negatives), or {remedy}"
        _check_sizes(splits, targets, int(row_counts.max(initial=0)), remedy)
    split_names = [SPLITS[split] for split in splits.tolist()]
    return rows.with_columns(
        pl.Series("split", split_names, pl.String),
        pl.when(crosses).then(pl.lit(CROSSES)).alias(DROPPED),
    )


def _drawn_order(texts: Sequence[str], seed: int) -> Indices:
    """A random order of texts, which depends only on the seed and the texts."""
    hashes = [keyed_hash(seed, "group", text) for text in texts]
    return np.argsort(np.array(hashes, np.uint64), kind="stable")


def _split_shares(split_sizes: Sequence[float]) -> list[float]:
    """The share of each split, in [0, 1]; raises ConfigError for invalid sizes."""
    total = sum(split_sizes)
    given = f"split_sizes = {','.join(f'{size:g}' for size in split_sizes)}"
    is_valid = len(split_sizes) == len(SPLITS) and min(split_sizes) >= 0
    if not is_valid or not 0 < total < float("inf"):
        raise ConfigError(
            f"{given}: expected sizes of train, validation and test, such as 0.8,0.1,0.1"
        )
    has_fractions = any(size % 1 for size in split_sizes)
    if has_fractions and abs(total - 1) > _ROUNDING:
        raise ConfigError(
            f"{given}: fractions must add up to 1, not {total:g}; other proportions need whole numbers"
        )
    return [size / total for size in split_sizes]


def _is_positive(rows: pl.DataFrame) -> Mask:
    """Which labels are in the upper half of their range."""
    labels = rows["label"].cast(pl.Float64).to_numpy()
    lowest = labels.min(initial=np.inf)
    highest = labels.max(initial=lowest)
    return np.asarray(labels >= (lowest + highest) / 2)


def _check_sizes(
    splits: Codes,
    targets: Sequence[int],
    largest: int,
    remedy: str,
) -> None:
    """Refuse splits of less than half the requested rows."""
    counts = np.bincount(splits, minlength=len(SPLITS)).tolist()
    for split, count, target in zip(SPLITS, counts, targets, strict=True):
        if 2 * count < target:
            raise DataError(
                f"{largest:,} of {len(splits):,} rows are connected by their texts, so {split} would get"
                f" {count:,} rows of {target:,}; {remedy}"
            )


def make_split(
    pairs: PairDataset,
    source: Source,
    out: Path | None,
    *,
    settings: Mapping[str, Any],
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.split`; `settings` are its arguments by name."""
    run = run_record("split", {"pairs": pairs}, settings)
    check_out(out, run, [source], fresh=fresh)
    rows = _split_once(pairs.rows, settings)
    dataset = build_result(rows, pairs.label_kind, str(out or pairs.source), [pairs])
    return write_result(dataset, out, run, _SPLIT)


def named(sources: Sequence[Source] | Mapping[str, Source]) -> dict[str, Source]:
    """The sources by name: the keys of a mapping, the last parts of paths, or numbers."""
    contents = contents_of(cast("Source", sources))
    is_single = isinstance(contents, str | Path | PairDataset) or hasattr(
        sources, "columns"
    )
    if is_single or not sources:
        raise ConfigError("nothing to merge; give a list of datasets")
    if isinstance(sources, Mapping):
        return dict(sources)
    by_name = {}
    for number, source in enumerate(sources, 1):
        where = path_of(source)
        name = str(number) if where is None else Path(where).name
        if not name or name in by_name:
            name = f"{name}-{number}"
        by_name[name] = source
    return by_name


def join_datasets(datasets: Mapping[str, PairDataset]) -> pl.DataFrame:
    """The rows of all datasets with their `source`; raises DataError if their labels have different scales."""
    scales = {name: _scale(pairs) for name, pairs in datasets.items() if len(pairs)}
    if len({*scales.values()}) > 1:
        listed = ", ".join(f"{name}: {scale}" for name, scale in scales.items())
        raise DataError(
            f"different labels can't be merged ({one_line(listed)}): convert scores to one scale, such as"
            " with pairkit.write(DATASET, OUT, label_range=(0, 5)), and merge 0 and 1 only with 0 and 1"
        )
    frames = [
        _with_source(frame, name, split, pairs.source)
        for name, pairs in datasets.items()
        for split, frame in pairs.splits.items()
    ]
    return join_frames(frames).select(*_FIRST, pl.exclude(_FIRST))


def _scale(pairs: PairDataset) -> str:
    """The scale of the labels in words."""
    if pairs.label_kind == "binary":
        return "0 and 1"
    if pairs.rows["label"].to_numpy().max() <= 1:
        return "scores from 0 to 1"
    return "scores above 1"


def _split_once(rows: pl.DataFrame, settings: Mapping[str, Any]) -> pl.DataFrame:
    """All rows with their splits; repeated pairs, and rows that connect splits, have the reason in `DROPPED`."""
    marked = mark_repeated(rows, settings["conflicts"])
    is_kept = marked[DROPPED].is_null()
    kept = marked.filter(is_kept).drop(DROPPED)
    if settings["split"] is None:
        divided = keep_apart(kept)
    else:
        binds = _is_positive(kept) if settings["cut_negatives"] else None
        divided = divide(kept, settings["split"], settings["seed"], binds)
    return pl.concat([divided, marked.filter(~is_kept)], how="diagonal")


def mark_repeated(rows: pl.DataFrame, conflicts: Conflicts) -> pl.DataFrame:
    """Mark rows that repeat a pair: the first in the split of lowest rank stays.

    With `conflicts="error"`, raises DataError for pairs with different labels.
    """
    rank = pl.col("split").replace_strict(_RANKS, default=_OTHER_RANK).alias(_RANK)
    scale = label_scale(rows["label"])
    same = rows.select(same1=same_text("text1"), same2=same_text("text2"))
    keys = same.select(unordered("same1", "same2"))
    keyed = rows.with_row_index(_PLACE).hstack(keys)
    keyed = keyed.with_columns(rank, labels_differ(scale).alias(CONFLICTING))
    if conflicts == "error":
        _refuse_conflicts(keyed.filter(CONFLICTING))

    is_kept = pl.col(CONFLICTING) & (conflicts == "keep")
    is_lost = pl.col(CONFLICTING) & ~is_kept
    if conflicts == "first":
        is_lost = differs_from_first(scale)
    lost = pl.when(is_lost).then(pl.lit(CONFLICT))
    marked = keyed.with_columns(lost.alias(DROPPED), is_kept.alias(CONFLICTING))
    # Each label of a kept conflict occurs once.
    side = pl.when(CONFLICTING).then("label")
    first_place = pl.col(_PLACE).sort_by(_RANK, _PLACE).first()
    is_repeated = pl.col(_PLACE) != first_place.over(*PAIR, DROPPED, side)
    repeated = pl.when(is_repeated).then(pl.lit(REPEATED))
    dropped = pl.coalesce(DROPPED, repeated).alias(DROPPED)
    return marked.select(*rows.columns, CONFLICTING, dropped)


def _refuse_conflicts(differing: pl.DataFrame) -> None:
    """Raise DataError with the first pair of different labels, if there is one."""
    if differing.is_empty():
        return
    first, *others = differing.partition_by(PAIR, maintain_order=True)
    places = [
        f"{one_line(row[FILE])}:{row[ROW]}: label {row['label']:g}"
        for row in first.head(_MAX_PLACES).iter_rows(named=True)
    ]
    raise DataError(
        f"pairs with different labels ({1 + len(others):,}), such as {one_line(first['text1'][0], 60)!r}"
        f" ({'; '.join(places)}); leave them out"
        " with --conflicts=drop, take the first label with --conflicts=first, or keep them with"
        " --conflicts=keep"
    )


def _with_source(
    frame: pl.DataFrame,
    name: str,
    split: str,
    where: str,
) -> pl.DataFrame:
    """A split's rows with their source; the source from an earlier merge is appended."""
    source = pl.lit(name)
    if "source" in frame.columns and is_plain(frame.schema["source"]):
        earlier = pl.concat_str(pl.lit(f"{name}/"), pl.col("source").cast(pl.String))
        source = pl.coalesce(earlier, source)
    # Several tables in memory have the same name.
    file = pl.col(FILE).str.replace(where, name, literal=True)
    return named_split(frame, split).with_columns(file, source.alias("source"))


def make_merged(
    datasets: Mapping[str, PairDataset],
    sources: Mapping[str, Source],
    out: Path | None,
    *,
    settings: Mapping[str, Any],
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.merge`; `settings` are its arguments by name."""
    run = run_record("merge", datasets, settings)
    check_out(out, run, sources.values(), fresh=fresh)
    rows = _split_once(join_datasets(datasets), settings)
    sources_read = [*datasets.values()]
    kind = max(sources_read, key=len).label_kind  # an empty one may have another
    name = str(out or "the merged datasets")
    dataset = build_result(rows, kind, name, sources_read)
    return write_result(dataset, out, run, _MERGED)
