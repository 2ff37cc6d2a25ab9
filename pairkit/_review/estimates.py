"""How right labels are: shares of judged pairs, weighted to the whole dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pairkit.agreement import Figure, weighted_share
from pairkit.judgements import Decision, JudgedPair, ReviewSettings
from pairkit.judgements.records import TOP_GRADE

_NEAR = 1  # grades; a score that is no further from people's is right


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was found about some of the pairs.

    Attributes:
        judged: Pairs that anybody judged.
        unsure: Those of which nobody could tell.
        disputed: Those of which as many say one thing as another.
        right: The share whose label people confirm, of the rest, which are `right.n`.
    """

    judged: int
    unsure: int
    disputed: int
    right: Figure


class Estimates:
    """The judged pairs of a review, each with its weight: how many pairs of its stratum it stands for."""

    def __init__(
        self,
        settings: ReviewSettings,
        strata: Mapping[str, int],
        pairs: Mapping[str, JudgedPair],
        decisions: Mapping[str, Decision],
    ) -> None:
        self._settings, self._strata = settings, strata
        self._judged = [(pairs[pair_id], decision) for pair_id, decision in decisions.items()]
        self._decided = Counter(pair.stratum for pair, decision in self._judged if decision.value is not None)

    @property
    def unseen(self) -> dict[str, int]:
        """Strata without a decided pair, of which nothing is known; with how many pairs each has."""
        return {name: size for name, size in self._strata.items() if not self._decided[name]}

    def all(self) -> Estimate:
        """Of the whole dataset, but for what is `unseen`."""
        return self._estimate(self._judged)

    def by(self, fact: str) -> dict[str, Estimate]:
        """Of pairs by the value of one fact; those of which it is not known are left out."""
        return self._by(lambda pair, _: pair.facts.get(fact, ""))

    def by_relation(self) -> dict[str, Estimate]:
        """Of pairs that people gave the same relation."""
        return self._by(lambda _, decision: decision.relation)

    def _by(self, name: Callable[[JudgedPair, Decision], str]) -> dict[str, Estimate]:
        names = sorted({name(*one) for one in self._judged} - {""})
        return {
            value: self._estimate([one for one in self._judged if name(*one) == value]) for value in names
        }

    def _estimate(self, judged: Sequence[tuple[JudgedPair, Decision]]) -> Estimate:
        states = Counter(decision.state for _, decision in judged)
        decided = [(pair, decision.value) for pair, decision in judged if decision.value is not None]
        right = [is_right(pair.label, value, self._settings) for pair, value in decided]
        weights = None if self._settings.active else list(self._weights(pair for pair, _ in decided))
        return Estimate(len(judged), states["unsure"], states["disputed"], weighted_share(right, weights))

    def _weights(self, pairs: Iterable[JudgedPair]) -> Iterable[float]:
        return (self._strata[pair.stratum] / self._decided[pair.stratum] for pair in pairs)


def is_right(label: float, value: float, settings: ReviewSettings) -> bool:
    """Whether people confirm a label.

    Args:
        label: The dataset's.
        value: People's, 1 or 0; or a mean grade of 0 to 5, which confirms a score that is no more than 1 from
            it, and a label of 1 from 2.5 on.
        settings: What was asked.
    """
    if settings.asked == "labels":
        return (label / settings.top >= 0.5) == (value == 1)
    if settings.label_kind == "binary":
        return (value >= TOP_GRADE / 2) == (label == 1)
    return abs(value - TOP_GRADE * label / settings.top) <= _NEAR
