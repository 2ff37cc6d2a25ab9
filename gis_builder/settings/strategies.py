"""Which issues are tried as negatives: a strategy is one function, and one line of `STRATEGIES`.

The function is given the texts of all issues of one repository and split, and returns for each of them the
places of others, those first that should be tried first. What speaks against a negative (one cluster,
near-identical texts, a mention, a likely duplicate that nobody marked) is looked at for all strategies alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pairkit.app.errors import DataError

if TYPE_CHECKING:
    from pairkit.similarity.bm25 import Scores

_REMEMBERED = 512  # score vectors kept; one is four bytes a text
_RETRIEVED = 50  # texts considered for one hard negative


class PartnerRanking(Protocol):
    """For each text, by its place, the places of others to try as its negative, best first."""

    def __getitem__(self, place: int, /) -> Iterable[Any]:
        """The places of others; whole numbers."""


Rank: TypeAlias = Callable[[Sequence[str]], PartnerRanking]
"""A strategy of one's own: the texts of one repository and split in, a `Ranking` of them out."""


@dataclass(frozen=True, slots=True)
class NegativeStrategy:
    """How the negatives of a build are found."""

    share: float = 0.0
    rank: Rank | None = None
    kind: str = "hard"

    def ranking(self, texts: Sequence[str]) -> Callable[[int], Iterable[int]]:
        """Ask the function about these texts."""
        found: Any = self.rank(texts) if self.rank else ()

        def others(place: int) -> Iterable[int]:
            try:
                places = [int(other) for other in found[place]]
            except (TypeError, ValueError, LookupError) as error:
                raise DataError(
                    f"negatives by {self.kind}: expected for each of {len(texts)} texts a list of places of "
                    f"others; for text {place} it is none ({error})"
                ) from error
            if wrong := [other for other in places if not 0 <= other < len(texts)]:
                raise DataError(f"negatives by {self.kind}: {wrong[0]} is no place among {len(texts)} texts")
            return places

        return others


def strategy_of(given: str | Rank) -> NegativeStrategy:
    """The strategy of a name, or of a function."""
    return (
        STRATEGIES[given] if isinstance(given, str) else NegativeStrategy(1.0, given, qualified_name(given))
    )


def qualified_name(function: Rank) -> str:
    """What tells a function of somebody's from others, such as `my_module.by_meaning`."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


class Retriever:
    """BM25: scores every text of a fixed list against one of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        from pairkit.similarity.bm25 import Bm25

        index = Bm25(texts)

        @lru_cache(_REMEMBERED)  # no method's, which would hold on to the index, and that is large
        def scores(position: int) -> Scores:
            """The BM25 score of every text for the distinct words of the text at `position`."""
            return index.scores(texts[position])

        self.scores = scores

    def __getitem__(self, position: int) -> list[int]:
        """The texts most like the one at `position`, most like first."""
        return self.best(position, _RETRIEVED)

    def share(self, one: int, other: int) -> float:
        """The larger score of one for the other, as a share of the asking text's score for itself."""
        return max(self._one_way(one, other), self._one_way(other, one))

    def best(self, position: int, count: int) -> list[int]:
        """The `count` other texts that score highest and above 0, best first; ties in order of position."""
        from pairkit.similarity.bm25 import best

        return [int(other) for other in best(self.scores(position), count + 1) if other != position][:count]

    def _one_way(self, asking: int, other: int) -> float:
        scores = self.scores(asking)
        own = float(scores[asking])
        return float(scores[other]) / own if own > 0 else 0.0


STRATEGIES = {
    "random": NegativeStrategy(),  # as in the papers
    "mixed": NegativeStrategy(0.5, Retriever),
    "hard": NegativeStrategy(1.0, Retriever),
}
