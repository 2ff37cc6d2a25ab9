"""How reliable each judge is, from the votes alone: Dawid and Skene's model (1979) with one coin for each.

Judge j names the true class with probability a_j (its accuracy), else one of the other two, each as likely
as the other. Classes and accuracies are estimated in turn (expectation-maximisation), beginning with the
shares of the votes. An abstention says nothing. The model takes judges' errors for independent of one
another; LLMs' are not quite, so that the posteriors are somewhat too sure of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from llm_labeler.judging.ensemble.ballots import Ballots

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
