"""How far judges agree, raw and beyond chance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from llm_labeler._ensemble.ballots import ABSTAINS, Ballots


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

    Args:
        tally: Votes by unit and class.
        counts: How often each row of `tally` occurs; None: once.

    Returns:
        None where it is undefined: no unit has two votes, or all votes are for one class.
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
