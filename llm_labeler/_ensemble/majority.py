"""What votes say without a model of the judges: each counts alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from llm_labeler._ensemble.ballots import ABSTAINS, CLASSES, Ballots
from llm_labeler._ensemble.dawid_skene import SMOOTHING, Floats, accuracy_of
from llm_labeler._records import Vote


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
