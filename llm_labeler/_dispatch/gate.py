"""The gate in front of one server: how many calls at a time, how many a minute, and when none at all.

What the server says counts more than what is configured. A 429 closes the gate for as long as the server
wishes, or, where it states no wish, for a time that doubles with each 429 that follows and halves with each
answer. The number of calls at a time shrinks with the share of 429s in a round of calls and grows by one a
round, so it settles near what the server takes and finds out when it takes more.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from llm_labeler._dispatch.pace import Pace
from pairkit.errors import RateLimited

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 60.0
PATIENCE_S = 600.0  # with nothing but 429s, or with a single wish of a server
_LOOK_AGAIN_S = 1.0  # what is waited for may come sooner than it seemed
_SMOOTHING = 0.1  # weight of the newest call in the expected number of tokens


@dataclass(frozen=True, slots=True)
class Pass:
    """A call that the gate let through."""

    started_at: float
    tokens: float  # as they were expected


class Gate:
    """Lets calls to one server through; all times are the event loop's."""

    def __init__(self, llm: str, concurrency: int, rpm: int | None, tpm: int | None) -> None:
        self._llm, self._most = llm, concurrency
        self._allowed = float(concurrency)
        self._inside = 0
        self._requests, self._tokens = Pace(rpm), Pace(tpm)
        self._expected: float | None = None  # tokens of a call, from those that were answered
        self._turnstile = asyncio.Lock()
        self._freed = asyncio.Event()
        self._closed_until = self._closed_at = float("-inf")
        self._pause_s = _FIRST_PAUSE_S
        self._refused_since: float | None = None
        self._answered = self._refused = 0  # in this round

    @property
    def allowed(self) -> int:
        """Calls at a time, as the server's answers have it now."""
        return max(1, int(self._allowed))

    async def enter(self, bound: int) -> Pass:
        """Wait for a turn.

        Args:
            bound: The most tokens that the call can take.
        """
        time = asyncio.get_running_loop().time
        async with self._turnstile:
            while self._inside >= self.allowed:
                self._freed.clear()
                await self._freed.wait()
            while (wait_s := self._wait_s(time())) > 0:
                await asyncio.sleep(min(wait_s, _LOOK_AGAIN_S))
            tokens = float(bound) if self._expected is None else min(float(bound), self._expected)
            entered = Pass(time(), tokens)
            self._inside += 1
            self._requests.start(entered.started_at)
            self._tokens.start(entered.started_at, tokens)
            return entered

    def leave(self) -> None:
        """A call is over, however it ended."""
        self._inside -= 1
        self._freed.set()

    def answered(self, entered: Pass, tokens: int) -> None:
        """The server answered, and it took so many tokens."""
        self._tokens.correct(tokens - entered.tokens)
        before = float(tokens) if self._expected is None else self._expected
        self._expected = before + _SMOOTHING * (tokens - before)
        self._refused_since = None
        self._pause_s = max(_FIRST_PAUSE_S, self._pause_s / 2)
        self._answered += 1
        self._end_round()

    def refused(self, entered: Pass, retry_after_s: float | None) -> None:
        """The server answered 429.

        Args:
            entered: The call.
            retry_after_s: The server's wish, if it told one.

        Raises:
            RateLimited: it wants a longer wait than anyone would sit through, or does nothing but refuse.
        """
        now = asyncio.get_running_loop().time()
        self._tokens.correct(-entered.tokens)
        if self._refused_since is None:
            self._refused_since = now
        wish_s = retry_after_s or 0.0
        if max(wish_s, now - self._refused_since) > PATIENCE_S:
            raise RateLimited(
                f"{self._llm}: its server takes no more calls for now (429"
                f"{f', ask again in {wish_s:.0f} s' if wish_s else ''}); what was answered is kept: run the "
                f"same command again later, or lower rpm, tpm or concurrency under [llm.{self._llm}]",
                wish_s or _LONGEST_PAUSE_S,
            )
        self._close(entered, now, retry_after_s)
        self._refused += 1
        self._end_round()

    def _wait_s(self, now: float) -> float:
        return max(self._closed_until - now, self._requests.wait_s(now), self._tokens.wait_s(now))

    def _close(self, entered: Pass, now: float, wish_s: float | None) -> None:
        if wish_s is None:
            # The calls that were under way when the gate closed tell nothing new.
            if entered.started_at < self._closed_at:
                return
            wish_s = self._pause_s * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
        self._closed_at = now
        self._closed_until = max(self._closed_until, now + wish_s)

    def _end_round(self) -> None:
        calls = self._answered + self._refused
        if calls >= self.allowed:
            kept = 1 - self._refused / calls / 2
            grown = self._allowed * kept + (self._answered > 0)
            self._allowed = min(float(self._most), max(1.0, grown))
            self._answered = self._refused = 0
            self._freed.set()
