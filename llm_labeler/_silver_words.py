"""Silver labels by words: same, related or different, votes weighed by what is known of the judges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from llm_labeler._ensemble import CLASSES, Judges, cast_votes, fit_judges
from llm_labeler._gathered import Gathered, hear
from llm_labeler._given_pairs import GIVEN, PAIR, GivenPairs, counts_of
from llm_labeler._judge import PAIRS
from llm_labeler._records import Judgement
from llm_labeler._settings import LabelSettings
from llm_labeler._store import Store
from llm_labeler._workplace import RunRecord

VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))


class Words:
    """What judges said in words; see `_silver`."""

    scale = PAIRS
    columns = ("judged", "confidence", "probability")
    sheet = ("judged", "confidence")
    surest = "confidence"
    judges: Judges

    def __init__(self, settings: LabelSettings) -> None:
        self._settings = settings
        self._votes: dict[str, list[Judgement]] = {}

    def hear(self, texts: Iterable[Gathered], store: Store, record: RunRecord) -> None:
        """Take in what the judges said of each text's pairs."""
        for about in texts:
            hear(about, self._settings.proposers, store, record, PAIRS)
            self._votes |= about.votes
        everything = (vote for cast in self._votes.values() for vote in cast)
        self.judges = fit_judges(everything, self._settings.ensemble)

    def judged(self, rows: pl.DataFrame, given: GivenPairs) -> pl.DataFrame:
        """The rows with a word for each, how sure it is, the votes, and whether it contradicts."""
        decided = [self._decision(self._votes.get(pair, [])) for pair in rows[PAIR]]
        words = pl.Series("judged", [one.word for one in decided], pl.String)
        said = [
            [{"judge": vote.judge, "vote": PAIRS.word(vote.vote)} for vote in self._votes.get(pair, [])]
            for pair in rows[PAIR]
        ]
        found = rows.with_columns(
            words,
            pl.Series("confidence", [one.confidence for one in decided], pl.Float32),
            pl.Series("probability", [one.same for one in decided], pl.Float32),
            pl.Series("reason", [one.reason for one in decided], pl.String),
            pl.Series("votes", said, VOTES),
            (words == "same").cast(pl.Int64).alias("label"),
        )
        contradicts = (pl.col("judged") == "same") != (pl.col(GIVEN) >= given.half)
        found = found.with_columns(contradicts=contradicts & pl.col("reason").is_null())
        first = ["text1", "text2", "label", "judged", "confidence", "probability", GIVEN, "votes"]
        return found.select(*first, pl.exclude(first))

    def counts(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """How often each word stands in the rows."""
        return counts_of(rows, "judged")

    def _decision(self, cast: list[Judgement]) -> _Decision:
        heard = cast_votes(cast)
        if not heard:
            return _Decision(reason="unsure" if cast else "not_judged")
        belief = self.judges.belief(heard)
        best, same = max(belief), belief[CLASSES.index("same")]
        if sum(math.isclose(one, best, rel_tol=1e-9) for one in belief) > 1:
            return _Decision(None, best, same, "undecided")
        if best < self._settings.ensemble.min_confidence:
            return _Decision(None, best, same, "unsure")
        return _Decision(PAIRS.word(CLASSES[belief.index(best)]), best, same)


class _Decision(NamedTuple):
    """The word that the votes speak for, how likely it is, how likely `same` is, and why it is none."""

    word: str | None = None
    confidence: float | None = None
    same: float | None = None
    reason: str | None = None
