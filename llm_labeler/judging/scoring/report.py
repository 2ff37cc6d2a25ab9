"""What scoring found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from llm_labeler.judging.ensemble import Judges
from llm_labeler.judging.scoring.gold import Finding
from llm_labeler.records import Polarity
from pairkit.app.result_table import ResultTable
from pairkit.dataset.labels import LabelsRead, worth_telling

_HEADER = ("", "n", "precision", "95 %", "recall", "F1", "kappa", "kept", "spearman")


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """How well one LLM or strategy tells one polarity; None where a figure is undefined.

    Attributes:
        by: What `name` is.
        name: An LLM or a strategy.
        polarity: `positive`: the pairs that it says mean the same; `negative`: those that it says don't.
        n: How many it says that of.
        precision: Share of them on which people agree.
        interval: Wilson's 95 % interval of `precision`.
        recall: Share found of those on which people say so; of an LLM among what it proposed itself, of a
            strategy among all candidates with a gold label, so that what it turned down counts as missed.
        f1: Their harmonic mean.
        kept: Candidates that it gives a label, of both polarities.
        candidates: Those that it might have given one.
        kappa: Cohen's kappa with people over what it kept, of both polarities.
        spearman: Of its labels and people's over the same; only where people's are graded.
    """

    by: Literal["llm", "strategy"]
    name: str
    polarity: Polarity
    n: int
    precision: float | None
    interval: tuple[float, float] | None
    recall: float | None
    f1: float | None
    kept: int
    candidates: int
    kappa: float | None
    spearman: float | None

    def cells(self) -> tuple[str, ...]:
        """The row for people, see `ScoreReport.table`."""
        interval = "-" if self.interval is None else "{:.2f}-{:.2f}".format(*self.interval)
        figures = (self.recall, self.f1, self.kappa)
        return (
            *(f"{self.name}, {self.polarity}", f"{self.n:,}", _figure(self.precision), interval),
            *(*map(_figure, figures), f"{self.kept:,}/{self.candidates:,}", _figure(self.spearman)),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ScoreReport:
    """Labels compared with people's.

    Attributes:
        rows: Two for each LLM and each strategy, one for each polarity.
        gold: Different gold pairs; those with several labels are not among them.
        found: Those of them that at least one candidate matches.
        not_found: The rest.
        contradictory: Gold pairs with several labels, left out.
        repeated: Gold rows that repeat an earlier one, left out.
        graded: Whether people's labels are graded.
        threshold: The least of them that counts as the same.
        skipped: Strategies that could not be computed, each with why.
        judges: What was estimated of the judges; None: there are no votes.
        labels: What was made of people's labels, and how many rows were left out by which.
    """

    rows: tuple[ScoreRow, ...]
    gold: int
    found: int
    not_found: Finding
    contradictory: Finding
    repeated: int
    graded: bool
    threshold: float
    skipped: Mapping[str, str]
    judges: Judges | None
    labels: LabelsRead | None = None

    def table(self) -> ResultTable:
        """The rows, LLMs before strategies; `-` stands for an undefined figure."""
        headings = _HEADER if self.graded else _HEADER[:-1]
        found = ResultTable(*headings, caption="\n".join(self.remarks()))
        for place, row in enumerate(self.rows):
            if place and row.by != self.rows[place - 1].by:
                found.add_rule()
            found.add_row(*row.cells()[: len(headings)])
        return found

    def remarks(self) -> list[str]:
        """How many gold pairs were found, what was not computed, and examples of what is odd."""
        findings = {"not found": self.not_found, "contradictory": self.contradictory}
        return [
            f"{self.found:,} of {self.gold:,} gold pairs are candidates; from {self.threshold:g} on they mean"
            " the same",
            *filter(None, [worth_telling(self.labels)]),
            *(f"{strategy}: not computed, {why}" for strategy, why in self.skipped.items()),
            *(
                f"{finding.count:,} gold pairs {name}, such as {finding.examples[0]}"
                for name, finding in findings.items()
                if finding.count
            ),
        ]

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
