"""The strategies: what becomes of each candidate of a text.

| strategy | a candidate is kept where | label |
|---|---|---|
| union | always | hard |
| agreement | at least `min_sources` LLMs proposed it | hard |
| vote | more of the judges that aren't unsure confirm its polarity than say anything else | hard |
| weighted | the same of votes weighed by accuracies, and `min_confidence` is reached | soft |

A hard label is 1 for a positive, `antonym_score` for a negative; a soft one P(same) + `antonym_score`
P(opposite): raters see something of the meaning left in an opposite, in what is unrelated nothing.

`same` confirms a positive. `opposite` confirms a negative, and so does `unrelated` where
`unrelated_is_negative`; the two then count as one, else judges who differ on how a sentence differs would
cancel each other out. Positives found opposite and negatives found the same are dropped or change polarity
(`reversed_pairs`). What the proposer meant takes no part in the weighing, as judges aren't told it either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from llm_labeler._ensemble.ballots import cast_votes
from llm_labeler._ensemble.judges import Judges
from llm_labeler._ensemble.majority import share_of_votes
from llm_labeler._kinds import load, strategy_of
from llm_labeler._records import Candidate, Judgement, Pair, Polarity, Vote
from llm_labeler._settings import EnsembleSettings

_OTHER: Mapping[Polarity, Polarity] = {"positive": "negative", "negative": "positive"}


class Decision(NamedTuple):
    """What becomes of a candidate; `reason` says why it is turned down."""

    polarity: Polarity
    label: float
    reason: str | None


_Belief = tuple[float, float, float]  # in same, opposite, unrelated
Decide: TypeAlias = Callable[[Candidate, Mapping[str, Vote], EnsembleSettings, Judges | None], Decision]


def label(
    candidates: Sequence[Candidate],
    votes: Mapping[str, Sequence[Judgement]],
    settings: EnsembleSettings,
    judges: Judges | None = None,
    decide: Decide | None = None,
) -> list[Pair]:
    """Label candidates by `settings.strategy`; each comes back once, in their order.

    Args:
        candidates: Kept candidates, as a rule of one text.
        votes: Judgements by `candidate_id`; none is known of an id that is missing.
        settings: The strategy and what it needs.
        judges: For `weighted`; None weighs all judges alike.
        decide: A strategy that a person gave, see `own`; None: the one that the settings name.

    Returns:
        Pairs, with a reason where turned down (`too_few_sources`, `undecided`, `outvoted`, `unsure`); the
        label is then what it would have been.
    """
    decide = decide or load("_ensemble", strategy_of(settings.strategy).place)
    pairs = []
    for candidate in candidates:
        cast = sorted(votes.get(candidate.candidate_id, ()), key=lambda vote: (vote.judge, vote.vote))
        outcome = decide(candidate, cast_votes(cast), settings, judges)
        pairs.append(Pair(candidate, outcome.polarity, outcome.label, tuple(cast), outcome.reason))
    return pairs


def union(
    candidate: Candidate, _cast: Mapping[str, Vote], settings: EnsembleSettings, _judges: Judges | None
) -> Decision:
    """All that passed the filters."""
    return _hard(candidate.polarity, settings, None)


def agreement(
    candidate: Candidate, _cast: Mapping[str, Vote], settings: EnsembleSettings, _judges: Judges | None
) -> Decision:
    """What several LLMs proposed."""
    enough = len(set(candidate.llms)) >= settings.min_sources
    return _hard(candidate.polarity, settings, None if enough else "too_few_sources")


def vote(
    candidate: Candidate, cast: Mapping[str, Vote], settings: EnsembleSettings, _judges: Judges | None
) -> Decision:
    """What more judges confirm than say anything else."""
    polarity, reason, _ = _rule(candidate.polarity, share_of_votes(cast), settings)
    if not cast:
        return _hard(candidate.polarity, settings, "undecided")
    return _hard(polarity, settings, reason)


def weighted(
    candidate: Candidate, cast: Mapping[str, Vote], settings: EnsembleSettings, judges: Judges | None
) -> Decision:
    """The same of votes weighed by the judges' accuracies; labels are graded."""
    belief = judges.belief(cast) if judges else share_of_votes(cast)
    soft = min(1.0, belief[0] + settings.antonym_score * belief[1])
    polarity, reason, confidence = _rule(candidate.polarity, belief, settings)
    if not cast:
        return Decision(candidate.polarity, soft, "undecided")
    if confidence < settings.min_confidence:
        return Decision(candidate.polarity, soft, "unsure")
    return Decision(polarity, soft, reason)


def _hard(polarity: Polarity, settings: EnsembleSettings, reason: str | None) -> Decision:
    return Decision(polarity, 1.0 if polarity == "positive" else settings.antonym_score, reason)


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
