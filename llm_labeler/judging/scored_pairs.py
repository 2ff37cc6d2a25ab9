"""The two inputs of scoring: pairs that people labelled, and the table of a run's kept candidates.

| column of the candidates | |
|---|---|
| text_id, text | the source |
| candidate, polarity | what was proposed for it, as what |
| llms | list of strings: who proposed it |
| votes | list of {judge, vote}; may be null |

Further columns (`reason`, the run's labels) are not read: every strategy is computed anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from llm_labeler.dataset.rows import VOTES
from llm_labeler.records import Candidate, JudgeVote
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line, without_apostrophes

_GOLD_COLUMNS = ("text1", "text2", "label")
_EXAMPLES = 5
_EXAMPLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class PairExamples:
    """How many gold pairs something holds of, with a few of them."""

    count: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, pairs: pl.DataFrame) -> PairExamples:
        """Count pairs and show the first, shortened."""
        shown = pairs.head(_EXAMPLES).select("text1", "text2").iter_rows()
        return cls(len(pairs), tuple(" | ".join(text[:_EXAMPLE_CHARS] for text in pair) for pair in shown))


@dataclass(frozen=True, slots=True)
class GoldPairs:
    """Gold pairs, each once."""

    pairs: pl.DataFrame
    repeated: int
    contradictory: PairExamples
    graded: bool
    threshold: float


def read_gold(rows: pl.DataFrame, threshold: float | None) -> GoldPairs:
    """Check gold rows and tell `same` from the rest."""
    labels = _checked(rows)
    graded = not labels.is_in([0.0, 1.0]).all()
    least = _half(labels) if threshold is None else threshold
    known = rows.select("text1", "text2").with_columns(
        label=labels, same=labels >= least, key=pl.struct(normalised("text1"), normalised("text2"))
    )
    several = pl.col("label").n_unique().over("key") > 1
    contradictory = known.filter(several).unique("key", keep="first", maintain_order=True)
    consistent = known.filter(~several)
    pairs = consistent.unique("key", keep="first", maintain_order=True)
    return GoldPairs(pairs, len(consistent) - len(pairs), PairExamples.of(contradictory), graded, least)


def normalised(column: str) -> pl.Expr:
    """A text as it is compared: Unicode's compatible forms, letter case and white space don't matter.

    Nor do apostrophes that a sheet has before what would be a formula, see `pairkit.app.printable`.
    """
    plain = without_apostrophes(pl.col(column)).str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars().alias(column)


def _checked(rows: pl.DataFrame) -> pl.Series:
    if missing := [name for name in _GOLD_COLUMNS if name not in rows.columns]:
        raise DataError(
            f"gold pairs have columns {', '.join(rows.columns)}; add {', '.join(missing)} "
            "(two texts, and a label that a person gave them)"
        )
    if rows.is_empty():
        raise DataError("there are no gold pairs; label some by hand, with columns text1, text2, label")
    labels = rows["label"].cast(pl.Float64, strict=False)
    bad = (~labels.is_finite()).fill_null(value=True) | rows["text1"].is_null() | rows["text2"].is_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise DataError(
            f"gold row {row + 1} has label {rows['label'][row]!r}; expected two texts and a number: "
            "fix the row"
        )
    return labels


def _half(labels: pl.Series) -> float:
    if labels.is_in([0.0, 1.0]).all():
        return 0.5
    low, high = np.min(labels.to_numpy()), np.max(labels.to_numpy())
    if low == high:
        raise DataError(f"all gold labels are {low:g}; say from which label on two texts mean the same")
    return float(low + high) / 2


class ScoredCandidate(NamedTuple):
    """One candidate with people's label."""

    same: bool
    grade: float
    candidate: Candidate
    votes: tuple[JudgeVote, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ScoredCandidate:
        """From a row of gold pairs joined with candidates."""
        candidate = Candidate(row["text_id"], row["candidate"], row["polarity"], tuple(row["llms"]))
        votes = tuple(
            JudgeVote(candidate.candidate_id, vote["judge"], vote["vote"]) for vote in row["votes"] or ()
        )
        return cls(row["same"], row["label"], candidate, votes)


def read_candidates(table: pl.DataFrame) -> pl.DataFrame:
    """The columns needed, and the `key` that gold pairs are matched by."""
    key = pl.struct(normalised("text").alias("text1"), normalised("candidate").alias("text2"))
    try:
        votes = pl.col("votes").cast(VOTES)
        return table.select("text_id", "candidate", "polarity", "llms", votes, key=key)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"the candidates can't be read ({one_line(str(error))}): write the table anew with `label parse`"
        ) from error


def all_votes(known: pl.DataFrame) -> Iterator[JudgeVote]:
    """Every judgement of the table."""
    for text_id, candidate, votes in known.select("text_id", "candidate", "votes").iter_rows():
        if votes:
            id_ = Candidate(text_id, candidate, "positive", ()).candidate_id
            yield from (JudgeVote(id_, vote["judge"], vote["vote"]) for vote in votes)
