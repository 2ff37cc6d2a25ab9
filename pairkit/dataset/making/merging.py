"""Merge datasets: join their rows, and leave out repeated pairs and those that leak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.dataset.labels import CONFLICT
from pairkit.dataset.making.divide import DROPPED, OTHER_RANK, RANKS, divide, keep_apart
from pairkit.dataset.making.made import ROW, MadeDataset, build_result, check_out, run_record, write_result
from pairkit.dataset.reading.in_memory import Source, contents_of
from pairkit.dataset.records import (
    AGAINST_FIRST,
    DIFFER,
    PAIR,
    PairDataset,
    join_frames,
    named_split,
    unordered,
)

Conflicts = Literal["error", "drop", "first"]

REPEATED = "repeated"
_MAX_CONFLICTS = 3  # in a message
_PLACE, _RANK = "place", "rank of the split"
_FIRST = ("split", "source", ROW, "text1", "text2", "label")
_MERGED = """
Datasets merged by `pairs merge`. Each pair occurs once, in either order. No text, issue or
cluster is in two splits, and neither are near-identical texts (Jaccard similarity of word triples).
"""


def named(sources: Sequence[Source] | Mapping[str, Source]) -> dict[str, Source]:
    """The sources by name: the keys of a mapping, the last parts of paths, or numbers."""
    is_single = isinstance(contents_of(cast("Source", sources)), str | Path | PairDataset) or hasattr(
        sources, "columns"
    )
    if is_single or not sources:
        raise ConfigError("nothing to merge; give a list of datasets")
    if isinstance(sources, Mapping):
        return dict(sources)
    by_name: dict[str, Source] = {}
    for place, source in enumerate(sources, 1):
        contents = contents_of(source)
        name = contents.source if isinstance(contents, PairDataset) else contents
        plain = Path(name).name if isinstance(name, str | Path) else str(place)
        by_name[plain if plain and plain not in by_name else f"{plain}-{place}"] = source
    return by_name


def join_datasets(datasets: Mapping[str, PairDataset]) -> pl.DataFrame:
    """The rows of all datasets with their `source`."""
    kinds = {name: pairs.label_kind for name, pairs in datasets.items()}
    if len({*kinds.values()}) > 1:
        listed = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise DataError(
            f"labels of 0 and 1 can't be merged with scores ({one_line(listed)}); convert one of them"
        )
    _check_scales(datasets)
    frames = [
        _named(frame, name, split)
        for name, pairs in datasets.items()
        for split, frame in pairs.splits.items()
    ]
    return join_frames(frames).select(*_FIRST, pl.exclude(_FIRST))


def _check_scales(datasets: Mapping[str, PairDataset]) -> None:
    if next(iter(datasets.values())).label_kind == "binary":
        return
    highest = {name: pairs.rows["label"].to_numpy().max() for name, pairs in datasets.items() if len(pairs)}
    small, large = [[name for name in highest if (highest[name] > 1) == beyond] for beyond in (False, True)]
    if small and large:
        raise DataError(
            f"scores from 0 to 1 ({one_line(', '.join(small))}) can't be merged with scores above 1"
            f" ({one_line(', '.join(large))}): convert the latter to the scale from 0 to 1, such as with"
            " pairkit.write(DATASET, OUT, label_range=(0, 5))"
        )


def mark_repeated(rows: pl.DataFrame, conflicts: Conflicts) -> pl.DataFrame:
    """Mark rows that repeat a pair: the first in the split of lowest rank stays."""
    if conflicts not in get_args(Conflicts):
        raise ConfigError(f"conflicts = {conflicts}: expected error, drop or first")
    rank = pl.col("split").replace_strict(RANKS, default=OTHER_RANK)
    keyed = rows.with_row_index(_PLACE).with_columns(*unordered("text1", "text2"), rank.alias(_RANK))
    if conflicts == "error":
        _refuse(keyed.filter(DIFFER))
    is_lost = DIFFER if conflicts == "drop" else AGAINST_FIRST
    marked = keyed.with_columns(pl.when(is_lost).then(pl.lit(CONFLICT)).alias(DROPPED))
    alive = pl.col(DROPPED).is_null()
    kept_place = pl.col(_PLACE).sort_by(_RANK, _PLACE).first().over(*PAIR, alive)
    is_repeated = alive & (kept_place != pl.col(_PLACE))
    reason = pl.when(is_repeated).then(pl.lit(REPEATED)).otherwise(DROPPED)
    return marked.with_columns(reason.alias(DROPPED)).select(*rows.columns, DROPPED)


def _refuse(differing: pl.DataFrame) -> None:
    if not differing.height:
        return
    groups = differing.partition_by(PAIR, maintain_order=True)
    conflicts = []
    for group in groups[:_MAX_CONFLICTS]:
        places = [
            f"{row['source']}, {row['split']}, row {row[ROW]:,}: label {row['label']:g}"
            for row in group.iter_rows(named=True)
        ]
        conflicts.append(f"{one_line(group['text1'][0], 60)!r} ({'; '.join(places)})")
    more = f" and {len(groups) - _MAX_CONFLICTS:,} more" if len(groups) > _MAX_CONFLICTS else ""
    raise DataError(
        f"pairs with different labels ({len(groups):,}): {', '.join(conflicts)}{more}; leave them out"
        " with --conflicts=drop, or take the label of the dataset that comes first with --conflicts=first"
    )


def _named(frame: pl.DataFrame, name: str, split: str) -> pl.DataFrame:
    """A split's rows with their source; the source from an earlier merge is appended."""
    source = pl.lit(name)
    dtype = frame.schema.get("source")
    if dtype is not None and not dtype.is_nested() and dtype != pl.Binary:
        inner = pl.col("source").cast(pl.String)
        source = pl.when(inner.is_null()).then(source).otherwise(pl.concat_str(pl.lit(f"{name}/"), inner))
    return named_split(frame, split).with_row_index(ROW, offset=1).with_columns(source.alias("source"))


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
    marked = mark_repeated(join_datasets(datasets), cast("Conflicts", settings["conflicts"]))
    alive = marked.filter(pl.col(DROPPED).is_null()).drop(DROPPED)
    apart = keep_apart(alive) if settings["split"] is None else divide(alive, settings)
    rows = pl.concat([apart, marked.filter(pl.col(DROPPED).is_not_null())], how="diagonal")
    kind = next(iter(datasets.values())).label_kind
    made = build_result(rows, kind, str(out or "the merged datasets"), [*datasets.values()])
    return write_result(made, out, run, _MERGED)
