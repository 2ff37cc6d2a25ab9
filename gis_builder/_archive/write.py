"""The dataset's folder, a shard of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gis_builder._card import gis_card
from gis_builder._dataset import (
    make_positive_rows,
    make_rows,
    repository_counts,
    row_counts,
    row_order,
    without_texts,
)
from gis_builder._records import IssueRef, IssueText, Pair
from pairkit.errors import DataError
from pairkit.parquet import write_parquet
from pairkit.records import CONFIG_FOLDERS, dataset_folder

ROWS = 50_000  # of one shard
_NAMED = 100  # repositories of a split that the statistics name

_Make = Callable[[Sequence[Pair], Mapping[IssueRef, IssueText]], pl.DataFrame]


def write_archive(
    out: Path,
    positives: Mapping[str, Sequence[Pair]],
    negatives: Mapping[str, Sequence[Pair]],
    texts: Mapping[IssueRef, IssueText],
    *,
    seed: int,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
    detail: Path,
    finish_card: Callable[[str, Mapping[str, Any]], str],
) -> dict[str, Any]:
    """Write the folder as `write_gis` does, in shards.

    Args:
        out: The folder.
        positives: Of each split.
        negatives: Of each split.
        texts: Of every issue that stands in a pair.
        seed: Decides the order of rows and which text of a pair comes first.
        statistics: Counts of the stages before; added to the counts of the rows.
        run: What made the dataset.
        detail: Where the counts of all repositories go; the statistics have those of the largest.
        finish_card: Given the card and the statistics, says more.

    Returns:
        The statistics as written.

    Raises:
        DataError: There are no positives.
        ConfigError: The folder can't be written.
    """
    if not any(positives.values()):
        raise DataError(
            "no pairs: no duplicate whose original is in these hours, too, was found; give more hours"
            " (dropped.parquet in the working folder has what was left out)",
            path=out,
        )
    light: dict[str, pl.DataFrame] = {}
    with dataset_folder(out) as folder:
        for split, own in positives.items():
            kept: list[pl.DataFrame] = []
            pairs = [*own, *negatives.get(split, ())]
            for place, count, rows in _shards(pairs, texts, lambda p, t: make_rows(p, (), t, seed), seed):
                folder.add("default", split, rows, place, count)
                kept.append(without_texts(rows))
            light[split] = pl.concat(kept)
        for split, own in positives.items():
            for place, count, rows in _shards(own, texts, lambda p, t: make_positive_rows(p, t, seed), seed):
                folder.add("positive", split, rows, place, count)
        counts = row_counts(light, most=_NAMED) | dict(statistics)
        files = {
            config: {
                split: f"{CONFIG_FOLDERS[config]}/{split}-*.parquet"
                for split, own in positives.items()
                if own
            }
            for config in ("default", "positive")
        }
        write_parquet(
            detail,
            pl.concat(
                repository_counts(rows).select(pl.lit(split).alias("split"), pl.all())
                for split, rows in light.items()
            ),
        )
        folder.finish(card=finish_card(gis_card(counts, files), counts), statistics=counts, run=run)
    return counts


def _shards(
    pairs: Sequence[Pair], texts: Mapping[IssueRef, IssueText], make: _Make, seed: int
) -> Iterator[tuple[int, int, pl.DataFrame]]:
    """Each shard's place, how many there are, and its rows; one without rows where there are no pairs."""
    ordered = sorted(pairs, key=row_order(seed))
    count = max(1, -(-len(ordered) // ROWS))
    for place in range(count):
        some = ordered[place * ROWS : (place + 1) * ROWS]
        refs = {ref for pair in some for ref in (pair.first, pair.second)}
        yield place, count, make(some, {ref: texts[ref] for ref in refs})
