"""Draw negatives whose gaps in time are those of the positives."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import NamedTuple

from gis_builder.pairing.drawer import MOST_ROUNDS, Drawer, Proposed
from gis_builder.pairing.timeline import Timeline, WantedGaps, mismatch
from gis_builder.store.records import IssueRef
from pairkit.system.seeded import keyed_hash

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
Resembles = Callable[[IssueRef, IssueRef], bool]


class Matching:
    """Draws by gap on behalf of a drawer."""

    def __init__(
        self, drawer: Drawer, timeline: Timeline, wanted: WantedGaps, resembles: Resembles, seed: int
    ) -> None:
        self._drawer, self._timeline, self._wanted = drawer, timeline, wanted
        self._resembles, self._seed = resembles, seed

    def draw_hard(self, count: int, proposed: Proposed, kind: str, *, anyone: bool) -> None:
        """Pair up to `count` issues with the texts most like theirs that are a wanted gap away."""
        goal = len(self._drawer.pairs) + count
        for tolerance in _TOLERANCES:
            for anchor in self._drawer.tickets("hard"):
                if len(self._drawer.pairs) >= goal:
                    return
                if self._drawer.is_free(anchor):
                    self._pair_alike(anchor, proposed, kind, tolerance, anyone=anyone)

    def _pair_alike(
        self, anchor: IssueRef, proposed: Proposed, kind: str, tolerance: float, *, anyone: bool
    ) -> None:
        for other in proposed(anchor):
            gap = self._timeline.gap(anchor, other)
            wanted = self._wanted.most_like(gap)
            if wanted is None:
                return
            fits = mismatch(gap, wanted) <= tolerance and (anyone or self._drawer.is_free(other))
            if fits and self._drawer.try_pair(anchor, other, kind):
                self._wanted.take(wanted)
                return

    def draw_random(self) -> None:
        """Pair issues of the positives with one another, each as often as it stands there, and again."""
        for turn in range(MOST_ROUNDS):
            before = len(self._wanted)
            most_unlike = _POOR if turn < _STRICT_TURNS else math.inf
            self._draw(f"random {turn}", self._drawer.is_free, Counter(), most_unlike)
            if not self._wanted or (turn >= _STRICT_TURNS and len(self._wanted) == before):
                return
            self._drawer.deal_again()

    def draw_others(self) -> None:
        """Pair issues of the positives with any of the timeline, each used about as often as the others."""
        used: Counter[IssueRef] = Counter()
        for turn in range(MOST_ROUNDS):
            before = len(self._wanted)
            self._drawer.deal_again()
            self._draw(f"others {turn}", partial(_is_used_at_most, used, turn), used, math.inf)
            if len(self._wanted) in (0, before):
                return

    def _draw(self, purpose: str, may_take: MayTake, used: Counter[IssueRef], most_unlike: float) -> None:
        """Make a pair for every wanted gap, as far as there is one, and count the partners."""
        anchors = deque(dict.fromkeys(self._drawer.tickets(purpose)))
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
            fits.sort(key=lambda fit: (fit.is_poor, not fit.resembles, fit.unlike, fit.draw))
            for fit in fits:
                if fit.unlike > most_unlike:
                    continue
                if self._drawer.try_pair(fit.anchor, fit.partner, "random"):
                    self._wanted.take(gap)
                    return fit.partner
        return None

    def _fits(self, gap: float, anchors: deque[IssueRef], left: Timeline, may_take: MayTake) -> list[_Fit]:
        """The best partner of each of some anchors, up to the first that fits well."""
        found: list[_Fit] = []
        for _ in range(min(_ANCHORS, len(anchors))):
            anchor = anchors.popleft()
            if not self._drawer.is_free(anchor):
                continue
            anchors.append(anchor)
            fit = self._best_partner(anchor, gap, left, may_take)
            if fit is not None:
                found.append(fit)
                if not fit.is_poor and fit.resembles:
                    break
        return found

    def _best_partner(self, anchor: IssueRef, gap: float, left: Timeline, may_take: MayTake) -> _Fit | None:
        """The partner nearest to the gap, or a near one that resembles the anchor."""
        best: _Fit | None = None
        for unlike, other in islice(left.near(anchor, gap), _NEIGHBOURS):
            if best is not None and (best.resembles or unlike > _CLOSE):
                break
            if may_take(other) and self._drawer.is_new(anchor, other):
                resembles = self._resembles(anchor, other)
                if best is None or resembles:
                    draw = keyed_hash(self._seed, "gap", anchor, other)
                    best = _Fit(anchor, other, unlike, resembles, draw)
        return best


class _Fit(NamedTuple):
    """A pair that might be made."""

    anchor: IssueRef
    partner: IssueRef
    unlike: float  # the mismatch of its gap with the wanted one
    resembles: bool
    draw: int  # decides between pairs that fit alike

    @property
    def is_poor(self) -> bool:
        return self.unlike > _CLOSE


def _is_used_at_most(used: Counter[IssueRef], most: int, ref: IssueRef) -> bool:
    return used[ref] <= most
