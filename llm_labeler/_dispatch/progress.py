"""How far asking is, told a few times a second, how it ended, and what ended an LLM's part early."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llm_labeler._budget import Spending, money
from pairkit.errors import ConfigError, PairkitError, RemoteError
from pairkit.progress import Listener, Progress

_EVERY_S = 0.1


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

    def __init__(self, tell: Listener, total: int | None, stage: str = "asking") -> None:
        self.done = self.failed = self.cached = self.retried = self.in_flight = 0
        self.spent = Spending()
        self.stopped_by: str | None = None
        self._tell, self._total, self._stage = tell, total, stage
        self._told_at = float("-inf")

    def changed(self, *, last: bool = False) -> None:
        """Tell, unless that was done a moment ago; the last word is always told."""
        now = asyncio.get_running_loop().time()
        if last or now - self._told_at >= _EVERY_S:
            self._told_at = now
            known = self.done + self.cached + self.failed
            self._tell(Progress(self._stage, known, self._total, self._note(), ended=last))

    def outcome(self, problems: Mapping[str, PairkitError]) -> Outcome:
        """The counts as they are at the end."""
        counts = (self.done, self.failed, self.cached, self.retried)
        return Outcome(*counts, self.spent, self.stopped_by, problems)

    def _note(self) -> str:
        counts = {"under way": self.in_flight, "failed": self.failed, "repeated": self.retried}
        told = [f"{count:,} {name}" for name, count in counts.items() if count]
        return ", ".join((f"{self.spent.tokens:,} tokens", f"cost {money(self.spent.cost)}", *told))


def together(problems: Sequence[PairkitError]) -> PairkitError:
    """Several problems as one, which names them all: of the kind of the first, or of the settings."""
    if len(problems) == 1:
        return problems[0]
    told = "; ".join(str(problem) for problem in problems)
    is_config = any(isinstance(problem, ConfigError) for problem in problems)
    return (ConfigError if is_config else RemoteError)(f"{len(problems)} LLMs can't be asked: {told}")


def by_llm(ends: Mapping[str, object]) -> dict[str, PairkitError]:
    """The problems among the ends of tasks.

    Raises:
        BaseException: an end that nobody can do anything about: a bug, or Ctrl-C.
    """
    others = [
        end for end in ends.values() if isinstance(end, BaseException) and not isinstance(end, PairkitError)
    ]
    if others:  # a bug in one task cancels the rest
        raise min(others, key=lambda end: isinstance(end, asyncio.CancelledError))
    return {llm: end for llm, end in ends.items() if isinstance(end, PairkitError)}
