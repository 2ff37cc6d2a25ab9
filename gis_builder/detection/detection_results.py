"""Results of `detect` and `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gis_builder.detection.verdict_files import read_verdicts
from gis_builder.store import VerdictOutcome
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.cli.terminal import CommandResult

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False)
class Detected(Printed):
    """The verdicts of a working folder.

    Attributes:
        out: The file of verdicts.
        counts: Number of issues by verdict and reason.
        judged_anew: Number of threads judged in this run; the other verdicts were reused.
    """

    out: Path
    counts: Mapping[str, Mapping[str, int]]
    judged_anew: int

    @property
    def duplicates(self) -> int:
        """Number of duplicates."""
        return sum(self.counts.get(VerdictOutcome.DUPLICATE.value, {}).values())

    @property
    def verdicts(self) -> pl.DataFrame:
        """A row for each issue: verdict, targets, confidence, reason, evidence."""
        return read_verdicts(self.out)

    def to_dict(self) -> dict[str, Any]:
        """The counts as one object for scripts."""
        return {"out": str(self.out), **self.counts}

    def notes(self) -> list[str]:
        """A line on duplicates of issues in other repositories, if they are not accepted."""
        return cross_repository_notes(self.counts)

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command to run after detection, if there are duplicates."""
        if not self.duplicates:
            return []
        pair = ["gis", "pair", "--work", str(self.out.parent), "--out", "gis-dataset"]
        return [("make a dataset from the duplicates", pair)]

    def table(self) -> ResultTable:
        """Number of issues by verdict and reason."""
        table = ResultTable("verdict", "reason", "issues", left=("reason",))
        for outcome, reasons in self.counts.items():
            for row, (reason, count) in enumerate(
                sorted(reasons.items(), key=lambda item: -item[1])
            ):
                table.add_row("" if row else outcome, reason, count)
        return table


def cross_repository_notes(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line on the verdicts that only a setting rejects."""
    count = counts.get("uncertain", {}).get("cross_repository")
    if not count:
        return []
    return [
        f"{count:,} closed issues name an original in another repository, so they are uncertain;"
        " --set detect.allow_cross_repository=true makes them duplicates"
    ]


@dataclass(frozen=True, repr=False)
class Explanation(CommandResult):
    """Why an issue is or is not a duplicate.

    Attributes:
        issue: `owner/name#number`.
        outcome: `duplicate`, `not` or `uncertain`.
        targets: The canonical issues, or the likely ones if the outcome is `uncertain`.
        confidence: The detector's score in [0, 1]: a rank, not a probability.
        reason: A short code, as counted in statistics.json.
        text: The evidence with its weights in order of time, and the verdict.
    """

    issue: str
    outcome: str
    targets: tuple[str, ...]
    confidence: float
    reason: str
    text: str

    def tables(self) -> list[str]:
        """The evidence and the verdict."""
        return [self.text]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: all fields."""
        return {**vars(self), "targets": list(self.targets)}

    def __repr__(self) -> str:
        return self.text
