"""Verdicts as the public functions return and print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gis_builder.detection.detector import read_verdicts
from gis_builder.store.records import VerdictOutcome
from pairkit.app.result_table import Printed, ResultTable

if TYPE_CHECKING:
    import polars as pl


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
