"""A strategy of somebody's own: a function that decides about each candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from llm_labeler._ensemble.judges import Judges
from llm_labeler._ensemble.strategies import Decide, Decision
from llm_labeler._records import Candidate, Polarity, Vote
from llm_labeler._settings import EnsembleSettings
from pairkit.errors import DataError


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a strategy decides about.

    Attributes:
        text: The source sentence.
        candidate: The sentence that was proposed for it, and passed the filters.
        polarity: As what: `positive` or `negative`.
        llms: Who proposed it, in order of their names.
        votes: What judges said, by their names; of those that were unsure nothing.
    """

    text: str
    candidate: str
    polarity: Polarity
    llms: tuple[str, ...]
    votes: Mapping[str, Vote]


StrategyFunction: TypeAlias = Callable[[Proposed], bool | float | None]
"""True keeps a pair with its usual label, a number in [0, 1] with that one; False and None turn it down."""


def own_strategy(function: StrategyFunction, text: str) -> Decide:
    """The function as a strategy for one text's candidates; what it turns down is `own_strategy`."""

    def decide(
        candidate: Candidate, cast: Mapping[str, Vote], settings: EnsembleSettings, _judges: Judges | None
    ) -> Decision:
        said = function(Proposed(text, candidate.candidate, candidate.polarity, candidate.llms, cast))
        usual = 1.0 if candidate.polarity == "positive" else settings.antonym_score
        if said is None or isinstance(said, bool):
            return Decision(candidate.polarity, usual, None if said else "own_strategy")
        if not (isinstance(said, int | float) and 0 <= said <= 1):
            raise DataError(
                f"the strategy returned {said!r:.60} for {candidate.candidate!r:.60}; expected True, False,"
                " None or a label from 0 to 1"
            )
        return Decision(candidate.polarity, float(said), None)

    return decide
