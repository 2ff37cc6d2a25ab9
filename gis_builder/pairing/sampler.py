"""Draw negatives within one repository and split, at random or with the time gaps of the positives.

Duplicates are often opened close together in time. If negatives had random gaps, the dates would reveal most
labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import NamedTuple

from gis_builder.store import DroppedPair, IssuePair, IssueRef, IssueText
from pairkit.base.system.seeded import keyed_hash

_AN_HOUR = 3600.0  # shorter gaps count as nearly equal

_MAX_TRIES = 200  # partners to try for one random negative
_MAX_ROUNDS = 24  # times that every issue may get its quota again, for high ratios

WhyNot = Callable[[IssueRef, IssueRef], str | None]
Candidates = Callable[[IssueRef], Iterable[IssueRef]]
TryPair = Callable[[IssueRef, IssueRef], bool]

_MAX_ANCHORS = 40  # to examine for one gap
_MAX_NEIGHBOURS = 60  # of an anchor, to examine for one gap
_MAX_ATTEMPTS = 8  # at one gap, if the best pairs are not allowed
_GOOD = 0.1  # a mismatch that ends the search
# The largest mismatch that a hard negative may have, in the first and in the second pass.
_TOLERANCES = (0.25, 0.6)
# In the first turns a worse mismatch is rejected: using an issue once more may give a better one.
_POOR = 1.5
_STRICT_TURNS = 1
# The timeline is reduced to free issues after at least this many pairs, and this fraction of its length.
_MIN_PAIRS = 8
_FRACTION = 8

MayTake = Callable[[IssueRef], bool]


def mismatch(gap: float, target: float) -> float:
    """Difference of two gaps: the logarithm of their ratio, with an hour added to each."""
    return abs(math.log((gap + _AN_HOUR) / (target + _AN_HOUR)))


def opening_times(
    texts: Mapping[IssueRef, IssueText],
    refs: Iterable[IssueRef],
) -> dict[IssueRef, float]:
    """The opening time of each issue in seconds."""
    return {
        ref: datetime.fromisoformat(texts[ref].created_at).timestamp() for ref in refs
    }


class PositiveEnd(NamedTuple):
    """An issue of a positive, and the other one, which may be in another repository."""

    issue: IssueRef
    other: IssueRef


class Timeline:
    """Issues in the order of their opening; gaps are in seconds."""

    def __init__(
        self, opened: Mapping[IssueRef, float], refs: Collection[IssueRef]
    ) -> None:
        self._opened = opened
        self._order = sorted(refs, key=lambda ref: (opened[ref], ref))
        self._times = [opened[ref] for ref in self._order]

    def __len__(self) -> int:
        return len(self._order)

    def only(self, may_stay: Callable[[IssueRef], bool]) -> Timeline:
        """The timeline of the issues that fulfil a condition."""
        return Timeline(self._opened, [ref for ref in self._order if may_stay(ref)])

    def gap(self, first: IssueRef, second: IssueRef) -> float:
        """The time between two issues."""
        return abs(self._opened[first] - self._opened[second])

    def near(self, anchor: IssueRef, gap: float) -> Iterator[tuple[float, IssueRef]]:
        """The other issues by how well their gap to `anchor` matches `gap`, each with its mismatch."""
        time = self._opened[anchor]
        here = bisect_left(self._times, time)
        after = bisect_left(self._times, time + gap)
        before = bisect_left(self._times, time - gap)
        outwards_and_inwards = (
            range(after, len(self._order)),
            range(after - 1, here - 1, -1),
            range(before, here),
            range(before - 1, -1, -1),
        )
        walks = [self._walk(time, gap, indices) for indices in outwards_and_inwards]
        for difference, index in merge(*walks):
            if self._order[index] != anchor:
                yield difference, self._order[index]

    def _walk(
        self, time: float, gap: float, indices: Iterable[int]
    ) -> Iterator[tuple[float, int]]:
        for index in indices:
            own_gap = abs(self._times[index] - time)
            yield mismatch(own_gap, gap), index


class WantedGaps:
    """The gaps that negatives still need: quantiles of the positives' gaps, one for each negative."""

    def __init__(self, gaps: Sequence[float], count: int) -> None:
        ordered = sorted(gaps)
        places = ((2 * n + 1) * len(ordered) // (2 * count) for n in range(count))
        self._left = [ordered[place] for place in places]

    def __len__(self) -> int:
        return len(self._left)

    def nearest(self, gap: float) -> float | None:
        """The wanted gap that is most similar to `gap`; None if no gap is left."""
        index = bisect_left(self._left, gap)
        around = self._left[max(0, index - 1) : index + 1]
        return min(around, key=lambda wanted: mismatch(gap, wanted), default=None)

    def take(self, wanted: float) -> None:
        """Remove a wanted gap, because a negative has it now."""
        del self._left[bisect_left(self._left, wanted)]

    def hardest_first(self) -> list[float]:
        """The remaining gaps, shortest and longest before the middle: the extremes fit the fewest issues."""
        count = len(self._left)
        middle = (count - 1) / 2
        outside_first = sorted(range(count), key=lambda index: -abs(index - middle))
        return [self._left[index] for index in outside_first]


class NegativeSampler:
    """Pairs issues in rounds; in each round an issue may be used as often as in positives (its quota)."""

    def __init__(
        self, positives: Iterable[PositiveEnd], why_not: WhyNot, seed: int
    ) -> None:
        self._quota = Counter(positive.issue for positive in positives)
        self._left = Counter(self._quota)
        self._why_not = why_not
        self._seed = seed
        self._tried: set[frozenset[IssueRef]] = set()
        self.pairs: list[IssuePair] = []
        self.dropped: list[DroppedPair] = []

    def is_free(self, ref: IssueRef) -> bool:
        """Whether the issue has quota left in this round."""
        return self._left[ref] > 0

    def is_new(self, first: IssueRef, second: IssueRef) -> bool:
        """Whether the pair has not been tried yet."""
        return frozenset((first, second)) not in self._tried

    def renew_quotas(self) -> None:
        """Add its quota to every issue again."""
        self._left.update(self._quota)

    def draw_hard(self, count: int, candidates: Candidates, try_pair: TryPair) -> None:
        """Pair issues with their candidates."""
        goal = len(self.pairs) + count
        for anchor in self.draw_order("hard"):
            if len(self.pairs) >= goal:
                return
            if self.is_free(anchor):
                for partner in candidates(anchor):
                    if self.is_free(partner) and try_pair(anchor, partner):
                        break

    def draw_random(self, count: int) -> None:
        """Pair issues of the positives at random with each other."""
        goal = len(self.pairs) + count
        for turn in range(_MAX_ROUNDS):
            before = len(self.pairs)
            self._pair_up(self.draw_order(f"random {turn}"), goal)
            is_stuck = turn > 0 and len(self.pairs) == before
            if is_stuck or len(self.pairs) >= goal:
                return
            self.renew_quotas()

    def _pair_up(self, refs: list[IssueRef], goal: int) -> None:
        while len(refs) > 1 and len(self.pairs) < goal:
            anchor = refs.pop()
            for back in range(1, min(_MAX_TRIES, len(refs)) + 1):
                if self.try_pair(anchor, refs[-back], "random"):
                    del refs[-back]
                    break

    def draw_random_from(self, issues: Iterable[IssueRef], count: int) -> None:
        """Pair issues of the positives with random ones of `issues`."""
        goal = len(self.pairs) + count
        queue = sorted(issues, key=lambda ref: keyed_hash(self._seed, "other", ref))
        for turn in range(_MAX_ROUNDS):
            before = len(self.pairs)
            self._left = Counter(self._quota)
            for anchor in self.draw_order(f"others {turn}"):
                if len(self.pairs) == goal:
                    return
                self._pair_with_next(anchor, queue)
            if len(self.pairs) in (before, goal):
                return

    def _pair_with_next(self, anchor: IssueRef, queue: list[IssueRef]) -> None:
        """Pair with the first possible partner and move it to the end, so that use is about equal."""
        for index in range(min(_MAX_TRIES, len(queue))):
            if self.try_pair(anchor, queue[index], "random"):
                queue.append(queue.pop(index))
                return

    def draw_order(self, purpose: str) -> list[IssueRef]:
        """Every issue as often as it has quota left, shuffled by the seed."""
        shuffled = sorted(
            (keyed_hash(self._seed, purpose, ref, copy), ref, copy)
            for ref, left in self._left.items()
            for copy in range(left)
        )
        return [ref for _, ref, _ in shuffled]

    def try_pair(self, anchor: IssueRef, partner: IssueRef, kind: str) -> bool:
        """Make this negative unless it was tried before or is not allowed."""
        pair = frozenset((anchor, partner))
        if pair in self._tried:
            return False
        self._tried.add(pair)
        reason = self._why_not(anchor, partner)
        if reason:
            self.dropped.append(DroppedPair(anchor, partner, 0, reason))
            return False
        self._left[anchor] -= 1
        self._left[partner] -= 1
        self.pairs.append(IssuePair(anchor, partner, 0, "", negative_kind=kind))
        return True


class GapMatcher:
    """Draws negatives with wanted gaps for a sampler."""

    def __init__(
        self,
        sampler: NegativeSampler,
        timeline: Timeline,
        wanted: WantedGaps,
        seed: int,
    ) -> None:
        self._sampler = sampler
        self._timeline = timeline
        self._wanted = wanted
        self._seed = seed

    def draw_hard(self, count: int, candidates: Candidates, try_pair: TryPair) -> None:
        """Pair up to `count` issues with the first candidates at a wanted gap."""
        goal = len(self._sampler.pairs) + count
        for tolerance in _TOLERANCES:

            def try_at_gap(
                anchor: IssueRef, partner: IssueRef, tolerance: float = tolerance
            ) -> bool:
                gap = self._timeline.gap(anchor, partner)
                wanted = self._wanted.nearest(gap)
                if wanted is None or mismatch(gap, wanted) > tolerance:
                    return False
                is_paired = try_pair(anchor, partner)
                if is_paired:
                    self._wanted.take(wanted)
                return is_paired

            left = goal - len(self._sampler.pairs)
            self._sampler.draw_hard(left, candidates, try_at_gap)

    def draw_random(self) -> None:
        """Pair issues of the positives with each other, in rounds of quotas."""
        for turn in range(_MAX_ROUNDS):
            before = len(self._wanted)
            max_mismatch = _POOR if turn < _STRICT_TURNS else math.inf
            self._draw(f"random {turn}", self._sampler.is_free, Counter(), max_mismatch)
            is_stuck = turn >= _STRICT_TURNS and len(self._wanted) == before
            if is_stuck or not self._wanted:
                return
            self._sampler.renew_quotas()

    def draw_others(self) -> None:
        """Pair issues of the positives with any issue of the timeline, each used about equally often."""
        uses: Counter[IssueRef] = Counter()
        for turn in range(_MAX_ROUNDS):
            before = len(self._wanted)

            def may_take(ref: IssueRef, limit: int = turn) -> bool:
                return uses[ref] <= limit

            self._sampler.renew_quotas()
            self._draw(f"others {turn}", may_take, uses, math.inf)
            if len(self._wanted) in (0, before):
                return

    def _draw(
        self,
        purpose: str,
        may_take: MayTake,
        uses: Counter[IssueRef],
        max_mismatch: float,
    ) -> None:
        """Make one pair for each wanted gap if possible, and count the uses of partners."""
        anchors = deque(dict.fromkeys(self._sampler.draw_order(purpose)))
        free = self._timeline
        until = 0
        for turn, gap in enumerate(self._wanted.hardest_first()):
            # Issues that are used up are removed from time to time, which keeps the search short.
            if turn >= until:
                free = free.only(may_take)
                until = turn + max(_MIN_PAIRS, len(free) // _FRACTION)
            partner = self._pair_at(gap, anchors, free, may_take, max_mismatch)
            if partner:
                uses[partner] += 1

    def _pair_at(
        self,
        gap: float,
        anchors: deque[IssueRef],
        free: Timeline,
        may_take: MayTake,
        max_mismatch: float,
    ) -> IssueRef | None:
        """Make the pair of some anchors that matches the gap best, and return the partner."""
        for _ in range(_MAX_ATTEMPTS):
            for fit in sorted(self._fits(gap, anchors, free, may_take)):
                if fit.mismatch > max_mismatch:
                    break
                if self._sampler.try_pair(fit.anchor, fit.partner, "random"):
                    self._wanted.take(gap)
                    return fit.partner
        return None

    def _fits(
        self,
        gap: float,
        anchors: deque[IssueRef],
        free: Timeline,
        may_take: MayTake,
    ) -> list[_Fit]:
        """The best partner of each of some anchors, up to the first good match."""
        fits = []
        for _ in range(min(_MAX_ANCHORS, len(anchors))):
            anchor = anchors.popleft()
            if not self._sampler.is_free(anchor):
                continue
            anchors.append(anchor)
            for difference, partner in islice(free.near(anchor, gap), _MAX_NEIGHBOURS):
                if may_take(partner) and self._sampler.is_new(anchor, partner):
                    tie_break = keyed_hash(self._seed, "gap", anchor, partner)
                    fits.append(_Fit(difference, tie_break, anchor, partner))
                    if difference <= _GOOD:
                        return fits
                    break
        return fits


class _Fit(NamedTuple):
    """A possible pair; the best sorts first."""

    mismatch: float  # of its gap with the wanted one
    tie_break: int
    anchor: IssueRef
    partner: IssueRef
