"""The aggregations, which label or reject each candidate.

| aggregation | keeps a candidate if | label |
|---|---|---|
| union | always | 1 for a positive, 0 for a negative |
| vote | its polarity has more votes than any other class | 1 for a positive, 0 for a negative |
| weighted | likewise with votes weighted by accuracy, and at `min_confidence` or above | P(same) |

`same` confirms a positive, `opposite` a negative. With `unrelated_is_negative`, `opposite` and `unrelated`
both confirm a negative and are added up, so that judges who differ only between these two still outvote
`same`. Positives judged opposite and negatives judged same are dropped or change polarity (`reversed_pairs`).
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
    """The label of a candidate, or the reason for its rejection."""

    polarity: Polarity
    label: float
    reason: str | None


_Probabilities = tuple[float, float, float]  # of same, opposite, unrelated
Decide: TypeAlias = Callable[[Candidate, Mapping[str, Vote], EnsembleSettings, Judges | None], LabelDecision]


def label(
    candidates: Sequence[Candidate],
    votes: Mapping[str, Sequence[JudgeVote]],
    settings: EnsembleSettings,
    judges: Judges | None = None,
) -> list[LabelledPair]:
    """Label candidates with `settings.aggregation`, in their order."""
    decide = _AGGREGATIONS[settings.aggregation]
    pairs = []
    for candidate in candidates:
        own = sorted(votes.get(candidate.candidate_id, ()), key=lambda vote: (vote.judge, vote.vote))
        decision = decide(candidate, votes_by_judge(own), settings, judges)
        pairs.append(LabelledPair(candidate, decision.polarity, decision.label, tuple(own), decision.reason))
    return pairs


def votes_by_judge(votes: Iterable[JudgeVote]) -> dict[str, Vote]:
    """The vote of each judge on one candidate; unsure judges and those with several votes are left out."""
    by_judge: dict[str, set[Vote]] = {}
    for vote in votes:
        by_judge.setdefault(vote.judge, set()).add(vote.vote)
    return {judge: vote for judge in sorted(by_judge) for vote in CLASSES if by_judge[judge] == {vote}}


def union(
    candidate: Candidate, _votes: Mapping[str, Vote], _settings: EnsembleSettings, _judges: Judges | None
) -> LabelDecision:
    """Keep every candidate."""
    return _hard(candidate.polarity, None)


def vote(
    candidate: Candidate, votes: Mapping[str, Vote], settings: EnsembleSettings, _judges: Judges | None
) -> LabelDecision:
    """Keep a candidate whose polarity has the most votes."""
    if not votes:
        return _hard(candidate.polarity, "undecided")
    polarity, reason, _ = _decide(candidate.polarity, share_of_votes(votes), settings)
    return _hard(polarity, reason)


def weighted(
    candidate: Candidate, votes: Mapping[str, Vote], settings: EnsembleSettings, judges: Judges | None
) -> LabelDecision:
    """Like `vote`, with votes weighted by the judges' accuracies and graded labels."""
    probabilities = judges.probabilities(votes) if judges else share_of_votes(votes)
    same = min(1.0, probabilities[0])
    if not votes:
        return LabelDecision(candidate.polarity, same, "undecided")
    polarity, reason, confidence = _decide(candidate.polarity, probabilities, settings)
    if confidence < settings.min_confidence:
        return LabelDecision(candidate.polarity, same, "unsure")
    return LabelDecision(polarity, same, reason)


_AGGREGATIONS: Mapping[str, Decide] = {"union": union, "vote": vote, "weighted": weighted}


def _hard(polarity: Polarity, reason: str | None) -> LabelDecision:
    return LabelDecision(polarity, float(polarity == "positive"), reason)


def _decide(
    polarity: Polarity, probabilities: _Probabilities, settings: EnsembleSettings
) -> tuple[Polarity, str | None, float]:
    """The resulting polarity, the reason for a rejection, and the probability of the most likely option."""
    same, opposite, unrelated = probabilities
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
