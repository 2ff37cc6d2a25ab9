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

from llm_labeler.judging.scoring.gold import normalised
from llm_labeler.records import POLARITIES, VOTES, Candidate, Judgement
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line

_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "text_id": pl.String,
    "text": pl.String,
    "candidate": pl.String,
    "polarity": pl.String,
    "llms": pl.List(pl.String),
}
_REMEDY = "write the table anew with `label parse`"
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
    """The columns needed, `votes` even where there are none, and the `key` that gold pairs are matched by."""
    if missing := [name for name in _COLUMNS if name not in table.columns]:
        raise DataError(
            f"the candidates have columns {', '.join(table.columns)}; {', '.join(missing)} is missing: "
            f"{_REMEDY}"
        )
    votes = pl.col("votes") if "votes" in table.columns else pl.lit(None, _VOTES)
    if isinstance(table.schema.get("votes"), pl.List):  # `vote` was called `verdict` once
        votes = votes.list.eval(pl.element().struct.rename_fields(["judge", "vote"]))
    key = pl.struct(normalised("text").alias("text1"), normalised("candidate").alias("text2"))
    try:
        texts = [pl.col(name).cast(kind) for name, kind in _COLUMNS.items()]
        whole = table.select(*texts, votes=votes.cast(_VOTES))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"the candidates can't be read ({one_line(str(error))}): {_REMEDY}") from error
    cast = whole["votes"].explode().drop_nulls().struct.unnest()
    for column in (*(whole[name] for name in _COLUMNS), whole["llms"].explode(), cast["judge"]):
        if column.null_count():
            raise DataError(f"the candidates hold an empty {column.name}: {_REMEDY}")
    _check(whole["polarity"], POLARITIES)
    _check(cast["vote"], VOTES)
    return whole.select(pl.exclude("text"), key=key)


def all_votes(known: pl.DataFrame) -> Iterator[Judgement]:
    """Every judgement of the table."""
    for text_id, candidate, votes in known.select("text_id", "candidate", "votes").iter_rows():
        if votes:
            id_ = Candidate(text_id, candidate, "positive", ()).candidate_id
            yield from (Judgement(id_, vote["judge"], vote["vote"]) for vote in votes)


def _check(found: pl.Series, known: tuple[str, ...]) -> None:
    if strange := sorted({str(value) for value in found.unique()} - set(known)):
        raise DataError(
            f"the candidates hold {found.name} {strange[0]!r:.60}, expected {', '.join(known)}: {_REMEDY}"
        )
