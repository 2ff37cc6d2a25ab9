"""How reliable each judge is: all votes as counted ballots, and Dawid and Skene's model (1979) over them.

Most candidates are judged alike, so equal ballots are kept once, with how often they occur: the cost is by
kinds of ballots, not by candidates, and the order of the judgements makes no difference.

In the model, judge j names the true class with probability a_j (its accuracy), else one of the other two,
both equally likely. Classes and accuracies are estimated in turn (expectation-maximisation), beginning
with the shares of the votes. An abstention has no weight. The model assumes that the judges' errors are
independent; those of LLMs are not quite, so the posteriors are somewhat overconfident.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from llm_labeler.records import VOTES, JudgeVote, Vote
from llm_labeler.settings import EnsembleSettings
from pairkit.reviews.agreement import nominal_alpha
from pairkit.system.seeded import keyed_hash

CLASSES: tuple[Vote, ...] = ("same", "opposite", "unrelated")  # what a candidate can be; `unsure` abstains
ABSTAINS = -1
_SEED = 20240621

_BITS: Mapping[Vote, int] = {vote: 1 << place for place, vote in enumerate(VOTES)}
# From the bits of all that one judge said of one candidate to its class: contradictions abstain as well.
_CLASS = np.full(1 << len(VOTES), ABSTAINS, np.int8)
_CLASS[[_BITS[vote] for vote in CLASSES]] = range(len(CLASSES))


@dataclass(frozen=True, slots=True)
class Ballots:
    """Who said what; axes are ballot and judge."""

    names: tuple[str, ...]
    votes: npt.NDArray[np.int8]
    counts: npt.NDArray[np.int64]
    judged: npt.NDArray[np.int64]
    unsure: npt.NDArray[np.int64]

    @property
    def chosen(self) -> npt.NDArray[np.bool_]:
        """Whether the judge of a ballot voted for a class; axes ballot, judge, class."""
        return np.equal(self.votes[:, :, None], np.arange(len(CLASSES), dtype=np.int8))

    @property
    def voters(self) -> npt.NDArray[np.int64]:
        """How many judges did not abstain, by ballot."""
        return np.asarray((self.votes != ABSTAINS).sum(axis=1, dtype=np.int64))


def collect(judgements: Iterable[JudgeVote]) -> Ballots:
    """Count the ballots; a judge that said two things of one candidate abstains there."""
    judges: dict[str, int] = {}
    items, columns, bits = array("Q"), array("I"), array("B")
    for judgement in judgements:
        items.append(keyed_hash(_SEED, judgement.candidate_id))
        columns.append(judges.setdefault(judgement.judge, len(judges)))
        bits.append(_BITS[judgement.vote])
    candidates, rows = np.unique(np.asarray(items), return_inverse=True)
    said = np.zeros((len(candidates), len(judges)), np.uint8)
    np.bitwise_or.at(said, (rows, np.asarray(columns)), np.asarray(bits))
    names = tuple(sorted(judges))
    ballots, counts = _distinct(said[:, [judges[name] for name in names]])
    votes = _CLASS[ballots]
    judged, unsure = (ballots > 0), (ballots > 0) & (votes == ABSTAINS)
    return Ballots(names, votes, counts, counts @ judged, counts @ unsure)


def _distinct(said: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    if not said.size:
        return said, np.zeros(0, np.int64)
    ballots, counts = np.unique(said, axis=0, return_counts=True)
    return ballots, counts.astype(np.int64)


Floats = npt.NDArray[np.float64]

# Votes put in for each judge, as many right as wrong, and for each class: without them a judge seen to err
# never would rule alone.
SMOOTHING = 1.0
_TOLERANCE = 1e-7  # of accuracies and prior between two rounds
_MOST_ROUNDS = 5000
_SURE = 1e-10  # accuracies keep so far from 0 and 1


@dataclass(frozen=True, slots=True)
class Fit:
    """The estimates; axes are judge, class, and ballot by class."""

    accuracy: Floats
    prior: Floats
    posterior: Floats
    converged: bool


def fit(ballots: Ballots, *, smoothing: float = SMOOTHING, tolerance: float = _TOLERANCE) -> Fit:
    """Estimate accuracies and prior; ballots on which all abstain take no part."""
    heard = ballots.voters > 0
    chosen, counts = ballots.chosen[heard].astype(np.float64), ballots.counts[heard].astype(np.float64)
    posterior = chosen.sum(axis=1) / ballots.voters[heard, None]
    accuracy, prior = _maximise(posterior, chosen, counts, smoothing)
    converged = False
    for _ in range(_MOST_ROUNDS):
        posterior = _expect(accuracy, prior, chosen)
        old, (accuracy, prior) = (accuracy, prior), _maximise(posterior, chosen, counts, smoothing)
        if _change(old, (accuracy, prior)) < tolerance:
            converged = True
            break
    return Fit(accuracy, prior, posterior, converged)


def gain(accuracy: Floats, classes: int) -> Floats:
    """By how much a vote raises the log-odds of the class that it names against each other class."""
    return np.asarray(np.log(accuracy) - np.log((1 - accuracy) / (classes - 1)))


def classes_given(scores: Floats) -> Floats:
    """Probabilities from unnormalised log-probabilities; the last axis is the class."""
    likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=-1, keepdims=True))


def accuracy_of(right: Floats, votes: Floats, smoothing: float = SMOOTHING) -> Floats:
    """Share of right votes, `smoothing` of either kind put in."""
    share = (right + smoothing) / np.maximum(votes + 2 * smoothing, _SURE)
    return np.asarray(np.clip(share, _SURE, 1 - _SURE))


def _expect(accuracy: Floats, prior: Floats, chosen: Floats) -> Floats:
    scores = np.einsum("bjk,j->bk", chosen, gain(accuracy, prior.size))
    return classes_given(scores + np.log(np.maximum(prior, _SURE)))


def _maximise(posterior: Floats, chosen: Floats, counts: Floats, smoothing: float) -> tuple[Floats, Floats]:
    right = np.einsum("b,bk,bjk->j", counts, posterior, chosen, optimize=True)
    votes = np.einsum("b,bjk->j", counts, chosen)
    prior = counts @ posterior + smoothing
    return accuracy_of(right, votes, smoothing), prior / prior.sum()


def _change(one: Iterable[Floats], other: Iterable[Floats]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


Method = Literal["dawid-skene", "majority"]

_FEWEST_JUDGES = 3  # two that differ tell nothing of which one errs
_UNKNOWN_JUDGE = 0.5  # accuracy of a judge that was not fitted: what smoothing gives one without votes


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
        """How likely a candidate is same, opposite, unrelated, given its votes (no `unsure` among them)."""
        if self.method == "majority":
            return share_of_votes(votes)
        scores = np.log([self.prior[name] for name in CLASSES])
        for judge in sorted(votes):
            known = self.by_name.get(judge)
            accuracy = np.array(known.accuracy if known else _UNKNOWN_JUDGE)
            scores[CLASSES.index(votes[judge])] += gain(accuracy, len(CLASSES))
        same, opposite, unrelated = classes_given(scores).tolist()
        return same, opposite, unrelated

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain data, for JSON."""
        return asdict(self)


def fit_judges(judgements: Iterable[JudgeVote], settings: EnsembleSettings) -> Judges:
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
    figures = (ballots.judged, ballots.unsure, accuracy)
    columns = [ballots.names, *(figure.tolist() for figure in figures)]
    return Judges(
        by_name={name: Judge(*of_judge) for name, *of_judge in zip(*columns, strict=True)},
        prior=dict(zip(CLASSES, prior.tolist(), strict=True)),
        agreements=tuple(Agreement(*found) for found in pairwise(ballots)),
        alpha=nominal_alpha(ballots.chosen.sum(axis=1), ballots.counts),
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
