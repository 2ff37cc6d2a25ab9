"""What a labelling run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from llm_labeler.judging.judges import Judges
from llm_labeler.runs.asking import Asked
from llm_labeler.store.budget import Spending, money
from llm_labeler.store.run_folder import format_counts
from pairkit.app.errors import RemoteError
from pairkit.app.result_table import ResultTable
from pairkit.dataset.reader import read_pairs
from pairkit.dataset.records import PairDataset


def judges_table(judges: Judges) -> ResultTable:
    """Each judge's record, and how their votes were weighed."""
    alpha = "undefined" if judges.alpha is None else f"{judges.alpha:.2f}"
    why = f" ({judges.reason})" if judges.reason else ""
    caption = f"weighed by {judges.method}{why}; Krippendorff's alpha {alpha}"
    headings = ("judge", "judged", "unsure", "accuracy", "agrees with")
    found = ResultTable(*headings, caption=caption, left=("agrees with",))
    for name, judge in sorted(judges.by_name.items()):
        shares = [
            f"{pair.other if pair.one == name else pair.one} {pair.share:.0%}"
            for pair in judges.agreements
            if name in (pair.one, pair.other)
        ]
        found.add_row(name, judge.judged, judge.unsure, f"{judge.accuracy:.2f}", ", ".join(shares))
    return found


def describe_missing(asked: Asked) -> str:
    """Whose answers a run lacks since asking failed, and why; nothing where none failed."""
    missing = [f"{llm} ({error})" for llm, error in asked.problems.items()]
    if asked.unanswered:
        missing.append(f"{sum(asked.unanswered.values()):,} questions ({format_counts(asked.unanswered)})")
    return "; ".join(missing)


@dataclass(frozen=True, repr=False)
class Labelled:
    """A finished run of `generate` or `parse`.

    Attributes:
        out: The dataset's folder.
        work: The folder of the answers, for `show`, `report`, `score` and `parse`.
        statistics: As in the dataset's statistics.json.
        dropped: Reason to what is no pair: rows of the input, proposals, candidates, questions.
        judges: What is known of the judges; None without judges.
        asked: What asking came to.
        spent_in_all: The same of all sessions in `work`.
        seconds: Of this session.
        messages: What was reported during the run, a line each.
    """

    out: Path
    work: Path
    statistics: Mapping[str, Any]
    dropped: Mapping[str, int]
    judges: Judges | None
    asked: Asked
    spent_in_all: Spending
    seconds: float
    messages: tuple[str, ...] = field(default=())

    @cached_property
    def pairs(self) -> PairDataset:
        """The dataset, read when it is asked for."""
        return read_pairs(self.out)

    @property
    def positives(self) -> int:
        """Pairs of the same meaning in all splits."""
        return self._count("positive")

    @property
    def negatives(self) -> int:
        """Pairs of opposite meaning in all splits."""
        return self._count("negative")

    @property
    def spent(self) -> Spending:
        """Calls, tokens and money of this session."""
        return self.asked.spent

    @property
    def cost(self) -> float | None:
        """US dollars of this session; None where a price is unknown."""
        return self.spent.cost

    @property
    def problem(self) -> RemoteError | None:
        """What the dataset lacks; None where nothing failed."""
        missing = describe_missing(self.asked)
        if not missing:
            return None
        return RemoteError(f"{self.out} is made without all answers of {missing}; run the same command again")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        return {
            "out": str(self.out),
            "texts": self.statistics["texts"],
            "calls": self.spent.requests,
            "cached": self.asked.cached,
            "pairs": self.positives + self.negatives,
            "positives": self.positives,
            "negatives": self.negatives,
            "dropped": dict(sorted(self.dropped.items())),
            "cost": self.spent.cost,
            "tokens": self.spent.tokens,
            "seconds": round(self.seconds, 3),
            "cost_in_all": self.spent_in_all.cost,
            "stopped": self.asked.stopped,
        }

    def table(self) -> ResultTable:
        """Counts by split, and what they cost."""
        columns = ("texts", "positive", "negative", "triplets")
        found = ResultTable("split", *columns, title=str(self.out), caption=self._caption())
        for split, counts in self.statistics["splits"].items():
            found.add_row(split, *(counts[name] for name in columns))
        return found

    def tables(self) -> list[ResultTable]:
        """Each judge's record if there are judges, and the counts."""
        return [*([judges_table(self.judges)] if self.judges else []), self.table()]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to see what was dropped, and how to train on the rest."""
        train = ["aoe", "train", "--backbone", "minilm", "--out", "model", "--data"]
        triplets = self.out / "triplet"
        return [
            ("see why rows were dropped", ["label", "report", "--work", str(self.work)]),
            ("train on the triplets", [*train, str(triplets), "--preset", "domain"])
            if triplets.is_dir()
            else ("train on the pairs", [*train, str(self.out)]),
        ]

    def __repr__(self) -> str:
        counts = f"{self.positives:,} positive and {self.negatives:,} negative pairs"
        return (
            f"Labelled({str(self.out)!r}: {counts} of {self.statistics['texts']:,} texts; {self._caption()})"
        )

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _caption(self) -> str:
        return (
            f"{self.spent.requests:,} calls ({self.asked.cached:,} answered before), {self.spent.tokens:,}"
            f" tokens, cost {money(self.spent.cost)};"
            f" {sum(self.dropped.values()):,} dropped; {self.seconds:.1f} s"
        )

    def _count(self, polarity: str) -> int:
        return sum(split[polarity] for split in self.statistics["splits"].values())
