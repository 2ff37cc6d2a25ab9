"""The dataset's folder, some rows of a shard in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gis_builder._archive.pairs import PairsOnDisk
from gis_builder._archive.texts import TextsOnDisk
from gis_builder._card import gis_card
from gis_builder._dataset import (
    POSITIVE_ROWS,
    ROWS,
    counted_columns,
    make_positive_rows,
    make_rows,
    repository_counts,
    row_counts,
)
from gis_builder._deal import Codes
from gis_builder._records import IssueRef, IssueText, Pair
from gis_builder._settings.pairs import SPLITS
from pairkit.connected import Places
from pairkit.errors import DataError
from pairkit.parquet import write_parquet
from pairkit.records import dataset_folder, file_patterns

SHARD = 50_000  # rows
FRAME = 8192  # rows that are in memory at a time
_NAMED = 100  # repositories of a split that the statistics name


def write_archive(
    out: Path,
    splits: Sequence[str],
    pairs: PairsOnDisk,
    split_of: Codes,
    texts: TextsOnDisk,
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
        splits: Those that there are.
        pairs: All positives and negatives.
        split_of: The split of each; (pair,).
        texts: Of every issue that stands in a pair.
        seed: Decides which text of a pair comes first, as it decided the order of rows.
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
    rows_of = {split: pairs.in_row_order(np.flatnonzero(split_of == SPLITS.index(split))) for split in splits}
    positives = {split: own[pairs.positive[own]] for split, own in rows_of.items()}
    if not any(map(len, positives.values())):
        raise DataError(
            "no pairs: no duplicate whose original is in these hours, too, was found; give more hours"
            " (dropped.parquet in the working folder has what was left out)",
            path=out,
        )

    counted = {split: [counted_columns(pl.DataFrame(schema=ROWS))] for split in splits}

    def with_labels(split: str, some: Sequence[Pair], known: Mapping[IssueRef, IssueText]) -> pl.DataFrame:
        rows = make_rows(some, (), known, seed)
        counted[split].append(counted_columns(rows))
        return rows

    def without_labels(_: str, some: Sequence[Pair], known: Mapping[IssueRef, IssueText]) -> pl.DataFrame:
        return make_positive_rows(some, known, seed)

    with dataset_folder(out) as folder:
        for config, of_config, make, schema in (
            ("default", rows_of, with_labels, ROWS),
            ("positive", positives, without_labels, POSITIVE_ROWS),
        ):
            for split, own in of_config.items():
                shards = _parts(own, SHARD)
                for place, shard in enumerate(shards):
                    frames = (
                        make(split, some, texts.of(ref for pair in some for ref in (pair.first, pair.second)))
                        for some in map(pairs.at, _parts(shard, FRAME))
                    )
                    folder.add_frames(config, split, frames, schema, place, len(shards))
        columns = {split: pl.concat(frames) for split, frames in counted.items()}
        counts = row_counts(columns, most=_NAMED) | dict(statistics)
        sizes = {split: len(own) for split, own in positives.items()}
        files = file_patterns({"default": sizes, "positive": sizes})
        write_parquet(
            detail,
            pl.concat(
                repository_counts(rows).select(pl.lit(split).alias("split"), pl.all())
                for split, rows in columns.items()
            ),
        )
        folder.finish(card=finish_card(gis_card(counts, files), counts), statistics=counts, run=run)
    return counts


def _parts(places: Places, size: int) -> list[Places]:
    """Equal parts but for the last; none of nothing."""
    return [places[start : start + size] for start in range(0, len(places), size)]
