"""What `gis` prints at the end: tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from gis_builder._build import Built, total
from gis_builder._store import RepoOutcome, RepoRow, Store


def counts_table(built: Built) -> Table:
    """The papers' Table 7: positives, negatives and long texts by split."""
    splits = built.statistics["splits"]
    table = Table(box=box.SIMPLE_HEAD, title=Text(str(built.out)), title_justify="left")
    table.add_column("pairs")
    for name in (*splits, "all"):
        table.add_column(name, justify="right")
    for key in ("positive", "negative", "total"):
        counts = [split[key] for split in splits.values()]
        table.add_row(key, *(f"{count:,}" for count in counts), f"{sum(counts):,}")
    long = [split["long_share"] for split in splits.values()]
    totals = [split["total"] for split in splits.values()]
    share = sum(a * b for a, b in zip(long, totals, strict=True)) / max(1, sum(totals))
    table.add_row("> 512 tokens", *(f"{value:.0%}" for value in long), f"{share:.0%}")
    return table


def drop_lines(statistics: Mapping[str, object]) -> list[str]:
    """One line for each stage that left something out, with its reasons."""
    lines = []
    for key in ("rejected_issues", "dropped_positives", "dropped_negatives", "missing_negatives"):
        reasons = statistics.get(key)
        if isinstance(reasons, dict) and reasons:
            lines.append(f"{key.replace('_', ' ')}: " + ", ".join(f"{r} {n:,}" for r, n in reasons.items()))
    return lines


def outcome_lines(rows: Iterable[RepoRow]) -> list[str]:
    """One line for each repository that was not simply crawled."""
    return [
        f"{row.name}: {row.outcome.value.replace('_', ' ')}"
        + (
            f" to {row.full_name}"
            if row.outcome is RepoOutcome.RENAMED
            else f" ({row.detail})"
            if row.detail
            else ""
        )
        for row in rows
        if row.outcome is not RepoOutcome.OK
    ]


def spent_line(store: Store) -> str:
    """What a store's crawl has cost so far, in all its runs."""
    spent = total(store.usage())
    return f"{spent.points:,} points in {spent.requests:,} requests so far"


def verdicts_table(counts: Mapping[str, Mapping[str, int]]) -> Table:
    """How many issues got each verdict, by reason."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("verdict")
    table.add_column("reason")
    table.add_column("issues", justify="right")
    for outcome, reasons in counts.items():
        for place, (reason, count) in enumerate(sorted(reasons.items(), key=lambda item: -item[1])):
            table.add_row(outcome if place == 0 else "", reason, f"{count:,}")
    return table
