"""The aggregations: what becomes of each candidate of a text.

| aggregation | a candidate is kept where | label |
|---|---|---|
| union | always | hard |
| vote | more of the judges that aren't unsure confirm its polarity than say anything else | hard |
| weighted | the same of votes weighed by accuracies, and `min_confidence` is reached | soft |

A hard label is 1 for a positive and 0 for a negative; a soft one is P(same).

`same` confirms a positive. `opposite` confirms a negative, and so does `unrelated` where
`unrelated_is_negative`; the two then count as one, else judges who differ on how a sentence differs would
cancel each other out. Positives found opposite and negatives found the same are dropped or change polarity
(`reversed_pairs`). What the proposer meant takes no part in the weighing, as judges aren't told it either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from llm_labeler.judging.judges import CLASSES, Judges, share_of_votes
from llm_labeler.records import Candidate, JudgeVote, LabelledPair, Polarity, Vote
from llm_labeler.settings import EnsembleSettings

_OTHER: Mapping[Polarity, Polarity] = {"positive": "negative", "negative": "positive"}


class LabelDecision(NamedTuple):
    """What becomes of a candidate; `reason` says why it is turned down."""

    polarity: Polarity
    label: float
    reason: str | None


_Belief = tuple[float, float, float]  # in same, opposite, unrelated
Decide: TypeAlias = Callable[[Candidate, Mapping[str, Vote], EnsembleSettings, Judges | None], LabelDecision]


def label(
    candidates: Sequence[Candidate],
    votes: Mapping[str, Sequence[JudgeVote]],
    settings: EnsembleSettings,
    judges: Judges | None = None,
) -> list[LabelledPair]:
    """Label candidates by `settings.aggregation`; each comes back once, in their order."""
    decide = _AGGREGATIONS[settings.aggregation]
    pairs = []
    for candidate in candidates:
        cast = sorted(votes.get(candidate.candidate_id, ()), key=lambda vote: (vote.judge, vote.vote))
        outcome = decide(candidate, cast_votes(cast), settings, judges)
        pairs.append(LabelledPair(candidate, outcome.polarity, outcome.label, tuple(cast), outcome.reason))
    return pairs


def cast_votes(votes: Iterable[JudgeVote]) -> dict[str, Vote]:
    """What each judge says of one candidate, in order of their names; those that abstain are left out."""
    said: dict[str, set[Vote]] = {}
    for vote in votes:
        said.setdefault(vote.judge, set()).add(vote.vote)
    return {judge: vote for judge in sorted(said) for vote in CLASSES if said[judge] == {vote}}


def union(
    candidate: Candidate, _cast: Mapping[str, Vote], _settings: EnsembleSettings, _judges: Judges | None
) -> LabelDecision:
    """All that passed the filters."""
    return _hard(candidate.polarity, None)


def vote(
    candidate: Candidate, cast: Mapping[str, Vote], settings: EnsembleSettings, _judges: Judges | None
) -> LabelDecision:
    """What more judges confirm than say anything else."""
    polarity, reason, _ = _rule(candidate.polarity, share_of_votes(cast), settings)
    if not cast:
        return _hard(candidate.polarity, "undecided")
    return _hard(polarity, reason)


def weighted(
    candidate: Candidate, cast: Mapping[str, Vote], settings: EnsembleSettings, judges: Judges | None
) -> LabelDecision:
    """The same of votes weighed by the judges' accuracies; labels are graded."""
    belief = judges.belief(cast) if judges else share_of_votes(cast)
    soft = min(1.0, belief[0])
    polarity, reason, confidence = _rule(candidate.polarity, belief, settings)
    if not cast:
        return LabelDecision(candidate.polarity, soft, "undecided")
    if confidence < settings.min_confidence:
        return LabelDecision(candidate.polarity, soft, "unsure")
    return LabelDecision(polarity, soft, reason)


_AGGREGATIONS: Mapping[str, Decide] = {"union": union, "vote": vote, "weighted": weighted}


def _hard(polarity: Polarity, reason: str | None) -> LabelDecision:
    return LabelDecision(polarity, float(polarity == "positive"), reason)


def _rule(
    polarity: Polarity, belief: _Belief, settings: EnsembleSettings
) -> tuple[Polarity, str | None, float]:
    """The polarity and reason that follow from belief in the classes, and the belief behind them."""
    same, opposite, unrelated = belief
    if polarity == "positive":
        options = {"confirmed": same, "reversed": opposite, "neither": unrelated}
    elif settings.unrelated_is_negative:
        options = {"confirmed": opposite + unrelated, "reversed": same}
    else:
        options = {"confirmed": opposite, "reversed": same, "neither": unrelated}
    best = max(options.values())
    winners = [name for name, weight in options.items() if math.isclose(weight, best, rel_tol=1e-9)]
    if len(winners) > 1:
        return polarity, "undecided", best
    if winners == ["reversed"] and settings.reversed_pairs == "swap":
        return _OTHER[polarity], None, best
    return polarity, None if winners == ["confirmed"] else "outvoted", best
