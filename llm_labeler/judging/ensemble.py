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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llm_labeler.judging.judges import CLASSES, Judges, share_of_votes
from llm_labeler.records import Candidate, JudgeVote, LabelledPair, Polarity, Vote
from llm_labeler.settings import EnsembleSettings

_REVERSED: Mapping[Polarity, Polarity] = {"positive": "negative", "negative": "positive"}


_Probabilities = tuple[float, float, float]  # of same, opposite, unrelated


def label(
    candidates: Sequence[Candidate],
    votes: Mapping[str, Sequence[JudgeVote]],
    settings: EnsembleSettings,
    judges: Judges | None = None,
) -> list[LabelledPair]:
    """Label candidates with `settings.aggregation`, in their order."""
    pairs = []
    for candidate in candidates:
        candidate_votes = sorted(
            votes.get(candidate.candidate_id, ()), key=lambda vote: (vote.judge, vote.vote)
        )
        if settings.aggregation == "union":
            pairs.append(_pair(candidate, candidate.polarity, candidate_votes, None))
        else:
            pairs.append(_judged(candidate, candidate_votes, settings, judges))
    return pairs


def votes_by_judge(votes: Iterable[JudgeVote]) -> dict[str, Vote]:
    """The vote of each judge on one candidate; unsure judges and those with several votes are left out."""
    by_judge: dict[str, set[Vote]] = {}
    for vote in votes:
        by_judge.setdefault(vote.judge, set()).add(vote.vote)
    return {judge: vote for judge in sorted(by_judge) for vote in CLASSES if by_judge[judge] == {vote}}


def _pair(
    candidate: Candidate, polarity: Polarity, votes: Sequence[JudgeVote], reason: str | None
) -> LabelledPair:
    return LabelledPair(candidate, polarity, float(polarity == "positive"), tuple(votes), reason)


def _judged(
    candidate: Candidate, votes: Sequence[JudgeVote], settings: EnsembleSettings, judges: Judges | None
) -> LabelledPair:
    """Label a candidate by `vote` or `weighted`."""
    is_weighted = settings.aggregation == "weighted"
    by_judge = votes_by_judge(votes)
    probabilities = judges.probabilities(by_judge) if is_weighted and judges else share_of_votes(by_judge)
    polarity, reason, confidence = _decide(candidate.polarity, probabilities, settings)
    if not by_judge:
        polarity, reason = candidate.polarity, "undecided"
    elif is_weighted and confidence < settings.min_confidence:
        polarity, reason = candidate.polarity, "unsure"
    pair = _pair(candidate, polarity, votes, reason)
    return replace(pair, label=min(1.0, probabilities[0])) if is_weighted else pair


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
        return _REVERSED[polarity], None, best
    return polarity, None if winners == ["confirmed"] else "outvoted", best
