"""Strategies that rank issues as negatives; `STRATEGIES` lists them.

A strategy's function takes the texts of one repository and split, and returns for each text the indices of
other texts, best first. The checks for false negatives (same cluster, near-duplicate, a mention, a likely
unmarked duplicate) are the same for every strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pairkit.base.errors import DataError

if TYPE_CHECKING:
    from pairkit.similarity.bm25 import Scores

_CACHED_VECTORS = 512  # cached score vectors, of four bytes per text
_RETRIEVED = 50  # texts considered for one hard negative


class PartnerRanking(Protocol):
    """Maps the index of a text to the indices of its candidate negatives, best first."""

    def __getitem__(self, index: int, /) -> Iterable[object]:
        """The indices of other texts."""


Rank: TypeAlias = Callable[[Sequence[str]], PartnerRanking]
"""A user's strategy: maps the texts of one repository and split to a `PartnerRanking`."""


@dataclass(frozen=True)
class NegativeStrategy:
    """A strategy: the share of its negatives, the function, and the value of `negative_kind`."""

    share: float = 0.0
    rank: Rank | None = None
    kind: str = "hard"

    def ranking(self, texts: Sequence[str]) -> Callable[[int], Iterable[int]]:
        """Rank texts and return a function that validates the candidates of each."""
        ranking: Any = self.rank(texts) if self.rank else ()

        def candidates(index: int) -> Iterable[int]:
            try:
                indices = [int(partner) for partner in ranking[index]]
            except (TypeError, ValueError, LookupError) as error:
                raise DataError(
                    f"negatives by {self.kind}: expected a list of indices of other texts for each of "
                    f"{len(texts)} texts; text {index} has none ({error})"
                ) from error
            for partner in indices:
                if not 0 <= partner < len(texts):
                    raise DataError(
                        f"negatives by {self.kind}: expected indices of {len(texts)} texts, got {partner}"
                    )
            return indices

        return candidates


def strategy_of(rank: str | Rank) -> NegativeStrategy:
    """The strategy with this name or function."""
    if isinstance(rank, str):
        return STRATEGIES[rank]
    return NegativeStrategy(1.0, rank, qualified_name(rank))


def qualified_name(function: str | Rank) -> str:
    """The name of a strategy, or that of a user's function, such as `my_module.by_meaning`."""
    if isinstance(function, str):
        return function
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


class Retriever:
    """Ranks texts by BM25."""

    def __init__(self, texts: Sequence[str]) -> None:
        from pairkit.similarity.bm25 import Bm25

        index = Bm25(texts)

        # A decorated method would keep this object, with its large index, alive.
        @lru_cache(_CACHED_VECTORS)
        def scores(position: int) -> Scores:
            """Score every text for the distinct words of the text at `position`."""
            return index.scores(texts[position])

        self.scores = scores

    def __getitem__(self, position: int) -> list[int]:
        """The texts most similar to the one at `position`, best first; ties in order of position."""
        from pairkit.similarity.bm25 import best

        partners = map(int, best(self.scores(position), _RETRIEVED + 1))
        return [partner for partner in partners if partner != position][:_RETRIEVED]

    def share(self, first: int, second: int) -> float:
        """The larger of both directions' scores, each as a share of the query's score with itself."""
        return max(
            self._relative_score(first, second), self._relative_score(second, first)
        )

    def _relative_score(self, query: int, document: int) -> float:
        scores = self.scores(query)
        maximum = float(scores[query])
        return float(scores[document]) / maximum if maximum > 0 else 0.0


STRATEGIES = {
    "random": NegativeStrategy(),  # as in the papers
    "mixed": NegativeStrategy(0.5, Retriever),
    "hard": NegativeStrategy(1.0, Retriever),
}
