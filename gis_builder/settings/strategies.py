"""Strategies that rank issues as negatives: each is one function and one line of `STRATEGIES`.

The function takes the texts of all issues of one repository and split, and returns for each text the indices
of other texts, best first. The same checks for false negatives (same cluster, near-duplicate text, a mention,
a likely unmarked duplicate) follow for every strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pairkit.app.errors import DataError

if TYPE_CHECKING:
    from pairkit.similarity.bm25 import Scores

_CACHED_VECTORS = 512  # cached score vectors, of four bytes per text
_RETRIEVED = 50  # texts considered for one hard negative


class PartnerRanking(Protocol):
    """For each text, by its index, the indices of other texts to try as its negative, best first."""

    def __getitem__(self, place: int, /) -> Iterable[Any]:
        """The indices of other texts; whole numbers."""


Rank: TypeAlias = Callable[[Sequence[str]], PartnerRanking]
"""A user's strategy: maps the texts of one repository and split to a `PartnerRanking`."""


@dataclass(frozen=True, slots=True)
class NegativeStrategy:
    """How the negatives of a build are found."""

    share: float = 0.0
    rank: Rank | None = None
    kind: str = "hard"

    def ranking(self, texts: Sequence[str]) -> Callable[[int], Iterable[int]]:
        """Rank these texts by the function."""
        found: Any = self.rank(texts) if self.rank else ()

        def others(place: int) -> Iterable[int]:
            try:
                places = [int(other) for other in found[place]]
            except (TypeError, ValueError, LookupError) as error:
                raise DataError(
                    f"negatives by {self.kind}: expected a list of indices of other texts for each of "
                    f"{len(texts)} texts; text {place} has none ({error})"
                ) from error
            if wrong := [other for other in places if not 0 <= other < len(texts)]:
                raise DataError(f"negatives by {self.kind}: {wrong[0]} is not an index of {len(texts)} texts")
            return places

        return others


def strategy_of(given: str | Rank) -> NegativeStrategy:
    """The strategy of a name, or of a function."""
    return (
        STRATEGIES[given] if isinstance(given, str) else NegativeStrategy(1.0, given, qualified_name(given))
    )


def qualified_name(function: Rank) -> str:
    """The name that identifies a user's function, such as `my_module.by_meaning`."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


class Retriever:
    """BM25: scores every text of a fixed list against one of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        from pairkit.similarity.bm25 import Bm25

        index = Bm25(texts)

        @lru_cache(_CACHED_VECTORS)  # not on a method: its cache would keep the large index alive
        def scores(position: int) -> Scores:
            """The BM25 score of every text for the distinct words of the text at `position`."""
            return index.scores(texts[position])

        self.scores = scores

    def __getitem__(self, position: int) -> list[int]:
        """The texts most similar to the one at `position`, best first."""
        return self.best(position, _RETRIEVED)

    def share(self, one: int, other: int) -> float:
        """The larger of both scores, each as a share of the query text's score with itself."""
        return max(self._relative_score(one, other), self._relative_score(other, one))

    def best(self, position: int, count: int) -> list[int]:
        """The `count` other texts that score highest and above 0, best first; ties in order of position."""
        from pairkit.similarity.bm25 import best

        return [int(other) for other in best(self.scores(position), count + 1) if other != position][:count]

    def _relative_score(self, asking: int, other: int) -> float:
        scores = self.scores(asking)
        own = float(scores[asking])
        return float(scores[other]) / own if own > 0 else 0.0


STRATEGIES = {
    "random": NegativeStrategy(),  # as in the papers
    "mixed": NegativeStrategy(0.5, Retriever),
    "hard": NegativeStrategy(1.0, Retriever),
}
