"""What is known of the judges once all judgements are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from llm_labeler.judging.ensemble.ballots import ABSTAINS, CLASSES, Ballots, collect
from llm_labeler.judging.ensemble.dawid_skene import SMOOTHING, Floats, accuracy_of, classes_given, fit, gain
from llm_labeler.records import Judgement, Vote
from llm_labeler.settings.labelling import EnsembleSettings

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
    """Estimate the judges from all judgements of a run, by one-coin Dawid-Skene where that can work."""
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


def share_of_votes(cast: Mapping[str, Vote]) -> tuple[float, float, float]:
    """Shares of same, opposite and unrelated among votes; a third each where there are none."""
    votes = list(cast.values())
    same, opposite, unrelated = (votes.count(name) / len(votes) if votes else 1 / 3 for name in CLASSES)
    return same, opposite, unrelated


def agreement_with_others(ballots: Ballots) -> Floats:
    """How often the other judges of a candidate vote as a judge does, by judge; stands in for accuracy."""
    tally = ballots.chosen.sum(axis=1)  # ballot, class
    others = (ballots.voters - 1)[:, None]
    alike = np.take_along_axis(tally, np.maximum(ballots.votes, 0).astype(np.intp), axis=1) - 1
    counted = (ballots.votes != ABSTAINS) & (others > 0)
    share = np.where(counted, alike / np.maximum(others, 1), 0.0)
    counts = ballots.counts.astype(np.float64)
    return accuracy_of(counts @ share, counts @ counted)


def share_of_classes(ballots: Ballots) -> Floats:
    """Share of each class among all votes, one of each put in."""
    votes = ballots.counts @ ballots.chosen.sum(axis=1) + SMOOTHING
    return np.asarray(votes / votes.sum())


def pairwise(ballots: Ballots) -> Iterator[tuple[str, str, int, float]]:
    """Of every two judges that voted on the same candidates: on how many, and on what share of them alike."""
    voted = ballots.votes != ABSTAINS
    for one, other in combinations(range(len(ballots.names)), 2):
        both = ballots.counts * (voted[:, one] & voted[:, other])
        alike = both * (ballots.votes[:, one] == ballots.votes[:, other])
        if n := int(both.sum()):
            yield ballots.names[one], ballots.names[other], n, int(alike.sum()) / n


def krippendorff_alpha(
    tally: npt.NDArray[np.integer], counts: npt.NDArray[np.integer] | None = None
) -> float | None:
    """Krippendorff's alpha for nominal data: 1 full agreement, 0 what chance gives, below 0 worse.

    Unlike Fleiss' kappa it copes with candidates that not all judges voted on.
    """
    votes = tally.sum(axis=1)
    paired = votes >= 2
    tally, votes = tally[paired].astype(np.float64), votes[paired]
    weight = np.ones(len(votes)) if counts is None else counts[paired].astype(np.float64)
    alike = float((weight / (votes - 1) * (tally * (tally - 1)).sum(axis=1)).sum())
    by_class = weight @ tally
    total = float(by_class.sum())
    expected = total * total - float((by_class * by_class).sum())
    return None if expected <= 0 else 1 - (total - 1) * (total - alike) / expected
