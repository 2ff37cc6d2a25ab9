"""A sample that was drawn, and the file that people answer in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from llm_labeler._sample.draw import STRATUM, draw
from llm_labeler._sample.page import answer_page
from llm_labeler._workplace import CANDIDATES_FILE, read_private, recall_record
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_bytes
from pairkit.formulas import inert
from pairkit.result_table import ResultTable

# What people are asked, by task; yes is 1.
QUESTIONS: Mapping[str, str] = {
    "papers": "Do both texts say the same?",
    "triplet": "Do both texts say the same?",
    "query": "Does the first text answer the second?",
    "answer": "Is the second text a right answer to the first?",
}


@dataclass(frozen=True, repr=False)
class Sampled:
    """Pairs for people to label.

    Attributes:
        out: The page or the sheet.
        strata: How many pairs there are of each: what was proposed, by whom, how far judges agree, its fate.
    """

    out: Path
    strata: Mapping[str, int]

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return sum(self.strata.values())

    def table(self) -> ResultTable:
        """A row for each stratum."""
        found = ResultTable("stratum", "pairs", title=str(self.out), caption=f"{self.pairs:,} pairs")
        for name, number in self.strata.items():
            found.add_row(name, number)
        return found

    def __repr__(self) -> str:
        return f"Sampled({str(self.out)!r}: {self.pairs:,} pairs of {len(self.strata):,} strata)"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def sample(work: Path, out: Path, size: int, seed: int | None) -> Sampled:
    """See `llm_labeler.sample`."""
    if out.suffix not in (".html", ".csv"):
        raise ConfigError(f"{out}: expected a page (.html) or a sheet (.csv)")
    if out.exists():
        raise ConfigError(f"{out}: there already, perhaps with answers in it; give another out (--out)")
    record = recall_record(work)
    seed = record.settings.seed if seed is None else seed
    drawn = draw(read_private(work / CANDIDATES_FILE), size, seed)
    if not drawn.height:
        raise DataError("holds no candidates to show; run `label generate` first", path=work)
    pairs = drawn.select(text1="text", text2="candidate")
    question = QUESTIONS[record.settings.task]
    if out.suffix == ".html":
        data = answer_page(pairs.rows(), question, record.source)
    else:
        data = inert(pairs.with_columns(label=pl.lit(None, pl.Int64))).write_csv()
    write_bytes(out, data.encode("utf-8", "replace"), private=True)
    return Sampled(out, dict(sorted(drawn[STRATUM].value_counts().iter_rows())))
