"""Writes the dataset in shards, with part of a shard in memory, and the card's sections on the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from gis_builder.gh_archive.archive_rows import HourTally
from gis_builder.gh_archive.combined_buckets import CombinedBuckets
from gis_builder.gh_archive.extract import LAST_COMPLETE, lacks_events
from gis_builder.gh_archive.settle import DrawnNegatives
from gis_builder.pairing.pair_folder import (
    POSITIVE_ROWS,
    ROWS,
    counted_columns,
    gis_card,
    make_positive_rows,
    make_rows,
    repository_counts,
    row_counts,
)
from gis_builder.pairing.pairing_results import (
    COVERAGE_COLUMNS,
    coverage,
    coverage_rows,
)
from gis_builder.settings import SPLITS
from gis_builder.store import IssuePair, IssueRef, IssueText
from pairkit.base.errors import DataError
from pairkit.dataset.making.dataset_folder import (
    DatasetFolder,
    card_files,
    dataset_folder,
    table,
    with_section,
)
from pairkit.dataset.table_files import write_parquet
from pairkit.similarity.groups import Indices

_SHARD_ROWS = 50_000
_FRAME_ROWS = 8192  # in memory
_SCHEMAS = {"default": ROWS, "positive": POSITIVE_ROWS}
_MAX_NAMED = 100  # repositories of a split in the statistics

Texts: TypeAlias = Mapping[IssueRef, IssueText]
MakeRows: TypeAlias = Callable[[Sequence[IssuePair], Texts, int], pl.DataFrame]

_SOURCE = """
Issues and comments of all public repositories from [GH Archive](https://www.gharchive.org) (CC BY 4.0) in the
hours {hours}. No request was sent to GitHub.

* Each text is from the issue's last event in these hours; later edits are not included.
* The archive has no duplicate marks: verdicts are based on comments and closings.
* A duplicate whose original has no event in these hours is dropped (`not_fetched` in `dropped_positives`).
* Issues opened by bots ({bots:,}) and repositories with fewer than {min_closed:,} closed issues are excluded.
{limit}* {excluded:,} repositories and {excluded_issues:,} issues were excluded by request.
"""
_COVERAGE = """
{table}
{incomplete}
*Missing* hours are not in the archive or had no file. Of a *truncated* hour, only the beginning was read.
{without}
"""
_INCOMPLETE = """
**After {last_complete} the archive lacks most events.** A duplicate is missing from the dataset if its closing,
its closing comment or its original is missing from the archive.
"""


def write_archive(
    out: Path,
    combined: CombinedBuckets,
    drawn: DrawnNegatives,
    tallies: Iterable[HourTally],
    hours: Sequence[str],
    *,
    statistics: Mapping[str, object],
    run: Mapping[str, Any],
    detail: Path,
) -> dict[str, object]:
    """Write the dataset like `write_gis`, but in shards; `detail` gets the counts of all repositories."""
    months = by_month(hours, tallies)
    rows, positives = _ordered_rows(combined.pairs.table, drawn)
    if not any(map(len, positives.values())):
        raise DataError(
            "no pairs: these hours contain no duplicate with its original"
            f" ({coverage(months)}); add hours (dropped.parquet in the"
            " working folder lists the dropped issues and pairs)",
            path=out,
        )
    with dataset_folder(out) as folder:
        columns = {}
        for split, indices in rows.items():
            counted = [counted_columns(pl.DataFrame(schema=ROWS))]
            make = partial(_counted_rows, counted)
            _write_shards(folder, "default", split, combined, indices, make)
            columns[split] = pl.concat(counted)
            indices = positives[split]
            _write_shards(
                folder, "positive", split, combined, indices, make_positive_rows
            )
        counts = row_counts(columns, max_repositories=_MAX_NAMED)
        counts |= statistics
        counts["months"] = months
        sizes = {split: len(indices) for split, indices in positives.items()}
        card = gis_card(counts, card_files({"default": sizes, "positive": sizes}))
        folder.finish(
            card=with_coverage(card, counts, run["settings"]),
            statistics=counts,
            run=run,
        )
    by_repository = [
        repository_counts(frame).select(pl.lit(split).alias("split"), pl.all())
        for split, frame in columns.items()
    ]
    write_parquet(detail, pl.concat(by_repository))
    return counts


def _ordered_rows(
    pairs: pl.DataFrame, drawn: DrawnNegatives
) -> tuple[dict[str, Indices], dict[str, Indices]]:
    """The indices of all pairs and of the positives of each split, in the order of its rows."""
    ordered = pairs.with_columns(split=pl.Series(drawn.split_of))
    ordered = ordered.sort("hash", "first", "second")
    rows = {}
    positives = {}
    for split in drawn.missing:
        own = ordered.filter(pl.col("split") == SPLITS.index(split))
        rows[split] = own["place"].to_numpy()
        positives[split] = own.filter(pl.col("label") == 1)["place"].to_numpy()
    return rows, positives


def _counted_rows(
    counted: list[pl.DataFrame], pairs: Sequence[IssuePair], texts: Texts, seed: int
) -> pl.DataFrame:
    """The rows of pairs; adds their counted columns to `counted`."""
    frame = make_rows(pairs, texts, seed)
    counted.append(counted_columns(frame))
    return frame


def _write_shards(
    folder: DatasetFolder,
    config: str,
    split: str,
    combined: CombinedBuckets,
    indices: Indices,
    make: MakeRows,
) -> None:
    """Write the pairs at these indices shard by shard."""
    shards = _chunks(indices, _SHARD_ROWS)
    for number, shard in enumerate(shards):
        frames = _frames(combined, shard, make)
        folder.add_frames(config, split, frames, _SCHEMAS[config], number, len(shards))


def _frames(
    combined: CombinedBuckets, shard: Indices, make: MakeRows
) -> Iterator[pl.DataFrame]:
    """The rows of a shard, as many at once as fit in memory."""
    for part in _chunks(shard, _FRAME_ROWS):
        pairs = combined.pairs.at(part.tolist())
        refs = (ref for pair in pairs for ref in (pair.first, pair.second))
        yield make(pairs, combined.texts.of(refs), combined.settings.seed)


def _chunks(places: Indices, size: int) -> list[Indices]:
    """Split into chunks of equal size; the last may be smaller."""
    starts = range(0, len(places), size)
    return [places[start : start + size] for start in starts]


def by_month(
    hours: Iterable[str], tallies: Iterable[HourTally]
) -> dict[str, dict[str, object]]:
    """The counts of each month over these hours."""
    tally_of = {tally.hour: tally for tally in tallies}
    months: dict[str, list[str]] = {}
    for hour in hours:
        months.setdefault(hour[:7], []).append(hour)
    return {
        month: _month(hours_of_month, tally_of)
        for month, hours_of_month in sorted(months.items())
    }


def _month(hours: list[str], tally_of: Mapping[str, HourTally]) -> dict[str, object]:
    tallies = [tally_of[hour] for hour in hours if hour in tally_of]
    broken = Counter[str]()
    for tally in tallies:
        broken.update(tally.broken)
    return {
        "hours": len(hours),
        "missing_hours": [hour for hour in hours if hour not in tally_of],
        "hours_broken_off": {
            tally.hour: tally.broke_off for tally in tallies if tally.broke_off
        },
        "events": sum(tally.events for tally in tallies),
        "issue_events": sum(tally.issue_events for tally in tallies),
        "broken_lines": dict(sorted(broken.items())),
        "events_without_association": sum(
            tally.without_association for tally in tallies
        ),
    }


def with_coverage(
    card: str, statistics: Mapping[str, Any], settings: Mapping[str, Any]
) -> str:
    """Add the sections on the archive to the card."""
    limits = settings["limits"]
    hours = settings["hours"]
    rejected = statistics["rejected_issues"]
    limit = ""
    if limits["per_repo_max"]:
        limit = f"* No repository has more than {limits['per_repo_max']:,} positives.\n"
    source = _SOURCE.format(
        hours=hours,
        bots=rejected.get("bot_author", 0),
        min_closed=limits["min_closed"],
        limit=limit,
        excluded=statistics["archive_repositories"].get("excluded", 0),
        excluded_issues=rejected.get("excluded", 0),
    )
    coverage = _coverage(statistics["months"], lacking=lacks_events(hours))
    return with_section(with_section(card, "Source", source), "Coverage", coverage)


def _coverage(months: Mapping[str, Mapping[str, Any]], *, lacking: bool) -> str:
    count = sum(month["events_without_association"] for month in months.values())
    without = ""
    if count:
        without = (
            f"\n{count:,} events lack the author's association with the repository; for them, the owner and"
            " everyone who pushed to it count as members."
        )
    incomplete = ""
    if lacking:
        incomplete = _INCOMPLETE.format(last_complete=LAST_COMPLETE.date())
    return _COVERAGE.format(
        table=table(COVERAGE_COLUMNS, coverage_rows(months)),
        incomplete=incomplete,
        without=without,
    )
