"""Draw negatives within one repository and split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from gis_builder.store.records import DroppedPair, IssueRef, Pair
from pairkit.system.seeded import keyed_hash

_TRIED = 200  # partners tried for one random negative
# How often the shares may be dealt anew, where the ratio asks for many negatives.
MOST_ROUNDS = 24

WhyNot = Callable[[IssueRef, IssueRef], str | None]
Proposed = Callable[[IssueRef], Iterable[IssueRef]]


class Drawer:
    """Pairs issues anew; each is used as often as it stands in positives, then as often again, and so on."""

    def __init__(self, positives: Sequence[Pair], why_not: WhyNot, seed: int) -> None:
        self._share = Counter(ref for pair in positives for ref in (pair.first, pair.second))
        self._left = Counter(self._share)
        self._why_not = why_not
        self._seed = seed
        self._reasons: dict[frozenset[IssueRef], str | None] = {}
        self.pairs: list[Pair] = []
        self.dropped: list[DroppedPair] = []

    def is_free(self, ref: IssueRef) -> bool:
        """Whether the issue's share is not used up."""
        return self._left[ref] > 0

    def is_new(self, one: IssueRef, other: IssueRef) -> bool:
        """Whether the two were not yet tried as a negative."""
        return frozenset((one, other)) not in self._reasons

    def deal_again(self) -> None:
        """Give every issue its share once more."""
        self._left.update(self._share)

    def draw_hard(self, count: int, proposed: Proposed, kind: str, *, anyone: bool) -> None:
        """Pair issues with what is proposed for them; `anyone` lets in issues whose share is used up."""
        goal = len(self.pairs) + count
        for anchor in self.tickets("hard"):
            if len(self.pairs) >= goal:
                return
            if self._left[anchor] > 0:
                for other in proposed(anchor):
                    if (anyone or self._left[other] > 0) and self.try_pair(anchor, other, kind):
                        break

    def draw_random(self, count: int) -> None:
        """Pair issues with one another at random."""
        goal = len(self.pairs) + count
        for turn in range(MOST_ROUNDS):
            before = len(self.pairs)
            self._match(self.tickets(f"random {turn}"), goal)
            if len(self.pairs) >= goal or (turn and len(self.pairs) == before):
                return
            self.deal_again()

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
        self.pairs.append(Pair(anchor, other, 0, "", negative_kind=kind))
        return True
