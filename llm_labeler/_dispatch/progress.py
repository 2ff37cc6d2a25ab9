"""How far a run is, told a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from llm_labeler._budget import Spending
from pairkit.errors import PairkitError

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    total: int | None  # questions, where known
    done: int  # answered by this session
    failed: int
    cached: int  # not asked: answered before, or rejected for good
    retried: int  # calls that were made again
    in_flight: int
    spent: Spending  # by this session; `spent.cost` is None where a price is unknown


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    done: int  # answered by this session
    failed: int
    cached: int  # not asked: answered before, or rejected for good
    retried: int  # calls that were made again
    spent: Spending  # by this session
    stopped_by: str | None  # the limit that left questions unasked: max_cost, max_tokens or max_requests
    problems: Mapping[str, PairkitError] = field(default_factory=dict)  # by LLM: why it was given up


class Meter:
    """Counts what happens and tells whoever watches, not too often."""

    def __init__(self, tell: Callable[[Progress], None], total: int | None) -> None:
        self.done = self.failed = self.cached = self.retried = self.in_flight = 0
        self.spent = Spending()
        self.stopped_by: str | None = None
        self._tell, self._total = tell, total
        self._told_at = float("-inf")

    def changed(self, *, last: bool = False) -> None:
        """Tell, unless that was done a moment ago; the last word is always told."""
        now = asyncio.get_running_loop().time()
        if last or now - self._told_at >= _EVERY_S:
            self._told_at = now
            counts = (self.done, self.failed, self.cached, self.retried, self.in_flight)
            self._tell(Progress(self._total, *counts, self.spent))

    def outcome(self, problems: Mapping[str, PairkitError]) -> Outcome:
        """The counts as they are at the end."""
        counts = (self.done, self.failed, self.cached, self.retried)
        return Outcome(*counts, self.spent, self.stopped_by, problems)
