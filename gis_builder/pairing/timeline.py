"""Issues in order of time, and the gaps that negatives should have: those of the positives.

Two issues are the likelier duplicates the nearer in time they were opened. Were negatives drawn at any gap,
the dates alone would tell most labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge

from gis_builder.store.records import IssueRef, IssueText

_AN_HOUR = 3600.0  # below it gaps count as much the same


def mismatch(gap: float, wanted: float) -> float:
    """How unlike two gaps are: the logarithm of their ratio, an hour added to each."""
    return abs(math.log((gap + _AN_HOUR) / (wanted + _AN_HOUR)))


def opening_times(texts: Mapping[IssueRef, IssueText], refs: Iterable[IssueRef]) -> dict[IssueRef, float]:
    """When each issue was opened, in seconds."""
    return {ref: datetime.fromisoformat(texts[ref].created_at).timestamp() for ref in refs}


class Timeline:
    """Some issues in the order in which they were opened; gaps are in seconds."""

    def __init__(self, opened: Mapping[IssueRef, float], refs: Collection[IssueRef]) -> None:
        self._at = opened
        self._order = sorted(refs, key=lambda ref: (opened[ref], ref))
        self._times = [opened[ref] for ref in self._order]

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[IssueRef]:
        return iter(self._order)

    def only(self, may_stay: Callable[[IssueRef], bool]) -> Timeline:
        """Some of the issues."""
        return Timeline(self._at, [ref for ref in self._order if may_stay(ref)])

    def gap(self, one: IssueRef, other: IssueRef) -> float:
        """The time between two of the issues."""
        return abs(self._at[one] - self._at[other])

    def near(self, anchor: IssueRef, gap: float) -> Iterator[tuple[float, IssueRef]]:
        """The other issues, from the one whose gap to `anchor` is most like `gap`, each with its mismatch."""
        at = self._at[anchor]
        own, after, before = (bisect_left(self._times, time) for time in (at, at + gap, at - gap))
        walks = (
            range(after, len(self._order)),
            range(after - 1, own - 1, -1),
            range(before, own),
            range(before - 1, -1, -1),
        )
        for unlike, place in merge(*(self._walk(at, gap, walk) for walk in walks)):
            if self._order[place] != anchor:
                yield unlike, self._order[place]

    def _walk(self, at: float, gap: float, places: Iterable[int]) -> Iterator[tuple[float, int]]:
        return ((mismatch(abs(self._times[place] - at), gap), place) for place in places)


class WantedGaps:
    """Gaps still to be given to negatives: as many as negatives, spread as those of the positives are."""

    def __init__(self, gaps: Sequence[float], count: int) -> None:
        ordered = sorted(gaps)
        self._left = [ordered[(2 * place + 1) * len(ordered) // (2 * count)] for place in range(count)]

    def __len__(self) -> int:
        return len(self._left)

    def most_like(self, gap: float) -> float | None:
        """The wanted gap that is most like `gap`; None if there is no more."""
        place = bisect_left(self._left, gap)
        around = self._left[max(0, place - 1) : place + 1]
        return min(around, key=lambda wanted: mismatch(gap, wanted), default=None)

    def take(self, wanted: float) -> None:
        """Cross a wanted gap off, as a negative has it, or nearly so."""
        del self._left[bisect_left(self._left, wanted)]

    def hardest_first(self) -> list[float]:
        """What is left, the shortest and the longest before those in the middle: they fit fewest issues."""
        middle = (len(self._left) - 1) / 2
        places = sorted(range(len(self._left)), key=lambda place: (-abs(place - middle), place))
        return [self._left[place] for place in places]
