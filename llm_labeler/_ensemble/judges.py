"""What is known of the judges once all judgements are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from llm_labeler._ensemble.agreement import krippendorff_alpha, pairwise
from llm_labeler._ensemble.ballots import CLASSES, Ballots, collect
from llm_labeler._ensemble.dawid_skene import classes_given, fit, gain
from llm_labeler._ensemble.majority import agreement_with_others, share_of_classes, share_of_votes
from llm_labeler._records import Judgement, Vote
from llm_labeler._settings import EnsembleSettings

Method = Literal["dawid-skene", "majority"]

_FEWEST_JUDGES = 3  # two that differ tell nothing of which one errs
_STRANGER = 0.5  # accuracy of a judge that was not fitted: what smoothing gives one without votes


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge's record."""

    judged: int  # candidates it was heard on
    unsure: int  # those of them on which it abstained, or contradicted itself
    accuracy: float  # in [0, 1]; 1/3 is chance. By `majority`: agreement with the other judges


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two judges compare on the candidates on which neither abstained."""

    one: str
    other: str
    candidates: int
    share: float  # of them judged alike, in [0, 1]


@dataclass(frozen=True, slots=True)
class Judges:
    """All judges of a run, and how their votes are to be weighed."""

    by_name: Mapping[str, Judge]
    prior: Mapping[Vote, float]  # shares of same, opposite and unrelated, before any vote
    agreements: tuple[Agreement, ...]
    alpha: float | None  # Krippendorff's, over all judges; None where it is undefined
    compared: int  # candidates on which two judges or more voted
    method: Method
    reason: str | None  # why not dawid-skene

    def belief(self, votes: Mapping[str, Vote]) -> tuple[float, float, float]:
        """How likely a candidate is same, opposite, unrelated, given its votes (no `unsure` among them).

        By `majority` the shares of the votes.
        """
        if self.method == "majority":
            return share_of_votes(votes)
        scores = np.log([self.prior[name] for name in CLASSES])
        for judge in sorted(votes):
            known = self.by_name.get(judge)
            accuracy = np.array(known.accuracy if known else _STRANGER)
            scores[CLASSES.index(votes[judge])] += gain(accuracy, len(CLASSES))
        same, opposite, unrelated = classes_given(scores).tolist()
        return same, opposite, unrelated

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain data, for JSON."""
        return asdict(self)


def fit_judges(judgements: Iterable[Judgement], settings: EnsembleSettings) -> Judges:
    """Estimate the judges from all judgements of a run, by one-coin Dawid-Skene where that can work.

    Args:
        judgements: In any order; nothing but their counts matters.
        settings: `min_items`: fewer candidates that two judges voted on fall back to the majority.
    """
    ballots = collect(judgements)
    compared = int(ballots.counts[ballots.voters >= 2].sum())
    reason = _too_little(ballots, compared, settings.min_items)
    accuracy, prior = agreement_with_others(ballots), share_of_classes(ballots)
    if reason is None:
        estimate = fit(ballots)
        if estimate.converged:
            accuracy, prior = estimate.accuracy, estimate.prior
        else:
            reason = "the estimate of accuracies did not converge"
    return Judges(
        by_name=_records(ballots, accuracy.tolist()),
        prior=dict(zip(CLASSES, prior.tolist(), strict=True)),
        agreements=tuple(Agreement(*found) for found in pairwise(ballots)),
        alpha=krippendorff_alpha(ballots.chosen.sum(axis=1), ballots.counts),
        compared=compared,
        method="majority" if reason else "dawid-skene",
        reason=reason,
    )


def _too_little(ballots: Ballots, compared: int, needed: int) -> str | None:
    voting = int((ballots.judged > ballots.unsure).sum())
    if voting < _FEWEST_JUDGES:
        return f"{voting} judges voted, accuracies need {_FEWEST_JUDGES}"
    if compared < needed:
        return f"two judges or more voted on {compared} candidates, ensemble.min_items is {needed}"
    return None


def _records(ballots: Ballots, accuracy: list[float]) -> dict[str, Judge]:
    numbers = zip(ballots.judged.tolist(), ballots.unsure.tolist(), accuracy, strict=True)
    return {name: Judge(*of_judge) for name, of_judge in zip(ballots.names, numbers, strict=True)}
