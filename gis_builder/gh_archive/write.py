"""The dataset's folder, some rows of a shard in memory at a time, and the card's sections on the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gis_builder.gh_archive.hours import lacks_events
from gis_builder.gh_archive.rows import HourTally
from gis_builder.gh_archive.settle import CombinedBuckets, DrawnNegatives
from gis_builder.pairing.dataset import (
    POSITIVE_ROWS,
    ROWS,
    counted_columns,
    gis_card,
    make_positive_rows,
    make_rows,
    repository_counts,
    row_counts,
)
from gis_builder.settings.pairs import SPLITS
from gis_builder.store.records import IssuePair, IssueRef, IssueText
from pairkit.app.errors import DataError
from pairkit.dataset.card import table, with_section
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.records import dataset_folder, file_patterns
from pairkit.similarity.groups import Places

_SHARD = 50_000  # rows
_FRAME = 8192  # rows that are in memory at a time
_NAMED = 100  # repositories of a split that the statistics name

_SOURCE = """
Issues and comments of all public repositories, as [GH Archive](https://www.gharchive.org) (CC BY 4.0)
recorded their events, in the hours {hours}. GitHub was asked for nothing.

* Each text is that of the issue's last event in these hours; later edits are not known.
* The archive has no marks as duplicate: comments and closings decide.
* An original without an event in these hours makes no pair (`not_fetched` among `dropped_positives`).
* Left out are issues that bots opened ({bots:,}), and repositories with fewer closed issues than
  {min_closed:,}.
{limit}* {excluded:,} repositories and {excluded_issues:,} issues were left out by request.
"""
_COVERAGE = """
{table}
{incomplete}
*Missing* hours are not in the archive or were not given; of an hour that *broke off* the beginning was read.
{without}
"""
_INCOMPLETE = """
**After 2025-05-23 the archive lacks most events.** A duplicate is not in the dataset if its closing, its
closing comment or its original is lost.
"""


def write_archive(
    out: Path,
    combined: CombinedBuckets,
    drawn: DrawnNegatives,
    tallies: Iterable[HourTally],
    hours: Sequence[str],
    *,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
    detail: Path,
) -> dict[str, Any]:
    """Write the folder as `write_gis` does, in shards; `detail` gets the counts of all repositories."""
    pairs, texts, seed = combined.pairs, combined.texts, combined.settings.seed
    splits = list(drawn.missing)
    table = pairs.table.with_columns(split=pl.Series(drawn.split_of)).sort("hash", "first", "second")
    rows_of, positives = {}, {}
    for split in splits:
        rows = table.filter(pl.col("split") == SPLITS.index(split))
        rows_of[split] = rows["place"].to_numpy()
        positives[split] = rows.filter(pl.col("label") == 1)["place"].to_numpy()
    if not any(map(len, positives.values())):
        raise DataError(
            "no pairs: these hours have no duplicate together with its original; give more hours"
            " (dropped.parquet in the working folder has everything that was left out)",
            path=out,
        )
    counted = {split: [counted_columns(pl.DataFrame(schema=ROWS))] for split in splits}

    def with_labels(
        split: str, some: Sequence[IssuePair], known: Mapping[IssueRef, IssueText]
    ) -> pl.DataFrame:
        frame = make_rows(some, (), known, seed)
        counted[split].append(counted_columns(frame))
        return frame

    def without_labels(
        _: str, some: Sequence[IssuePair], known: Mapping[IssueRef, IssueText]
    ) -> pl.DataFrame:
        return make_positive_rows(some, known, seed)

    with dataset_folder(out) as folder:
        for config, of_config, make, schema in (
            ("default", rows_of, with_labels, ROWS),
            ("positive", positives, without_labels, POSITIVE_ROWS),
        ):
            for split, own in of_config.items():
                shards = _parts(own, _SHARD)
                for place, shard in enumerate(shards):
                    frames = (
                        make(split, some, texts.of(ref for pair in some for ref in (pair.first, pair.second)))
                        for some in (pairs.at(part.tolist()) for part in _parts(shard, _FRAME))
                    )
                    folder.add_frames(config, split, frames, schema, place, len(shards))
        columns = {split: pl.concat(frames) for split, frames in counted.items()}
        counts = row_counts(columns, most=_NAMED) | dict(statistics) | {"months": by_month(hours, tallies)}
        sizes = {split: len(own) for split, own in positives.items()}
        card = gis_card(counts, file_patterns({"default": sizes, "positive": sizes}))
        named = (
            repository_counts(rows).select(pl.lit(split).alias("split"), pl.all())
            for split, rows in columns.items()
        )
        write_parquet(detail, pl.concat(named))
        folder.finish(card=with_coverage(card, counts, run["settings"]), statistics=counts, run=run)
    return counts


def _parts(places: Places, size: int) -> list[Places]:
    """Parts of equal size, but for the last."""
    return [places[start : start + size] for start in range(0, len(places), size)]


def by_month(asked: Iterable[str], tallies: Iterable[HourTally]) -> dict[str, dict[str, Any]]:
    """The counts of each month over the hours that were asked for."""
    found = {tally.hour: tally for tally in tallies}
    months: dict[str, list[str]] = {}
    for hour in asked:
        months.setdefault(hour[:7], []).append(hour)
    return {month: _month(hours, found) for month, hours in sorted(months.items())}


def _month(hours: list[str], found: Mapping[str, HourTally]) -> dict[str, Any]:
    rows = [found[hour] for hour in hours if hour in found]
    broken: Counter[str] = Counter()
    for row in rows:
        broken.update(row.broken)
    return {
        "hours": len(hours),
        "missing_hours": [hour for hour in hours if hour not in found],
        "hours_broken_off": {row.hour: row.broke_off for row in rows if row.broke_off},
        "events": sum(row.events for row in rows),
        "issue_events": sum(row.issue_events for row in rows),
        "broken_lines": dict(sorted(broken.items())),
        "events_without_association": sum(row.without_association for row in rows),
    }


def with_coverage(card: str, statistics: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The card with its sections on the archive."""
    limits, hours = settings["limits"], settings["hours"]
    rejected = statistics["rejected_issues"]
    source = _SOURCE.format(
        hours=hours,
        bots=rejected.get("bot_author", 0),
        min_closed=limits["min_closed"],
        limit=f"* No repository gives more than {limits['per_repo_max']:,} positives.\n"
        if limits["per_repo_max"]
        else "",
        excluded=statistics["archive_repositories"].get("excluded", 0),
        excluded_issues=rejected.get("excluded", 0),
    )
    coverage = _coverage(statistics["months"], lacking=lacks_events(hours))
    return with_section(with_section(card, "Source", source), "Coverage", coverage)


def _coverage(months: Mapping[str, Mapping[str, Any]], *, lacking: bool) -> str:
    rows = [
        (
            name,
            month["hours"],
            len(month["missing_hours"]),
            len(month["hours_broken_off"]),
            sum(month["broken_lines"].values()),
            month["events"],
        )
        for name, month in months.items()
    ]
    heads = ["month", "hours", "missing", "broke off", "broken lines", "events"]
    without = sum(month["events_without_association"] for month in months.values())
    return _COVERAGE.format(
        table=table(heads, rows),
        incomplete=_INCOMPLETE if lacking else "",
        without=(
            f"\n{without:,} events lack what their author is to the repository; for them, the owner and"
            " everyone who pushed to it count as members."
            if without
            else ""
        ),
    )
