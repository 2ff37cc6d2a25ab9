"""Judges of known accuracy, and candidates of known class."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from llm_labeler.judging.judges import CLASSES
from llm_labeler.records import JudgeVote, Vote


def classes(n: int, prior: Sequence[float], seed: int) -> dict[str, Vote]:
    """True classes of n candidates."""
    chance = random.Random(seed)
    return {f"{k:016x}": chance.choices(CLASSES, prior)[0] for k in range(n)}


def judgements(
    truth: Mapping[str, Vote],
    accuracy: Mapping[str, float],
    seed: int,
    *,
    unsure: float = 0.0,
    leave_out: bool = False,
) -> list[JudgeVote]:
    """What judges say; `leave_out` has each candidate proposed, and so not judged, by one of them in turn."""
    chance = random.Random(seed)
    said = []
    for place, (id_, right) in enumerate(truth.items()):
        for number, (judge, skill) in enumerate(accuracy.items()):
            wrong = [name for name in CLASSES if name != right]
            vote: Vote = right if chance.random() < skill else chance.choice(wrong)
            if leave_out and place % len(accuracy) == number:
                continue
            said.append(JudgeVote(id_, judge, "unsure" if chance.random() < unsure else vote))
    return said
