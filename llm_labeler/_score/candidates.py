"""The table of candidates that is scored: a row for each kept candidate of a run.

| column | |
|---|---|
| text_id, text | the source |
| candidate, polarity | what was proposed for it, as what |
| llms | list of strings: who proposed it |
| votes | list of {judge, vote}; may be null, or missing as a whole |

Further columns (`reason`, the run's labels) are not read: every strategy is computed anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from llm_labeler._records import POLARITIES, VOTES, Candidate, Judgement
from llm_labeler._score.gold import normalised
from pairkit.errors import DataError

_COLUMNS = ("text_id", "text", "candidate", "polarity", "llms")
_VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))


class Matched(NamedTuple):
    """One candidate with people's label."""

    same: bool
    grade: float
    candidate: Candidate
    votes: tuple[Judgement, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Matched:
        """From a row of gold pairs joined with candidates."""
        candidate = Candidate(row["text_id"], row["candidate"], row["polarity"], tuple(row["llms"]))
        votes = tuple(
            Judgement(candidate.candidate_id, vote["judge"], vote["vote"]) for vote in row["votes"] or ()
        )
        return cls(row["same"], row["label"], candidate, votes)


def read_candidates(table: pl.DataFrame) -> pl.DataFrame:
    """The columns needed, `votes` even where there are none, and the `key` that gold pairs are matched by.

    Raises:
        DataError: a missing column, or a polarity or vote that is none.
    """
    if missing := [name for name in _COLUMNS if name not in table.columns]:
        raise DataError(
            f"the candidates have columns {', '.join(table.columns)}; {', '.join(missing)} is missing: "
            "write the table anew with label generate"
        )
    votes = pl.col("votes") if "votes" in table.columns else pl.lit(None, _VOTES)
    if isinstance(table.schema.get("votes"), pl.List):  # `vote` was called `verdict` once
        votes = votes.list.eval(pl.element().struct.rename_fields(["judge", "vote"]))
    key = pl.struct(normalised("text").alias("text1"), normalised("candidate").alias("text2"))
    known = table.select("text_id", "candidate", "polarity", "llms", votes=votes.cast(_VOTES), key=key)
    _check(known["polarity"], POLARITIES)
    _check(known["votes"].explode().struct.field("vote").drop_nulls(), VOTES)
    return known


def all_votes(known: pl.DataFrame) -> Iterator[Judgement]:
    """Every judgement of the table."""
    for text_id, candidate, votes in known.select("text_id", "candidate", "votes").iter_rows():
        if votes:
            id_ = Candidate(text_id, candidate, "positive", ()).candidate_id
            yield from (Judgement(id_, vote["judge"], vote["vote"]) for vote in votes)


def _check(found: pl.Series, known: tuple[str, ...]) -> None:
    if strange := sorted({str(value) for value in found.unique()} - set(known)):
        raise DataError(
            f"the candidates hold {found.name} {strange[0]!r}, expected {', '.join(known)}: "
            "write the table anew with label generate"
        )
