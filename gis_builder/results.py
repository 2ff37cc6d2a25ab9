"""Results of the public functions, which know how they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gis_builder.crawling.status import Status, outcome_lines
from gis_builder.detection.detector import read_verdicts
from gis_builder.store import RepoOutcome, RepoRow, Usage
from gis_builder.store.records import VerdictOutcome
from pairkit.app.errors import RemoteError
from pairkit.app.result_table import Printed, ResultTable
from pairkit.system.machine import peak_rss_mb

if TYPE_CHECKING:
    import polars as pl

    from pairkit import AuditReport, PairDataset

DROPPED_FILE = "dropped.parquet"  # of a working folder


@dataclass(frozen=True, repr=False)
class _Dataset(Printed):
    """A finished dataset, whatever it was made from."""

    out: Path
    work: Path
    statistics: dict[str, Any]
    audit: AuditReport
    seconds: float

    @cached_property
    def pairs(self) -> PairDataset:
        """The pairs, read when they are first asked for."""
        from pairkit import read

        return read(self.out)

    @property
    def positives(self) -> int:
        """Positive pairs in all splits."""
        return self._sum("positive")

    @property
    def negatives(self) -> int:
        """Negative pairs in all splits."""
        return self._sum("negative")

    def table(self) -> ResultTable:
        """The papers' Table 7: positives, negatives and long texts by split."""
        splits = self.statistics["splits"]
        counts = ResultTable("pairs", *splits, "all", title=str(self.out))
        for key in ("positive", "negative", "total"):
            counts.add_row(key, *(split[key] for split in splits.values()), self._sum(key))
        long = sum(split["long_share"] * split["total"] for split in splits.values())
        shares = [*(split["long_share"] for split in splits.values()), long / max(1, self._sum("total"))]
        counts.add_row("> 512 tokens", *(f"{share:.0%}" for share in shares))
        return counts

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to train on it."""
        train = ["aoe", "train", "--data", str(self.out), "--backbone", "minilm", "--out", "model"]
        return [("train on it", train)]

    def _counts(self) -> dict[str, Any]:
        sizes = {name: split["total"] for name, split in self.statistics["splits"].items()}
        return {
            "out": str(self.out),
            "positives": self.positives,
            "negatives": self.negatives,
            **{name: sizes.get(name, 0) for name in ("train", "validation", "test")},
        }

    def _effort(self) -> dict[str, Any]:
        return {"seconds": round(self.seconds, 3), "peak_rss_mb": peak_rss_mb()}

    def _sum(self, key: str) -> int:
        return sum(split[key] for split in self.statistics["splits"].values())


@dataclass(frozen=True, repr=False)
class Built(_Dataset):
    """A finished dataset.

    Attributes:
        out: Its folder.
        work: The folder of the crawl and its verdicts.
        statistics: All counts, as in statistics.json.
        audit: What the audit found; a dataset that leaks is never returned.
        seconds: How long this run took.
        repositories: What became of each repository.
        usage: What the crawl cost in all its runs.
    """

    repositories: Sequence[RepoRow]
    usage: Usage

    @property
    def points_per_100_positives(self) -> float:
        """What a hundred positives cost, in GraphQL points."""
        return 100 * self.usage.points / self.positives

    def to_dict(self) -> dict[str, Any]:
        """The result as one flat object for scripts."""
        cost = {"points": self.usage.points, "requests": self.usage.requests}
        return self._counts() | cost | self._effort()

    def notes(self) -> list[str]:
        """What was left out and why, and what the crawl cost; a line each."""
        return [*outcome_lines(self.repositories), *_drop_lines(self.statistics, self.work), self._cost()]

    def _cost(self) -> str:
        return (
            f"{self.usage.points:,} points in {self.usage.requests:,} requests, "
            f"{self.points_per_100_positives:.1f} points for 100 positives; audit: no leaks"
        )

    def __repr__(self) -> str:
        return f"{self.table()}\n{self._cost()}"


@dataclass(frozen=True, repr=False)
class ArchiveBuilt(_Dataset):
    """A finished dataset from GH Archive.

    Attributes:
        out: Its folder.
        work: The folder with the results of the tasks, and with a list of everything that was left out.
        statistics: All counts, as in statistics.json.
        audit: What the audit found; a dataset that leaks is never returned.
        seconds: How long this run took.
    """

    @property
    def months(self) -> Mapping[str, Mapping[str, Any]]:
        """The counts of each month over the hours asked for: hours, events, broken lines."""
        found: Mapping[str, Mapping[str, Any]] = self.statistics["months"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """The result as one flat object for scripts."""
        return self._counts() | {"hours": self._of_months("hours")} | self._effort()

    def notes(self) -> list[str]:
        """What was left out and why, and how much of the hours there was; a line each."""
        return [*_drop_lines(self.statistics, self.work), self._read()]

    def _read(self) -> str:
        missing = sum(len(month["missing_hours"]) for month in self.months.values())
        broken = sum(sum(month["broken_lines"].values()) for month in self.months.values())
        broke_off = sum(len(month["hours_broken_off"]) for month in self.months.values())
        return (
            f"{self._of_months('issue_events'):,} events of issues in {self._of_months('hours') - missing:,}"
            f" hours; {missing:,} hours missing, {broke_off:,} broken off, {broken:,} broken lines;"
            " audit: no leaks"
        )

    def _of_months(self, key: str) -> int:
        return sum(month[key] for month in self.months.values())

    def __repr__(self) -> str:
        return f"{self.table()}\n{self._read()}"


@dataclass(frozen=True, repr=False)
class Crawled:
    """What a crawl, or an import, brought into its working folder.

    Attributes:
        work: The folder.
        repositories: What became of each repository that was asked for.
        status: How far the folder's crawl is, and what it cost in all its runs.
    """

    work: Path
    repositories: Sequence[RepoRow]
    status: Status

    def to_dict(self) -> dict[str, Any]:
        """What was brought, and its cost, as one object for scripts."""
        outcomes = Counter(row.outcome.value for row in self.repositories)
        return {
            "repositories": len(self.repositories),
            "outcomes": dict(sorted(outcomes.items())),
            **self.status.totals({row.name for row in self.repositories}),
            "warnings": len(self.status.warnings),
        }

    def notes(self) -> list[str]:
        """The repositories that were not simply crawled, and what all of it cost; a line each."""
        spent = self.status.usage
        cost = f"{spent.points:,} points in {spent.requests:,} requests so far"
        return [*outcome_lines(self.repositories), cost]

    def tables(self) -> list[ResultTable]:
        """None: `gis status` shows them."""
        return []

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """What comes after a crawl."""
        return [("find the duplicates", ["gis", "detect", "--work", str(self.work)])]

    def __repr__(self) -> str:
        return repr(self.status)

    def _repr_html_(self) -> str:
        return self.status._repr_html_()


class IncompleteCrawlError(RemoteError):
    """Some repositories failed; what was fetched is kept, and the same call continues.

    Attributes:
        crawled: What became of all of them.
    """

    def __init__(self, crawled: Crawled) -> None:
        self.crawled = crawled
        failed = [row for row in crawled.repositories if row.outcome is RepoOutcome.FAILED]
        super().__init__(
            f"{len(failed)} of {len(crawled.repositories)} repositories failed, the first {failed[0].name} "
            f"({failed[0].detail}); what was fetched is kept: run the same command again to continue"
        )


@dataclass(frozen=True, repr=False)
class Detected(Printed):
    """The verdicts of a working folder.

    Attributes:
        out: Their file.
        counts: How many issues got each verdict for each reason.
        judged_anew: How many threads were judged now; of the others the verdicts were kept.
    """

    out: Path
    counts: Mapping[str, Mapping[str, int]]
    judged_anew: int

    @property
    def duplicates(self) -> int:
        """How many issues were closed as duplicates."""
        return sum(self.counts.get(VerdictOutcome.DUPLICATE.value, {}).values())

    @property
    def verdicts(self) -> pl.DataFrame:
        """A row for each issue: verdict, targets, confidence, reason, evidence."""
        return read_verdicts(self.out)

    def to_dict(self) -> dict[str, Any]:
        """The counts as one object for scripts."""
        return {"out": str(self.out), **self.counts}

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """What comes after detection."""
        pair = ["gis", "pair", "--work", str(self.out.parent), "--out", "gis-dataset"]
        return [("make a dataset from them", pair)]

    def table(self) -> ResultTable:
        """How many issues got each verdict, by reason."""
        counts = ResultTable("verdict", "reason", "issues", left=("reason",))
        for outcome, reasons in self.counts.items():
            for place, (reason, count) in enumerate(sorted(reasons.items(), key=lambda item: -item[1])):
                counts.add_row("" if place else outcome, reason, count)
        return counts


@dataclass(frozen=True, repr=False)
class Rendered(Printed):
    """All issues of a crawl as a table of texts.

    Attributes:
        out: Its file: id, repo, number, url, text, created_at.
        counts: How many issues were `written`, and how many left out, by reason.
    """

    out: Path
    counts: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The counts as one object for scripts."""
        return {"out": str(self.out), **self.counts}

    def table(self) -> ResultTable:
        """The counts."""
        counts = ResultTable("issues", "number")
        for name, count in sorted(self.counts.items(), key=lambda item: -item[1]):
            counts.add_row(name, count)
        return counts


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why an issue is, or is not, a duplicate.

    Attributes:
        issue: `owner/name#number`.
        outcome: `duplicate`, `not` or `uncertain`.
        targets: The issues that it is a duplicate of, or likely is.
        confidence: The detector's, in [0, 1]: a rank, not a probability.
        reason: A short code, as it is counted in statistics.json.
        text: The evidence in order of time, what each piece counts for, and the verdict, in words.
    """

    issue: str
    outcome: str
    targets: tuple[str, ...]
    confidence: float
    reason: str
    text: str

    def __repr__(self) -> str:
        return self.text


def _drop_lines(statistics: Mapping[str, object], work: Path) -> list[str]:
    """One line for each stage that left something out, with its reasons; and where they are listed."""
    lines = {
        key: f"{key.replace('_', ' ')}: {', '.join(f'{reason} {n:,}' for reason, n in reasons.items())}"
        for key in ("rejected_issues", "dropped_positives", "dropped_negatives", "missing_negatives")
        if isinstance(reasons := statistics.get(key), dict) and reasons
    }
    if lines.keys() - {"missing_negatives"}:
        lines["list"] = f"each issue and pair that was left out: {work / DROPPED_FILE}"
    return list(lines.values())
