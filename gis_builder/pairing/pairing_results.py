"""Results of `build`, `pair`, `archive` and `render`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gis_builder.crawling.status import outcome_lines
from gis_builder.detection.verdict_files import cross_repository_notes
from gis_builder.store import RepoRow, Usage
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.system.machine import peak_rss_mb
from pairkit.similarity.measures import backbone_for, train_command

if TYPE_CHECKING:
    from pairkit import AuditReport, PairDataset

Months = Mapping[str, Mapping[str, Any]]
"""Counts of GH Archive by month, as in statistics.json."""

DROPPED_FILE = "dropped.parquet"  # of a working folder
COVERAGE_COLUMNS = ("month", "hours", "missing", "truncated", "broken lines", "events")
# The counts of `statistics.json` whose issues and pairs are in DROPPED_FILE.
_LISTED = ("rejected_issues", "dropped_positives", "dropped_negatives")


@dataclass(frozen=True, repr=False)
class _DatasetResult(Printed):
    """What all finished datasets have in common."""

    out: Path
    work: Path
    statistics: dict[str, Any]
    audit: AuditReport
    seconds: float

    @cached_property
    def pairs(self) -> PairDataset:
        """The pairs, read on first access."""
        from pairkit import read

        return read(self.out)

    @property
    def positives(self) -> int:
        """Number of positive pairs in all splits."""
        return self._sum("positive")

    @property
    def negatives(self) -> int:
        """Number of negative pairs in all splits."""
        return self._sum("negative")

    def table(self) -> ResultTable:
        """The papers' Table 7: positives, negatives and long texts by split."""
        splits = self.statistics["splits"]
        table = ResultTable("pairs", *splits, "all", title=str(self.out))
        for key in ("positive", "negative", "total"):
            counts = [split[key] for split in splits.values()]
            table.add_row(key, *counts, sum(counts))
        shares = [split["long_share"] for split in splits.values()]
        long = sum(split["long_share"] * split["total"] for split in splits.values())
        shares.append(long / max(1, self._sum("total")))
        table.add_row("> 512 tokens", *(f"{share:.0%}" for share in shares))
        return table

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command that trains on the dataset."""
        return [("train on it", train_command(self.out))]

    def __repr__(self) -> str:
        return f"{self.table()}\n{self._summary()}"

    def _summary(self) -> str:
        """The last line: the effort or the coverage, and the audit."""
        raise NotImplementedError

    def _counts(self) -> dict[str, object]:
        splits = self.statistics["splits"]
        sizes = {name: split["total"] for name, split in splits.items()}
        return {
            "out": str(self.out),
            "positives": self.positives,
            "negatives": self.negatives,
            **{name: sizes.get(name, 0) for name in ("train", "validation", "test")},
        }

    def _effort(self) -> dict[str, object]:
        return {"seconds": round(self.seconds, 3), "peak_rss_mb": peak_rss_mb()}

    def _sum(self, key: str) -> int:
        return sum(split[key] for split in self.statistics["splits"].values())


@dataclass(frozen=True, repr=False)
class Built(_DatasetResult):
    """A finished dataset.

    Attributes:
        out: Its folder.
        work: The folder of the crawl and its verdicts.
        statistics: All counts, as in statistics.json.
        audit: The report of the audit, which found no leaks.
        seconds: The duration of this run.
        repositories: The outcome of each repository.
        usage: The cost of the crawl over all runs.
    """

    repositories: Sequence[RepoRow]
    usage: Usage

    @property
    def points_per_100_positives(self) -> float:
        """GraphQL points per hundred positives."""
        return 100 * self.usage.points / self.positives

    def to_dict(self) -> dict[str, Any]:
        """The result as one flat object for scripts."""
        cost = {"points": self.usage.points, "requests": self.usage.requests}
        return self._counts() | cost | self._effort()

    def notes(self) -> list[str]:
        """Counts of rejected data by reason, and the cost of the crawl; one line each."""
        return [
            *outcome_lines(self.repositories),
            *cross_repository_notes(self.statistics["verdicts"]),
            *_drop_lines(self.statistics, self.work),
            self._summary(),
        ]

    def _summary(self) -> str:
        if not self.usage.requests:
            return "audit: no leaks"
        return (
            f"{self.usage.points:,} points in {self.usage.requests:,} requests, "
            f"{self.points_per_100_positives:.1f} points per 100 positives; audit: no leaks"
        )


def coverage(months: Months) -> str:
    """The events and losses of the requested hours."""
    total = Counter[str]()
    for month in months.values():
        total["events"] += month["issue_events"]
        total["hours"] += month["hours"]
        total.update(_losses(month))
    return (
        f"{total['events']:,} events of issues in {total['hours'] - total['missing']:,} hours;"
        f" {total['missing']:,} hours missing, {total['truncated']:,} truncated,"
        f" {total['broken lines']:,} broken lines"
    )


def coverage_rows(months: Months) -> Iterator[tuple[str | int, ...]]:
    """The values of `COVERAGE_COLUMNS` of each month."""
    for name, month in months.items():
        yield name, month["hours"], *_losses(month).values(), month["events"]


def _losses(month: Mapping[str, Any]) -> dict[str, int]:
    """Number of missing and truncated hours and of broken lines, in the order of `COVERAGE_COLUMNS`."""
    return {
        "missing": len(month["missing_hours"]),
        "truncated": len(month["hours_broken_off"]),
        "broken lines": sum(month["broken_lines"].values()),
    }


@dataclass(frozen=True, repr=False)
class HoursRead(Printed):
    """Hours of GH Archive whose rows are in the working folder, so that their files can be deleted.

    Attributes:
        work: The folder with the rows.
        months: Counts by month over the requested hours: hours, events, broken lines.
    """

    work: Path
    months: Months

    def to_dict(self) -> dict[str, Any]:
        """The counts by month as one object for scripts."""
        return {"work": str(self.work), "months": self.months}

    def notes(self) -> list[str]:
        """The events and losses of all hours."""
        return [coverage(self.months)]

    def table(self) -> ResultTable:
        """The events and losses of each month."""
        table = ResultTable(*COVERAGE_COLUMNS)
        for row in coverage_rows(self.months):
            table.add_row(*row)
        return table


@dataclass(frozen=True, repr=False)
class ArchiveBuilt(_DatasetResult):
    """A finished dataset from GH Archive.

    Attributes:
        out: Its folder.
        work: The folder with the results of the tasks and a list of all rejected data.
        statistics: All counts, as in statistics.json.
        audit: The report of the audit, which found no leaks.
        seconds: The duration of this run.
    """

    @property
    def months(self) -> Months:
        """Counts by month over the requested hours: hours, events, broken lines."""
        months: Months = self.statistics["months"]
        return months

    def to_dict(self) -> dict[str, Any]:
        """The result as one flat object for scripts."""
        hours = sum(month["hours"] for month in self.months.values())
        return self._counts() | {"hours": hours} | self._effort()

    def notes(self) -> list[str]:
        """Counts of rejected data by reason, and the coverage of the hours; one line each."""
        return [*_drop_lines(self.statistics, self.work), self._summary()]

    def _summary(self) -> str:
        return f"{coverage(self.months)}; audit: no leaks"


@dataclass(frozen=True, repr=False)
class Rendered(Printed):
    """All issues of a crawl or import as a table of texts.

    Attributes:
        out: Its file, with the columns that `render` lists.
        counts: Number of `written` issues, and of rejected issues by reason.
    """

    out: Path
    counts: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The counts as one object for scripts."""
        return {"out": str(self.out), **self.counts}

    def table(self) -> ResultTable:
        """The counts."""
        table = ResultTable("issues", "number")
        for name, count in Counter(self.counts).most_common():
            table.add_row(name, count)
        return table

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to index the texts."""
        from pairkit.dataset.reading.tables import read_table

        backbone = backbone_for(read_table(self.out)["text"].to_list())
        command = ["aoe", "index", str(self.out), "--model", backbone, "--out", "index"]
        return [("index them, to search and to find duplicates", command)]


def _drop_lines(statistics: Mapping[str, Any], work: Path) -> list[str]:
    """A line with reasons for each stage that rejected data, and the path of the full list."""
    lines = []
    for stage in (*_LISTED, "missing_negatives"):
        counts = [f"{name} {count:,}" for name, count in statistics[stage].items()]
        if counts:
            lines.append(f"{stage.replace('_', ' ')}: {', '.join(counts)}")
    if any(statistics[stage] for stage in _LISTED):
        lines.append(f"list of rejected issues and pairs: {work / DROPPED_FILE}")
    return lines
