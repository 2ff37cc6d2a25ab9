"""Silver labels by scores: each judge says from 0 to 5 how near two texts are; together they grade a pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

import polars as pl

from llm_labeler._gathered import Gathered, heard
from llm_labeler._given_pairs import GIVEN, PAIR, GivenPairs
from llm_labeler._judge import SCORES, read_ratings
from llm_labeler._records import Rating
from llm_labeler._settings import LabelSettings
from llm_labeler._silver_card import told
from llm_labeler._silver_words import VOTES
from llm_labeler._store import Store
from llm_labeler._workplace import RunRecord
from pairkit.agreement import krippendorff_alpha
from pairkit.result_table import ResultTable

_MOST = 5  # the highest score
# Where people's labels are 0 and 1: from here on two texts are near enough for 1, and up to here far enough
# for 0. MultiCSR (Wang et al., 2023) lets the middle be both, too.
_MIDDLE = 3


@dataclass(frozen=True, slots=True)
class ScoreJudge:
    """One judge's record.

    Attributes:
        judged: Pairs that it was heard on.
        unsure: Those of them on which it gave no score.
        mean: Of its scores; None without any.
        distance: Mean distance of its scores from the mean of the others'; None where it judged alone.
    """

    judged: int
    unsure: int
    mean: float | None
    distance: float | None


@dataclass(frozen=True, slots=True)
class ScoreJudges:
    """All judges of a run that gave scores.

    Attributes:
        by_name: Each judge's record.
        alpha_ordinal: Krippendorff's alpha of ranks; None where it is undefined.
        alpha_interval: The same of the scores as numbers.
        compared: Pairs that two judges or more scored.
    """

    by_name: Mapping[str, ScoreJudge]
    alpha_ordinal: float | None
    alpha_interval: float | None
    compared: int

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain data, for JSON."""
        return asdict(self)

    def table(self) -> ResultTable:
        """A judge a row."""
        alphas = [f"{told(self.alpha_ordinal)} (ordinal)", f"{told(self.alpha_interval)} (interval)"]
        caption = f"Krippendorff's alpha {', '.join(alphas)} over {self.compared:,} pairs"
        found = ResultTable("judge", "judged", "unsure", "mean", "from the others", caption=caption)
        for name, judge in sorted(self.by_name.items()):
            found.add_row(name, judge.judged, judge.unsure, told(judge.mean), told(judge.distance))
        return found


class Scores:
    """What judges said in scores; see `_silver`."""

    scale = SCORES
    columns = ("score", "spread", "distance")
    sheet = ("score", "distance")
    surest = "distance"
    judges: ScoreJudges

    def __init__(self, settings: LabelSettings) -> None:
        self._settings = settings
        self._ratings: dict[str, list[Rating]] = {}

    def hear(self, texts: Iterable[Gathered], store: Store, record: RunRecord) -> None:
        """Take in what the judges said of each text's pairs."""
        for about in texts:
            for ask, batch, reply in heard(about, self._settings.proposers, store, record, SCORES):
                for rating in read_ratings(ask, batch, reply.raw, reply.finish):
                    self._ratings.setdefault(rating.candidate_id, []).append(rating)
        self.judges = compare(self._ratings.values())

    def judged(self, rows: pl.DataFrame, given: GivenPairs) -> pl.DataFrame:
        """The rows with a score for each, how far judges lie apart, what each said, and what contradicts."""
        ratings = [self._ratings.get(pair, []) for pair in rows[PAIR]]
        decided = [self._score(cast) for cast in ratings]
        said = [
            [{"judge": one.judge, "vote": "unsure" if one.score is None else str(one.score)} for one in cast]
            for cast in ratings
        ]
        found = rows.with_columns(
            pl.Series("score", [score for score, _ in decided], pl.Float32),
            pl.Series("spread", [_spread(_heard(cast)) for cast in ratings], pl.Float32),
            pl.Series("reason", [reason for _, reason in decided], pl.String),
            pl.Series("votes", said, VOTES),
        )
        found = found.with_columns(
            label=pl.col("score") / _MOST,
            distance=(pl.col("score") - pl.col(GIVEN) / (2 * given.half) * _MOST).abs().cast(pl.Float32),
        )
        found = found.with_columns(contradicts=self._contradicts(given) & pl.col("reason").is_null())
        first = ["text1", "text2", "label", "score", "spread", GIVEN, "distance", "votes"]
        return found.select(*first, pl.exclude(first))

    def counts(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """How many pairs are near, far and between, and the mean score."""
        score = rows["score"]
        return {
            "high": int((score >= 4).sum()),
            "middle": int(((score >= 2) & (score < 4)).sum()),
            "low": int((score < 2).sum()),
            "mean_score": round(float(score.cast(pl.Float64).to_numpy().mean()), 3) if rows.height else None,
        }

    def _score(self, cast: Sequence[Rating]) -> tuple[float | None, str | None]:
        """The judges' score of a pair, and why it has none that counts."""
        scores = _heard(cast)
        if not scores:
            return None, "unsure" if cast else "not_judged"
        score = (fmean if self._settings.judge.score == "mean" else median)(scores)
        return score, "judges_differ" if max(scores) - min(scores) > self._settings.judge.max_spread else None

    def _contradicts(self, given: GivenPairs) -> pl.Expr:
        if given.graded:
            return pl.col("distance") >= self._settings.judge.far
        said_same = pl.col(GIVEN) >= given.half
        return pl.when(said_same).then(pl.col("score") < _MIDDLE).otherwise(pl.col("score") > _MIDDLE)


def compare(ratings: Iterable[Sequence[Rating]]) -> ScoreJudges:
    """How the judges of some pairs compare.

    Args:
        ratings: Of each pair what its judges said.
    """
    judged: dict[str, list[int | None]] = {}
    distances: dict[str, list[float]] = {}
    units = []
    for cast in ratings:
        known = {one.judge: one.score for one in cast if one.score is not None}
        units.append([*known.values()])
        for one in cast:
            judged.setdefault(one.judge, []).append(one.score)
        for judge, score in known.items():
            if others := [other for name, other in known.items() if name != judge]:
                distances.setdefault(judge, []).append(abs(score - fmean(others)))
    by_name = {
        name: ScoreJudge(
            len(scores),
            scores.count(None),
            fmean(given) if (given := [score for score in scores if score is not None]) else None,
            fmean(distances[name]) if name in distances else None,
        )
        for name, scores in sorted(judged.items())
    }
    ordinal = krippendorff_alpha(units, "ordinal").value
    interval = krippendorff_alpha(units, "interval")
    return ScoreJudges(by_name, ordinal, interval.value, interval.n)


def _heard(cast: Iterable[Rating]) -> list[int]:
    return [one.score for one in cast if one.score is not None]


def _spread(scores: Sequence[int]) -> float | None:
    return float(max(scores) - min(scores)) if scores else None
