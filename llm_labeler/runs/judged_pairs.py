"""The result of judging existing pairs, and the card of the dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from llm_labeler.judging.judges import Judges
from llm_labeler.runs.asking import Asked
from llm_labeler.runs.labelled import judges_table
from llm_labeler.store.budget import Spending, money
from pairkit.app.result_table import ResultTable
from pairkit.dataset.card import dataset_card, table
from pairkit.dataset.reader import read_pairs
from pairkit.dataset.records import PairDataset

WORDS = ("same", "related", "different")

_ABOUT = """
Pairs of texts from another dataset, judged anew by large language models that saw neither the label that
stood there nor one another's answers. `label` is what they decided: *silver*, as no person checked it. Built
with `label judge`.
"""
_WORD_SCHEMA = """
| column | type | meaning |
|---|---|---|
| text1, text2 | string | the pair |
| label | int64 | 1 where the judges found that both say the same, else 0 |
| judged | string | `same`, `related` or `different` |
| confidence | float32 | how likely that is by the judges' votes and accuracies, from 0 to 1 |
| probability | float32 | how likely `same` is, by the same; its doubt widens the intervals of `aoe` |
| given_label | number | the label of the source |
| votes | list of (judge, vote) | what each judge said |
"""
_FURTHER = """
Further columns are the source's; one that had such a name has `source_` before it.
"""
_LIMITS = """
* **The labels are machines'.** Judges of one family err alike. Measure a sample by hand before you rely
  on them.
* Pairs on which the judges did not agree well enough are left out, so what is left is easier than the source.
* A label that contradicts the source's may be the source's error or the judges'.
"""


def judged_card(
    statistics: Mapping[str, Any], run: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> str:
    """The README of the dataset."""
    splits = statistics["splits"]
    names = ("pairs", *WORDS)
    rows = [(name, *(split.get(name, 0) for split in splits.values())) for name in names]
    found = statistics["contradictions"]
    counts = (
        f"{table(['', *splits], rows)}\n\nThe judges contradict the source in {sum(found.values()):,} pairs:"
        f" {found['given_same']:,} that it calls the same, and {found['given_other']:,} that it does not."
    )
    return dataset_card(
        "Pairs judged by LLMs",
        configs=files,
        rows=sum(split["pairs"] for split in splits.values()),
        sections=[
            ("", _ABOUT),
            ("Counts", counts),
            ("Columns", _WORD_SCHEMA + _FURTHER),
            ("Judges", _judges(statistics, run)),
            ("Limitations", _LIMITS),
            ("Licence", "The texts keep the terms of the dataset that they came from."),
        ],
        tags=("llm-labelled",),
    )


def _judges(statistics: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    judges = [
        (f"`{name}`", f"`{run['llms'][name]['model']}`", round(judge["accuracy"], 2))
        for name, judge in statistics["judges"]["by_name"].items()
    ]
    return table(("name", "model", "estimated accuracy"), judges)


@dataclass(frozen=True, repr=False)
class JudgedPairs:
    """A dataset with silver labels.

    Attributes:
        out: The dataset's folder.
        work: The folder of the answers; `judged.parquet` there has all pairs, also those left undecided.
        contradictions: A CSV file of the pairs whose given label the judges contradict, the surest first.
        statistics: As in the dataset's statistics.json.
        judges: What is known of the judges.
        asked: What asking came to.
        spent_in_all: Calls, tokens and money of all sessions in `work`.
        seconds: Of this session.
    """

    out: Path
    work: Path
    contradictions: Path
    statistics: Mapping[str, Any]
    judges: Judges
    asked: Asked
    spent_in_all: Spending
    seconds: float

    @cached_property
    def pairs(self) -> PairDataset:
        """The dataset, read when it is asked for."""
        return read_pairs(self.out)

    @property
    def contradicted(self) -> int:
        """How many given labels the judges contradict."""
        return sum(self.statistics["contradictions"].values())

    def table(self) -> ResultTable:
        """Counts by split."""
        names = ("pairs", *WORDS)
        found = ResultTable("split", *names, title=str(self.out), caption=self._caption())
        for split, counts in self.statistics["splits"].items():
            found.add_row(split, *(counts.get(name, 0) for name in names))
        return found

    def tables(self) -> list[ResultTable]:
        """Each judge's record, and the counts."""
        return [judges_table(self.judges), self.table()]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """What to read first."""
        return [("read where they contradict the labels", ["less", str(self.contradictions)])]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        return {
            "out": str(self.out),
            "splits": self.statistics["splits"],
            "contradictions": self.statistics["contradictions"],
            "contradictions_file": str(self.contradictions),
            "dropped": self.statistics["dropped"],
            "judges": self.statistics["judges"],
            "calls": self.asked.spent.requests,
            "cached": self.asked.cached,
            "tokens": self.asked.spent.tokens,
            "cost": self.asked.spent.cost,
            "cost_in_all": self.spent_in_all.cost,
            "stopped": self.asked.stopped,
            "seconds": round(self.seconds, 3),
        }

    def __repr__(self) -> str:
        pairs = sum(split["pairs"] for split in self.statistics["splits"].values())
        return f"JudgedPairs({str(self.out)!r}: {pairs:,} pairs; {self._caption()})"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _caption(self) -> str:
        left_out = sum(self.statistics["dropped"].values())
        return (
            f"{self.contradicted:,} contradict the given label, {left_out:,} left out;"
            f" {self.asked.spent.requests:,} calls ({self.asked.cached:,} answered before),"
            f" {self.asked.spent.tokens:,} tokens, cost {money(self.asked.spent.cost)}; {self.seconds:.1f} s"
        )
