"""The aggregations, which label or reject each candidate.

| aggregation | keeps a candidate if | label |
|---|---|---|
| union | always | 1 for a positive, 0 for a negative |
| vote | its polarity has more votes than any other class | 1 for a positive, 0 for a negative |
| weighted | likewise with votes weighted by accuracy, and at `min_confidence` or above | P(same) |

`same` confirms a positive, `opposite` a negative. No LLM judges its own proposals, but if several LLMs wrote
the same sentence with the same polarity, each has a vote for it. These votes make labels; the judges'
statistics leave them out, as they could not differ. With `unrelated_is_negative`, `opposite` and `unrelated`
both confirm a negative and are added up, so that judges who differ only between these two still outvote
`same`. Positives judged opposite and negatives judged same are dropped or change polarity (`reversed_pairs`).

The accuracy of each judge is estimated with the one-coin model of Dawid and Skene (1979): judge j names the
true class with probability a_j (its accuracy), else one of the other two classes with equal probability.
Expectation-maximisation estimates classes and accuracies in turn, starting from the shares of the votes.
Abstentions have no weight. The model assumes independent errors; those of LLMs correlate, so the posteriors
are somewhat overconfident.

A ballot is the votes of all judges on a candidate. Equal ballots are stored once with their count, so the
cost depends on the number of distinct ballots.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from llm_labeler.records import (
    VOTES,
    Candidate,
    JudgeVote,
    LabelledPair,
    Polarity,
    Vote,
)
from llm_labeler.settings import EnsembleSettings
from pairkit.base.system.seeded import keyed_hash
from pairkit.reviews.agreement import nominal_alpha

# What a candidate may be; `unsure` abstains.
CLASSES: tuple[Vote, ...] = ("same", "opposite", "unrelated")
ABSTAINS = -1
_SEED = 20240621

_BITS = {vote: 1 << index for index, vote in enumerate(VOTES)}
# Class by the bits of all votes of a judge on a candidate; contradictory votes abstain.
_CLASS = np.full(1 << len(VOTES), ABSTAINS, np.int8)
_CLASS[[_BITS[vote] for vote in CLASSES]] = range(len(CLASSES))

Floats = npt.NDArray[np.float64]
K = TypeVar("K", bound=str)

# Pseudo-votes: right and wrong ones for each judge, and one for each class. Without them, the votes of a
# judge with no known error would decide alone.
SMOOTHING = 1.0
_TOLERANCE = 1e-7  # change of accuracies and prior between two rounds
_MAX_ROUNDS = 5000
_MIN_ERROR = 1e-10  # minimum distance of accuracies from 0 and 1

Method = Literal["dawid-skene", "majority"]

_MIN_JUDGES = 3  # two judges don't show which of them errs
_UNKNOWN_JUDGE = 0.5  # accuracy of a judge that was not fitted, as smoothing gives it


@dataclass(frozen=True, slots=True)
class Ballots:
    """The distinct ballots with their counts; the axes of `votes` are ballot and judge."""

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
        """Number of judges that did not abstain, by ballot."""
        return np.asarray((self.votes != ABSTAINS).sum(axis=1, dtype=np.int64))


def collect(votes: Iterable[JudgeVote]) -> Ballots:
    """Count the ballots."""
    judges: dict[str, int] = {}
    items = array("Q")
    columns = array("I")
    bits = array("B")
    for vote in votes:
        items.append(keyed_hash(_SEED, vote.candidate_id))
        columns.append(judges.setdefault(vote.judge, len(judges)))
        bits.append(_BITS[vote.vote])
    candidates, rows = np.unique(np.asarray(items), return_inverse=True)
    masks = np.zeros((len(candidates), len(judges)), np.uint8)
    np.bitwise_or.at(masks, (rows, np.asarray(columns)), np.asarray(bits))
    names = tuple(sorted(judges))
    masks = masks[:, [judges[name] for name in names]]
    ballots, counts = np.unique(masks, axis=0, return_counts=True)
    classes = _CLASS[ballots]
    is_judged = ballots > 0
    is_unsure = is_judged & (classes == ABSTAINS)
    return Ballots(names, classes, counts, counts @ is_judged, counts @ is_unsure)


@dataclass(frozen=True, slots=True)
class Fit:
    """The estimates; the axes are judge, class, and (ballot, class)."""

    accuracy: Floats
    prior: Floats
    posterior: Floats
    converged: bool


def fit(ballots: Ballots) -> Fit:
    """Estimate accuracies and prior; ballots on which all abstain are ignored."""
    voted = ballots.voters > 0
    chosen = ballots.chosen[voted].astype(np.float64)
    counts = ballots.counts[voted].astype(np.float64)
    posterior = chosen.sum(axis=1) / ballots.voters[voted, None]
    accuracy, prior = _maximise(posterior, chosen, counts)
    for _ in range(_MAX_ROUNDS):
        before = np.concatenate([accuracy, prior])
        scores = np.einsum("bjk,j->bk", chosen, log_odds(accuracy, prior.size))
        posterior = softmax(scores + np.log(np.maximum(prior, _MIN_ERROR)))
        accuracy, prior = _maximise(posterior, chosen, counts)
        change = np.abs(np.concatenate([accuracy, prior]) - before)
        if change.max() < _TOLERANCE:
            return Fit(accuracy, prior, posterior, converged=True)
    return Fit(accuracy, prior, posterior, converged=False)


def log_odds(accuracy: Floats, classes: int) -> Floats:
    """How much a vote raises the log-odds of its class against each other class."""
    return np.asarray(np.log(accuracy) - np.log((1 - accuracy) / (classes - 1)))


def softmax(scores: Floats) -> Floats:
    """Normalise log-probabilities over the last axis."""
    likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=-1, keepdims=True))


def _maximise(
    posterior: Floats, chosen: Floats, counts: Floats
) -> tuple[Floats, Floats]:
    right = np.einsum("b,bk,bjk->j", counts, posterior, chosen, optimize=True)
    votes = np.einsum("b,bjk->j", counts, chosen)
    share = (right + SMOOTHING) / np.maximum(votes + 2 * SMOOTHING, _MIN_ERROR)
    prior = counts @ posterior + SMOOTHING
    return np.clip(share, _MIN_ERROR, 1 - _MIN_ERROR), prior / prior.sum()


@dataclass(frozen=True, slots=True)
class Judge:
    """The counts and the accuracy of one judge."""

    judged: int  # candidates
    unsure: int  # of these, abstentions and contradictory votes
    accuracy: float | None  # in [0, 1]; chance is 1/3. None: not estimated


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two judges on the candidates on which neither abstained."""

    one: str
    other: str
    candidates: int
    share: float  # of equal votes, in [0, 1]


class Probabilities(NamedTuple):
    """How probable each class of a candidate is, in the order of `CLASSES`."""

    same: float
    opposite: float
    unrelated: float


@dataclass(frozen=True, slots=True)
class Judges:
    """All judges of a run, with the weights of their votes."""

    by_name: Mapping[str, Judge]
    prior: Mapping[Vote, float]  # shares of the classes
    agreements: tuple[Agreement, ...]
    alpha: float | None  # Krippendorff's alpha over all judges; None if undefined
    compared: int  # candidates with votes of at least two judges
    method: Method
    reason: str | None  # why not dawid-skene

    def probabilities(self, votes: Mapping[str, Vote]) -> Probabilities:
        """Probabilities of the classes, given votes without `unsure`."""
        if self.method == "majority":
            return share_of_votes(votes)
        scores = np.log([self.prior[name] for name in CLASSES])
        for name in sorted(votes):
            judge = self.by_name.get(name)
            accuracy = judge.accuracy if judge else None
            if accuracy is None:
                accuracy = _UNKNOWN_JUDGE
            odds = log_odds(np.array(accuracy), len(CLASSES))
            scores[CLASSES.index(votes[name])] += odds
        return Probabilities(*softmax(scores).tolist())

    def to_dict(self) -> dict[str, Any]:
        """The judges for JSON."""
        return asdict(self)


def fit_judges(votes: Iterable[JudgeVote], settings: EnsembleSettings) -> Judges:
    """Estimate the judges from all votes of a run, by Dawid-Skene if there are enough votes."""
    ballots = collect(votes)
    compared = int(ballots.counts[ballots.voters >= 2].sum())
    voting = int((ballots.judged > ballots.unsure).sum())
    reason = None
    if voting < _MIN_JUDGES:
        reason = f"{voting} judges voted; accuracies need {_MIN_JUDGES}"
    elif compared < settings.min_items:
        reason = f"at least two judges voted on {compared} candidates; ensemble.min_items is {settings.min_items}"
    votes_by_class = ballots.chosen.sum(axis=1)
    class_votes = ballots.counts @ votes_by_class + SMOOTHING
    prior = np.asarray(class_votes / class_votes.sum())
    estimated = {}
    if reason is None:
        estimate = fit(ballots)
        if estimate.converged:
            prior = estimate.prior
            accuracies = estimate.accuracy.tolist()
            estimated = dict(zip(ballots.names, accuracies, strict=True))
        else:
            reason = "the estimate of accuracies did not converge"

    agreements = tuple(pairwise(ballots))
    compared_names = {name for pair in agreements for name in (pair.one, pair.other)}
    by_name = {}
    counts = zip(
        ballots.names, ballots.judged.tolist(), ballots.unsure.tolist(), strict=True
    )
    for name, judged, unsure in counts:
        accuracy = estimated.get(name) if name in compared_names else None
        by_name[name] = Judge(judged, unsure, accuracy)
    return Judges(
        by_name=by_name,
        prior=dict(zip(CLASSES, prior.tolist(), strict=True)),
        agreements=agreements,
        alpha=nominal_alpha(votes_by_class, ballots.counts),
        compared=compared,
        method="majority" if reason else "dawid-skene",
        reason=reason,
    )


def share_of_votes(by_judge: Mapping[str, Vote]) -> Probabilities:
    """Shares of the classes among votes; a third each without votes."""
    votes = list(by_judge.values()) or CLASSES
    return Probabilities(*(votes.count(name) / len(votes) for name in CLASSES))


def pairwise(ballots: Ballots) -> Iterator[Agreement]:
    """The agreement of every two judges that voted on the same candidates."""
    voted = ballots.votes != ABSTAINS
    for first, second in combinations(range(len(ballots.names)), 2):
        both = ballots.counts * (voted[:, first] & voted[:, second])
        equal = both * (ballots.votes[:, first] == ballots.votes[:, second])
        count = int(both.sum())
        if count:
            share = int(equal.sum()) / count
            yield Agreement(ballots.names[first], ballots.names[second], count, share)


class _Decision(NamedTuple):
    """The resulting polarity, why a candidate is rejected, and the probability of this result."""

    polarity: Polarity
    reason: str | None
    confidence: float = 0.0


def label(
    candidates: Sequence[Candidate],
    votes: Mapping[str, Sequence[JudgeVote]],
    settings: EnsembleSettings,
    judges: Judges | None = None,
) -> list[LabelledPair]:
    """Label candidates with `settings.aggregation`, in their order."""
    pairs = []
    for candidate in candidates:
        unordered = votes.get(candidate.candidate_id, ())
        ordered = sorted(unordered, key=lambda vote: (vote.judge, vote.vote))
        as_proposed = float(candidate.polarity == "positive")
        pair = LabelledPair(candidate, candidate.polarity, as_proposed, tuple(ordered))
        if settings.aggregation != "union":
            pair = _judged(pair, settings, judges)
        pairs.append(pair)
    return pairs


def votes_by_judge(votes: Iterable[JudgeVote]) -> dict[str, Vote]:
    """The vote of each judge on one candidate; unsure judges and those with several votes are left out."""
    by_judge: dict[str, set[Vote]] = {}
    for vote in votes:
        by_judge.setdefault(vote.judge, set()).add(vote.vote)
    return {
        judge: vote
        for judge in sorted(by_judge)
        for vote in CLASSES
        if by_judge[judge] == {vote}
    }


def _judged(
    pair: LabelledPair, settings: EnsembleSettings, judges: Judges | None
) -> LabelledPair:
    """Label a candidate by `vote` or `weighted`."""
    candidate = pair.candidate
    by_judge = votes_by_judge(pair.votes)
    if len(candidate.llms) > 1:  # a single proposer can't confirm itself
        vote: Vote = "same" if candidate.polarity == "positive" else "opposite"
        by_judge |= dict.fromkeys(candidate.llms, vote)
    probabilities = share_of_votes(by_judge)
    is_weighted = settings.aggregation == "weighted"
    if is_weighted and judges:
        probabilities = judges.probabilities(by_judge)

    decision = _decide(candidate.polarity, probabilities, settings)
    if not by_judge:
        decision = _Decision(candidate.polarity, "undecided")
    elif is_weighted and decision.confidence < settings.min_confidence:
        decision = _Decision(candidate.polarity, "unsure")
    label = float(decision.polarity == "positive")
    if is_weighted:
        label = min(1.0, probabilities.same)
    return replace(
        pair, polarity=decision.polarity, label=label, reason=decision.reason
    )


def _decide(
    polarity: Polarity, probabilities: Probabilities, settings: EnsembleSettings
) -> _Decision:
    """The decision for the most probable option, if it is the only one."""
    same, opposite, unrelated = probabilities
    if polarity == "positive":
        options = {"confirmed": same, "reversed": opposite, "neither": unrelated}
    elif settings.unrelated_is_negative:
        options = {"confirmed": opposite + unrelated, "reversed": same}
    else:
        options = {"confirmed": opposite, "reversed": same, "neither": unrelated}
    winner, best = most_probable(options)
    if winner is None:
        return _Decision(polarity, "undecided", best)
    if winner == "confirmed":
        return _Decision(polarity, None, best)
    if winner == "reversed" and settings.reversed_pairs == "swap":
        other: Polarity = "negative" if polarity == "positive" else "positive"
        return _Decision(other, None, best)
    return _Decision(polarity, "outvoted", best)


def most_probable(options: Mapping[K, float]) -> tuple[K | None, float]:
    """The most probable option with its probability; no option if several are."""
    best = max(options.values())
    winners = [
        option
        for option, probability in options.items()
        if math.isclose(probability, best, rel_tol=1e-9)
    ]
    return winners[0] if len(winners) == 1 else None, best
