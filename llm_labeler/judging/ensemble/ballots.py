"""All judgements of a run as small arrays.

A vote is one of four words, so that most candidates were judged alike: equal ballots are kept once, with how
often they occur. What is computed from them then costs by kinds of ballots, not by candidates, and can't
depend on the order of the judgements.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from llm_labeler.records import VOTES, Judgement, Vote
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


def collect(judgements: Iterable[Judgement]) -> Ballots:
    """Count the ballots; a judge that said two things of one candidate abstains there.

    In memory a judgement takes 13 bytes, since candidates are known by 64 bits of a hash.
    """
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


def cast_votes(votes: Iterable[Judgement]) -> dict[str, Vote]:
    """What each judge says of one candidate, in order of their names; those that abstain are left out."""
    said: dict[str, set[Vote]] = {}
    for vote in votes:
        said.setdefault(vote.judge, set()).add(vote.vote)
    return {judge: vote for judge in sorted(said) for vote in CLASSES if said[judge] == {vote}}


def _distinct(said: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    if not said.size:
        return said, np.zeros(0, np.int64)
    ballots, counts = np.unique(said, axis=0, return_counts=True)
    return ballots, counts.astype(np.int64)
