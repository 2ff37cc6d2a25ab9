"""Draw negatives within one repository and split: at random, or with the gaps in time of the positives.

Two issues are the likelier duplicates the nearer in time they were opened. Were negatives drawn at any gap,
the dates alone would tell most labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import islice
from typing import NamedTuple

from gis_builder.store.records import DroppedPair, IssuePair, IssueRef, IssueText
from pairkit.system.seeded import keyed_hash

_AN_HOUR = 3600.0  # below it gaps count as much the same


def mismatch(gap: float, wanted: float) -> float:
    """Difference of two gaps: the logarithm of their ratio, with an hour added to each."""
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


_TRIED = 200  # partners tried for one random negative
# How often the shares may be dealt anew, where the ratio asks for many negatives.
MOST_ROUNDS = 24

WhyNot = Callable[[IssueRef, IssueRef], str | None]
Proposed = Callable[[IssueRef], Iterable[IssueRef]]


class NegativeSampler:
    """Pairs issues anew; each is used as often as it stands in positives, then as often again, and so on."""

    def __init__(self, positives: Sequence[IssuePair], why_not: WhyNot, seed: int) -> None:
        self._share = Counter(ref for pair in positives for ref in (pair.first, pair.second))
        self._left = Counter(self._share)
        self._why_not = why_not
        self._seed = seed
        self._reasons: dict[frozenset[IssueRef], str | None] = {}
        self.pairs: list[IssuePair] = []
        self.dropped: list[DroppedPair] = []

    def is_free(self, ref: IssueRef) -> bool:
        """Whether the issue may be used again in this round."""
        return self._left[ref] > 0

    def is_new(self, one: IssueRef, other: IssueRef) -> bool:
        """Whether the two were not yet tried as a negative."""
        return frozenset((one, other)) not in self._reasons

    def renew_shares(self) -> None:
        """Give every issue its share once more."""
        self._left.update(self._share)

    def draw_hard(self, count: int, proposed: Proposed, kind: str) -> None:
        """Pair issues with what is proposed for them."""
        goal = len(self.pairs) + count
        for anchor in self.tickets("hard"):
            if len(self.pairs) >= goal:
                return
            if self._left[anchor] > 0:
                for other in proposed(anchor):
                    if self._left[other] > 0 and self.try_pair(anchor, other, kind):
                        break

    def draw_random(self, count: int) -> None:
        """Pair issues with one another at random."""
        goal = len(self.pairs) + count
        for turn in range(MOST_ROUNDS):
            before = len(self.pairs)
            self._match(self.tickets(f"random {turn}"), goal)
            if len(self.pairs) >= goal or (turn and len(self.pairs) == before):
                return
            self.renew_shares()

    def draw_random_from(self, others: Iterable[IssueRef], count: int) -> int:
        """Pair issues with random ones of `others`; how many pairs were made."""
        goal, before = len(self.pairs) + count, len(self.pairs)
        queue = sorted(others, key=lambda ref: keyed_hash(self._seed, "other", ref))
        turn = 0
        while queue and len(self.pairs) < goal and turn < MOST_ROUNDS:
            made = len(self.pairs)
            self._left = Counter(self._share)
            for anchor in self.tickets(f"others {turn}"):
                if len(self.pairs) >= goal:
                    break
                self._take_next(anchor, queue)
            if len(self.pairs) == made:
                break
            turn += 1
        return len(self.pairs) - before

    def _take_next(self, anchor: IssueRef, queue: list[IssueRef]) -> None:
        """Give `anchor` the first that will do; the queue turns, so that all are used about equally."""
        for place in range(min(_TRIED, len(queue))):
            if self.try_pair(anchor, queue[place], "random"):
                queue.append(queue.pop(place))
                return

    def _match(self, tickets: list[IssueRef], goal: int) -> None:
        while len(tickets) > 1 and len(self.pairs) < goal:
            anchor = tickets.pop()
            for back in range(1, min(_TRIED, len(tickets)) + 1):
                if self.try_pair(anchor, tickets[-back], "random"):
                    del tickets[-back]
                    break

    def tickets(self, purpose: str) -> list[IssueRef]:
        """Every issue as often as its share has left, in an order that the seed decides."""
        tickets = [(ref, copy) for ref, left in self._left.items() for copy in range(left)]
        tickets.sort(key=lambda t: (keyed_hash(self._seed, purpose, *t), t))
        return [ref for ref, _ in tickets]

    def try_pair(self, anchor: IssueRef, other: IssueRef, kind: str) -> bool:
        """Make this negative unless it was tried before or something speaks against it."""
        pair = frozenset((anchor, other))
        if pair in self._reasons:
            return False  # made or dropped before
        self._reasons[pair] = reason = self._why_not(anchor, other)
        if reason is not None:
            self.dropped.append(DroppedPair(anchor, other, 0, reason))
            return False
        self._left[anchor] -= 1
        self._left[other] -= 1
        self.pairs.append(IssuePair(anchor, other, 0, "", negative_kind=kind))
        return True


_ANCHORS = 40  # looked at for one gap
_NEIGHBOURS = 60  # of an anchor, looked at for one gap
_ATTEMPTS = 8  # at one gap, where what fits turns out to be no negative
_CLOSE = 0.1  # a mismatch below which there's no looking for a better one
_TOLERANCES = (0.25, 0.6)  # mismatches of hard negatives, first pass and second
# A mismatch that is not made while another turn may do better: an issue would rather stand once more.
_POOR, _STRICT_TURNS = 1.5, 1
# The timeline is cut down to what may be taken after so many pairs, or after this part of what it holds.
_FEW, _PARTS = 8, 8

MayTake = Callable[[IssueRef], bool]


class Matching:
    """Draws by gap on behalf of a drawer."""

    def __init__(self, sampler: NegativeSampler, timeline: Timeline, wanted: WantedGaps, seed: int) -> None:
        self._sampler, self._timeline, self._wanted, self._seed = sampler, timeline, wanted, seed

    def draw_hard(self, count: int, proposed: Proposed, kind: str) -> None:
        """Pair up to `count` issues with the texts most like theirs that are a wanted gap away."""
        goal = len(self._sampler.pairs) + count
        for tolerance in _TOLERANCES:
            for anchor in self._sampler.tickets("hard"):
                if len(self._sampler.pairs) >= goal:
                    return
                if self._sampler.is_free(anchor):
                    self._pair_alike(anchor, proposed, kind, tolerance)

    def _pair_alike(self, anchor: IssueRef, proposed: Proposed, kind: str, tolerance: float) -> None:
        for other in proposed(anchor):
            gap = self._timeline.gap(anchor, other)
            wanted = self._wanted.most_like(gap)
            if wanted is None:
                return
            fits = mismatch(gap, wanted) <= tolerance and self._sampler.is_free(other)
            if fits and self._sampler.try_pair(anchor, other, kind):
                self._wanted.take(wanted)
                return

    def draw_random(self) -> None:
        """Pair issues of the positives with one another, each as often as it stands there, and again."""
        for turn in range(MOST_ROUNDS):
            before = len(self._wanted)
            most_unlike = _POOR if turn < _STRICT_TURNS else math.inf
            self._draw(f"random {turn}", self._sampler.is_free, Counter(), most_unlike)
            if not self._wanted or (turn >= _STRICT_TURNS and len(self._wanted) == before):
                return
            self._sampler.renew_shares()

    def draw_others(self) -> None:
        """Pair issues of the positives with any of the timeline, each used about as often as the others."""
        used: Counter[IssueRef] = Counter()
        for turn in range(MOST_ROUNDS):
            before = len(self._wanted)
            self._sampler.renew_shares()
            self._draw(f"others {turn}", partial(_is_used_at_most, used, turn), used, math.inf)
            if len(self._wanted) in (0, before):
                return

    def _draw(self, purpose: str, may_take: MayTake, used: Counter[IssueRef], most_unlike: float) -> None:
        """Make a pair for every wanted gap, as far as there is one, and count the partners."""
        anchors = deque(dict.fromkeys(self._sampler.tickets(purpose)))
        left, until = self._timeline, 0
        for turn, gap in enumerate(self._wanted.hardest_first()):
            if turn >= until:  # those that may not be taken any more would stand in the way
                left = left.only(may_take)
                until = turn + max(_FEW, len(left) // _PARTS)
            if partner := self._pair_at(gap, anchors, left, may_take, most_unlike):
                used[partner] += 1

    def _pair_at(
        self,
        gap: float,
        anchors: deque[IssueRef],
        left: Timeline,
        may_take: MayTake,
        most_unlike: float,
    ) -> IssueRef | None:
        """Make the pair whose gap is most like this one, among some anchors; the partner in it."""
        for _ in range(_ATTEMPTS):
            fits = self._fits(gap, anchors, left, may_take)
            fits.sort(key=lambda fit: (fit.unlike, fit.draw))
            for fit in fits:
                if fit.unlike > most_unlike:
                    continue
                if self._sampler.try_pair(fit.anchor, fit.partner, "random"):
                    self._wanted.take(gap)
                    return fit.partner
        return None

    def _fits(self, gap: float, anchors: deque[IssueRef], left: Timeline, may_take: MayTake) -> list[_Fit]:
        """The best partner of each of some anchors, up to the first that fits well."""
        found: list[_Fit] = []
        for _ in range(min(_ANCHORS, len(anchors))):
            anchor = anchors.popleft()
            if not self._sampler.is_free(anchor):
                continue
            anchors.append(anchor)
            fit = self._best_partner(anchor, gap, left, may_take)
            if fit is not None:
                found.append(fit)
                if fit.unlike <= _CLOSE:
                    break
        return found

    def _best_partner(self, anchor: IssueRef, gap: float, left: Timeline, may_take: MayTake) -> _Fit | None:
        """The partner nearest to the gap."""
        for unlike, other in islice(left.near(anchor, gap), _NEIGHBOURS):
            if may_take(other) and self._sampler.is_new(anchor, other):
                return _Fit(anchor, other, unlike, keyed_hash(self._seed, "gap", anchor, other))
        return None


class _Fit(NamedTuple):
    """A pair that might be made."""

    anchor: IssueRef
    partner: IssueRef
    unlike: float  # the mismatch of its gap with the wanted one
    draw: int  # decides between pairs that fit alike


def _is_used_at_most(used: Counter[IssueRef], most: int, ref: IssueRef) -> bool:
    return used[ref] <= most
