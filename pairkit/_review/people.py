"""Who did what, and how far they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pairkit.agreement import Figure, Scale, cohen_kappa, krippendorff_alpha, weighted_share
from pairkit.judgements import REVIEWER, Judgement, ReviewSettings
from pairkit.judgements.records import SKIP, UNSURE


@dataclass(frozen=True, slots=True)
class Work:
    """What one reviewer did.

    Attributes:
        judged: Pairs, those of second looks not counted.
        unsure: Of which the person could not tell.
        skipped: That the person passed over.
        minutes: How long pairs were in view.
        seconds_each: A pair, on average.
        repeats: The share of second looks that led to the same answer.
    """

    judged: int
    unsure: int
    skipped: int
    minutes: float
    seconds_each: float | None
    repeats: Figure


def agreement(
    judgements: Iterable[Judgement], settings: ReviewSettings
) -> tuple[dict[tuple[str, str], Figure], Figure]:
    """Cohen's kappa of each two reviewers of the same pairs, and Krippendorff's alpha of all of them."""
    said = _values(judgements, settings)
    return _kappas(said, settings), krippendorff_alpha(_units(said.values()), _scale(settings))


def _scale(settings: ReviewSettings) -> Scale:
    return "nominal" if settings.asked == "labels" else "interval"


def _values(judgements: Iterable[Judgement], settings: ReviewSettings) -> dict[str, dict[str, float]]:
    """What each reviewer could tell of which pair, at first sight."""
    said = defaultdict[str, dict[str, float]](dict)
    for judgement in judgements:
        if judgement.role == REVIEWER and judgement.turn == 0 and judgement.answer in settings.answers:
            said[judgement.person][judgement.pair_id] = settings.answers[judgement.answer]
    return dict(sorted(said.items()))


def _kappas(
    said: Mapping[str, Mapping[str, float]], settings: ReviewSettings
) -> dict[tuple[str, str], Figure]:
    found = {}
    for one, other in combinations(said, 2):
        if both := sorted(said[one].keys() & said[other].keys()):
            first, second = ([said[name][pair_id] for pair_id in both] for name in (one, other))
            found[one, other] = cohen_kappa(first, second, _scale(settings))
    return found


def _units(said: Iterable[Mapping[str, float]]) -> Sequence[Sequence[float]]:
    units = defaultdict[str, list[float]](list)
    for values in said:
        for pair_id, value in values.items():
            units[pair_id].append(value)
    return [units[pair_id] for pair_id in sorted(units)]


def work_of(judgements: Iterable[Judgement]) -> dict[str, Work]:
    """What each reviewer did, by name."""
    mine = defaultdict[str, list[Judgement]](list)
    for judgement in judgements:
        if judgement.role == REVIEWER:
            mine[judgement.person].append(judgement)
    return {name: _work(said) for name, said in sorted(mine.items())}


def _work(said: Sequence[Judgement]) -> Work:
    heard = [judgement for judgement in said if judgement.answer != SKIP]
    first = {judgement.pair_id: judgement for judgement in heard if judgement.turn == 0}
    again = [
        judgement.answer == first[judgement.pair_id].answer
        for judgement in heard
        if judgement.turn and judgement.pair_id in first
    ]
    seconds = sum(judgement.seconds for judgement in said)
    return Work(
        judged=len(first),
        unsure=sum(judgement.answer == UNSURE for judgement in first.values()),
        skipped=len(said) - len(heard),
        minutes=round(seconds / 60, 1),
        seconds_each=round(seconds / len(said), 1) if said else None,
        repeats=weighted_share(again),
    )
