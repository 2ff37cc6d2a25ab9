"""Several datasets as one: each pair once, and what the datasets say differently about it named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import polars as pl

from pairkit._divide import DROPPED, OTHER_RANK, RANKS
from pairkit.columns import as_json
from pairkit.conflicts import AGAINST_FIRST, DIFFER, PAIR, unordered
from pairkit.errors import ConfigError, DataError
from pairkit.labels import CONFLICT
from pairkit.printable import one_line
from pairkit.records import PairDataset, named_split

Conflicts = Literal["error", "drop", "first"]

REPEATED = "repeated"
_NAMED = 3  # conflicts that a message names
ROW = "row of its split"  # a column: which row it was in its own dataset, from 1
_PLACE, _RANK = "place", "rank of the split"
_FIRST = ("split", "source", ROW, "text1", "text2", "label")


def joined(datasets: Mapping[str, PairDataset]) -> pl.DataFrame:
    """The rows of all datasets, in their order; `source` says which each is from.

    Where columns of one name have types that don't go together they become texts, nested ones JSON.

    Raises:
        DataError: Some labels are 0 and 1, and others are scores, or scores from 0 to 1 and others beyond.
    """
    kinds = {name: pairs.label_kind for name, pairs in datasets.items()}
    if len({*kinds.values()}) > 1:
        told = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise DataError(f"labels of 0 and 1 can't be joined with scores ({one_line(told)}); make them alike")
    _check_scales(datasets)
    frames = [
        _named(frame, name, split)
        for name, pairs in datasets.items()
        for split, frame in pairs.splits.items()
    ]
    try:
        together = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        odd = _odd_columns(frames)
        together = pl.concat([_as_texts(frame, odd) for frame in frames], how="diagonal_relaxed")
    return together.select(*_FIRST, pl.exclude(_FIRST))


def _check_scales(datasets: Mapping[str, PairDataset]) -> None:
    if next(iter(datasets.values())).label_kind == "binary":
        return
    highest = {name: pairs.rows["label"].to_numpy().max() for name, pairs in datasets.items() if len(pairs)}
    small, large = [[name for name in highest if (highest[name] > 1) == beyond] for beyond in (False, True)]
    if small and large:
        raise DataError(
            f"scores from 0 to 1 ({one_line(', '.join(small))}) can't be joined with scores beyond 1"
            f" ({one_line(', '.join(large))}): write the latter anew on the scale from 0 to 1, as with"
            " pairkit.write(DATASET, OUT, label_range=(0, 5))"
        )


def once(rows: pl.DataFrame, conflicts: Conflicts) -> pl.DataFrame:
    """Mark the rows that say again what another says: the same two texts, whichever comes first.

    Of such rows the one in the strongest split stays (test, then validation), of several the first.

    Args:
        rows: As `joined` makes them.
        conflicts: What to do where their labels differ: raise an error, drop them all, or believe the first
            dataset.

    Returns:
        The rows with a reason (`repeated`, `conflicting_labels`) where one is left out.

    Raises:
        ConfigError: Another word for conflicts.
        DataError: Labels differ and that is to be an error; names the first rows.
    """
    if conflicts not in get_args(Conflicts):
        raise ConfigError(f"conflicts = {conflicts}: expected error, drop or first")
    rank = pl.col("split").replace_strict(RANKS, default=OTHER_RANK)
    keyed = rows.with_row_index(_PLACE).with_columns(*unordered("text1", "text2"), rank.alias(_RANK))
    if conflicts == "error":
        _refuse(keyed.filter(DIFFER))
    is_lost = DIFFER if conflicts == "drop" else AGAINST_FIRST
    kept_place = pl.col(_PLACE).sort_by(_RANK, _PLACE).first().over(PAIR)
    marked = keyed.with_columns(pl.when(is_lost).then(pl.lit(CONFLICT)).alias(DROPPED))
    alive = marked.filter(pl.col(DROPPED).is_null()).with_columns(
        pl.when(kept_place != pl.col(_PLACE)).then(pl.lit(REPEATED)).alias(DROPPED)
    )
    return (
        pl.concat([alive, marked.filter(pl.col(DROPPED).is_not_null())])
        .sort(_PLACE)
        .select(*rows.columns, DROPPED)
    )


def _refuse(differing: pl.DataFrame) -> None:
    if not differing.height:
        return
    groups = differing.partition_by(PAIR, maintain_order=True)
    told = []
    for group in groups[:_NAMED]:
        places = [
            f"{row['source']}, {row['split']}, row {row[ROW]:,}: label {row['label']:g}"
            for row in group.iter_rows(named=True)
        ]
        told.append(f"{one_line(group['text1'][0], 60)!r} ({'; '.join(places)})")
    more = f" and {len(groups) - _NAMED:,} more" if len(groups) > _NAMED else ""
    raise DataError(
        f"pairs with different labels ({len(groups):,}): {', '.join(told)}{more}; set conflicts to drop"
        " to leave them out, or to first to take the label of the dataset that comes first"
    )


def _named(frame: pl.DataFrame, name: str, split: str) -> pl.DataFrame:
    """A split's rows with where they are from; what an earlier merge said of it is kept behind the name."""
    source = pl.lit(name)
    dtype = frame.schema.get("source")
    if dtype is not None and not dtype.is_nested() and dtype != pl.Binary:
        inner = pl.col("source").cast(pl.String)
        source = pl.when(inner.is_null()).then(source).otherwise(pl.concat_str(pl.lit(f"{name}/"), inner))
    return named_split(frame, split).with_row_index(ROW, offset=1).with_columns(source.alias("source"))


def _odd_columns(frames: list[pl.DataFrame]) -> set[str]:
    """Columns that are not of one type, or of types of numbers, in all frames."""
    found: dict[str, set[Any]] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            if dtype != pl.Null:
                found.setdefault(name, set()).add("number" if dtype.is_numeric() else dtype)
    return {name for name, dtypes in found.items() if len(dtypes) > 1}


def _as_texts(frame: pl.DataFrame, names: set[str]) -> pl.DataFrame:
    here = [name for name in frame.columns if name in names]
    nested = [name for name in here if frame.schema[name].is_nested()]
    plain = [pl.col(name).cast(pl.String, strict=False) for name in here if name not in nested]
    return frame.with_columns(*plain, *(as_json(frame[name]) for name in nested))
