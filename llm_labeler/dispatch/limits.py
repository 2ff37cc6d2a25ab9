"""Limits on the calls to one server: concurrency, calls and tokens per minute, and pauses after 429s.

A 429 pauses all calls for the time that the server requests, else for a time that doubles with each 429 and
halves with each answer. The concurrency shrinks with the share of 429s in a round of calls and grows by one
per round.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import deque
from dataclasses import dataclass
from statistics import mode

from llm_labeler.records import CallFailed
from llm_labeler.settings import BreakerSettings
from pairkit.base.errors import RateLimited, RemoteError

_DETAIL_CHARS = 200
_NON_LETTERS = re.compile(r"[\W\d_]+")  # counts and ids differ between equal refusals
_OUTAGE_S = 60.0  # shorter outages of an LLM that has answered don't stop it

# Sleeping is inexact: a start may be this late without delaying the next ones.
_SLACK_S = 0.05
_MINUTE_S = 60.0 + 2 * _SLACK_S

_MIN_PAUSE_S = 0.2
_MAX_PAUSE_S = 60.0
MAX_WAIT_S = 600.0  # of consecutive 429s, or of a single requested wait
_POLL_S = 1.0  # a wait may become shorter while it lasts
_SMOOTHING = 0.1  # weight of the newest call in the expected number of tokens


@dataclass
class Breaker:
    """Stops calling an LLM if most calls fail, or if refusals repeat; `RateLimiter` handles 429s."""

    llm: str
    settings: BreakerSettings
    concurrency: int

    def __post_init__(self) -> None:
        self._repeats = 0
        self._last_refusal = ""
        self._window_size = max(self.settings.window, 2 * self.concurrency)
        # Reason and detail of the last failures; None for an answer.
        self._window: deque[tuple[str, str] | None] = deque(maxlen=self._window_size)
        self._answered_at = float("-inf")  # last answer before most calls failed

    def note(self, failed: CallFailed | None, now: float) -> None:
        """Count the end of an attempt; None: an answer."""
        self._note_refusal(failed)
        self._window.append(None if failed is None else (failed.reason, failed.detail))
        failures = [entry for entry in self._window if entry is not None]
        is_full = len(self._window) == self._window_size
        if (
            not is_full
            or len(failures) < self.settings.max_failures * self._window_size
        ):
            if failed is None:
                self._answered_at = now
            return
        if failed is None or now - self._answered_at < _OUTAGE_S:
            return
        most_frequent = mode(reason for reason, _ in failures)
        details = [detail for reason, detail in failures if reason == most_frequent]
        raise RemoteError(
            f"{self.llm}: {len(failures)} of the last {self._window_size} calls failed, most with"
            f" {most_frequent} ({details[-1][:_DETAIL_CHARS]}); all answers are stored: check the server and"
            f" [llm.{self.llm}], then run the same command again to continue"
        )

    def _note_refusal(self, failed: CallFailed | None) -> None:
        if failed is None:
            self._repeats = 0
            return
        if failed.retry or failed.final:
            return
        refusal = _NON_LETTERS.sub(" ", failed.detail)
        if refusal != self._last_refusal:
            self._repeats = 0
        self._last_refusal = refusal
        self._repeats += 1
        if self._repeats >= self.settings.refusals:
            raise RemoteError(
                f"{self.llm}: the server refused {self._repeats} consecutive questions with the same"
                f" message ({failed.detail[:_DETAIL_CHARS]}); check the server and [llm.{self.llm}], and"
                " run the same command again, or raise breaker.refusals if the questions are at fault"
            )


@dataclass(eq=False, slots=True)
class Admission:
    """An admitted call."""

    started_at: float
    tokens: float  # expected, until the server has counted them


class TokenBucket:
    """Spaces starts so that those within any 60 s stay within a limit, even with inexact sleep."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = float("inf") if per_minute is None else per_minute
        self._due = float("-inf")
        self._recent: deque[Admission] = deque()  # of the last minute
        self._used = 0.0  # by them

    def wait_s(self, now: float, amount: float = 1.0) -> float:
        """Seconds until this amount may start, at least; 0 or less: now."""
        while self._recent and self._recent[0].started_at + _MINUTE_S <= now:
            self._used -= self._recent.popleft().tokens
        wait_s = self._due - now
        if self._recent and self._used + amount > self._per_minute:
            # The spacing alone would admit one call more than the limit, which matters for large calls.
            wait_s = max(wait_s, self._recent[0].started_at + _MINUTE_S - now)
        return wait_s

    def start(self, now: float, amount: float = 1.0) -> Admission:
        """Consume this amount."""
        admission = Admission(now, amount)
        self._due = max(self._due, now - _SLACK_S) + self._spacing_s(amount)
        self._recent.append(admission)
        self._used += amount
        return admission

    def correct(self, admission: Admission, amount: float) -> None:
        """Replace the amount of a start."""
        excess = amount - admission.tokens
        self._due += self._spacing_s(excess)
        admission.tokens = amount
        if self._recent and admission.started_at >= self._recent[0].started_at:
            self._used += excess

    def _spacing_s(self, amount: float) -> float:
        return amount * _MINUTE_S / self._per_minute


@dataclass
class RateLimiter:
    """Admits calls to one server; all times are those of the event loop."""

    llm: str
    concurrency: int
    rpm: int | None
    tpm: int | None

    def __post_init__(self) -> None:
        self._allowed = float(self.concurrency)
        self._in_flight = 0
        self._requests = TokenBucket(self.rpm)
        self._tokens = TokenBucket(self.tpm)
        # Tokens per call, averaged over answered calls.
        self._expected: float | None = None
        self._lock = asyncio.Lock()
        self._freed = asyncio.Event()
        self._paused_at = float("-inf")
        self._paused_until = float("-inf")
        self._pause_s = _MIN_PAUSE_S
        self._refused_since: float | None = None
        # In this round.
        self._answered = 0
        self._refused = 0

    @property
    def allowed(self) -> int:
        """The concurrency that the server's recent responses allow."""
        return max(1, int(self._allowed))

    async def enter(self, max_usage: int) -> Admission:
        """Wait until a call is admitted."""
        time = asyncio.get_running_loop().time
        async with self._lock:
            while self._in_flight >= self.allowed:
                self._freed.clear()
                await self._freed.wait()
            while (wait_s := self._wait_s(time(), max_usage)) > 0:
                await asyncio.sleep(min(wait_s, _POLL_S))
            self._in_flight += 1
            self._requests.start(time())
            return self._tokens.start(time(), self._expected_tokens(max_usage))

    def leave(self) -> None:
        """Record the end of a call, with or without an answer."""
        self._in_flight -= 1
        self._freed.set()

    def answered(self, admission: Admission, tokens: int) -> None:
        """Record an answer and the tokens that the server counted."""
        self._tokens.correct(admission, tokens)
        if self._expected is None:
            self._expected = float(tokens)
        self._expected += _SMOOTHING * (tokens - self._expected)
        self._refused_since = None
        self._pause_s = max(_MIN_PAUSE_S, self._pause_s / 2)
        self._answered += 1
        self._end_round()

    def refused(self, admission: Admission, retry_after_s: float | None) -> None:
        """Record a 429."""
        now = asyncio.get_running_loop().time()
        self._tokens.correct(admission, 0)
        if self._refused_since is None:
            self._refused_since = now
        if max(retry_after_s or 0.0, now - self._refused_since) > MAX_WAIT_S:
            requested = f", retry after {retry_after_s:.0f} s" if retry_after_s else ""
            raise RateLimited(
                f"{self.llm}: the server accepts no calls for now (HTTP 429{requested}); all answers are"
                " stored: run the same command again later, or lower rpm, tpm or concurrency under"
                f" [llm.{self.llm}]",
                retry_after_s or _MAX_PAUSE_S,
            )
        self._pause(admission, now, retry_after_s)
        self._refused += 1
        self._end_round()

    def _expected_tokens(self, max_usage: int) -> float:
        if self._expected is None:
            return max_usage
        return min(max_usage, self._expected)

    def _wait_s(self, now: float, max_usage: int) -> float:
        for_requests_s = self._requests.wait_s(now)
        for_tokens_s = self._tokens.wait_s(now, self._expected_tokens(max_usage))
        return max(self._paused_until - now, for_requests_s, for_tokens_s)

    def _pause(
        self, admission: Admission, now: float, requested_s: float | None
    ) -> None:
        if requested_s is None:
            # Calls that started before the last pause don't prolong it.
            if admission.started_at < self._paused_at:
                return
            requested_s = self._pause_s * random.uniform(0.75, 1.25)  # noqa: S311 - not cryptographic
            self._pause_s = min(_MAX_PAUSE_S, 2 * self._pause_s)
        self._paused_at = now
        self._paused_until = max(self._paused_until, now + requested_s)

    def _end_round(self) -> None:
        calls = self._answered + self._refused
        if calls < self.allowed:
            return
        self._allowed *= 1 - self._refused / calls / 2
        if self._answered:
            self._allowed += 1
        self._allowed = min(float(self.concurrency), max(1.0, self._allowed))
        self._answered = 0
        self._refused = 0
        self._freed.set()
