"""Limits on calls to one server: calls at a time and a minute, pauses after 429s, and when to give it up.

A server's answers count more than the settings. A 429 closes the limiter for as long as the server asks or,
without such a time, for a time that doubles with each 429 and halves with each answer. The number of calls at
a time shrinks with the share of 429s in a round of calls and grows by one a round.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter, deque
from dataclasses import dataclass

from llm_labeler.records import CallFailed
from llm_labeler.settings import BreakerSettings
from pairkit.app.errors import RateLimited, RemoteError

_DETAIL_CHARS = 200
_VARIES = re.compile(r"[\W\d_]+")  # counts and ids differ from one refusal to the next


class Breaker:
    """Ends a run with an LLM when most calls fail, or all in the same words; `RateLimiter` handles 429s."""

    def __init__(self, llm: str, settings: BreakerSettings, concurrency: int) -> None:
        self._llm, self._max_failures = llm, settings.max_failures
        self._most_alike, self._alike, self._gist = settings.refusals, 0, ""
        self._window: deque[tuple[str, str] | None] = deque(maxlen=max(settings.window, 2 * concurrency))

    def note(self, failed: CallFailed | None) -> None:
        """Note the end of an attempt; None: an answer."""
        self._note_refusal(failed)
        window = self._window
        window.append(None if failed is None else (failed.reason, failed.detail))
        if failed is None or len(window) < (window.maxlen or 0):
            return
        failures = [entry for entry in window if entry is not None]
        if len(failures) < self._max_failures * len(window):
            return
        ((reason, _),) = Counter(reason for reason, _ in failures).most_common(1)
        detail = next(detail for why, detail in reversed(failures) if why == reason)
        raise RemoteError(
            f"{self._llm}: {len(failures)} of the last {len(window)} calls failed, most with {reason} "
            f"({detail[:_DETAIL_CHARS]}); what was answered is kept: check the server, or "
            f"[llm.{self._llm}], then run the same command again to continue"
        )

    def _note_refusal(self, failed: CallFailed | None) -> None:
        if failed is None:
            self._alike = 0
        elif not failed.retry and not failed.final:
            gist = _VARIES.sub(" ", failed.detail)
            self._alike = self._alike + 1 if gist == self._gist else 1
            self._gist = gist
            if self._alike >= self._most_alike:
                raise RemoteError(
                    f"{self._llm}: the server turned down {self._alike} questions in a row in the same words "
                    f"({failed.detail[:_DETAIL_CHARS]}); they are asked again by the next run: check the "
                    f"server, or [llm.{self._llm}], or raise breaker.refusals if each of them is at fault"
                )


# Sleeping is not exact: a start may come so much after its time without delaying those that follow.
_SLACK_S = 0.05


class TokenBucket:
    """Spaces starts so that those within any 60 s, inexact sleep included, stay within a limit."""

    def __init__(self, per_minute: int | None) -> None:
        self._share_s = 0.0 if per_minute is None else (60.0 + 2 * _SLACK_S) / per_minute
        self._due = float("-inf")

    def wait_s(self, now: float) -> float:
        """Seconds until the next start; 0 or less: now."""
        return self._due - now

    def start(self, now: float, amount: float = 1.0) -> None:
        """Take this amount."""
        if self._share_s:
            self._due = max(self._due, now - _SLACK_S) + amount * self._share_s

    def correct(self, amount: float) -> None:
        """Take more (or, below zero, give back) after a start."""
        self._due += amount * self._share_s


_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 60.0
MAX_WAIT_S = 600.0  # with nothing but 429s, or a single wait that a server asks for
_POLL_S = 1.0  # what is waited for may come sooner than it seemed
_SMOOTHING = 0.1  # weight of the newest call in the expected number of tokens


@dataclass(frozen=True, slots=True)
class Admission:
    """A call that the limiter let through."""

    started_at: float
    tokens: float  # as they were expected


class RateLimiter:
    """Lets calls to one server through; all times are the event loop's."""

    def __init__(self, llm: str, concurrency: int, rpm: int | None, tpm: int | None) -> None:
        self._llm, self._most = llm, concurrency
        self._allowed = float(concurrency)
        self._inside = 0
        self._requests, self._tokens = TokenBucket(rpm), TokenBucket(tpm)
        self._expected: float | None = None  # tokens of a call, from those that were answered
        self._turnstile = asyncio.Lock()
        self._freed = asyncio.Event()
        self._closed_until = self._closed_at = float("-inf")
        self._pause_s = _FIRST_PAUSE_S
        self._refused_since: float | None = None
        self._answered = self._refused = 0  # in this round

    @property
    def allowed(self) -> int:
        """Calls at a time that the server's answers allow now."""
        return max(1, int(self._allowed))

    async def enter(self, bound: int) -> Admission:
        """Wait for a turn."""
        time = asyncio.get_running_loop().time
        async with self._turnstile:
            while self._inside >= self.allowed:
                self._freed.clear()
                await self._freed.wait()
            while (wait_s := self._wait_s(time())) > 0:
                await asyncio.sleep(min(wait_s, _POLL_S))
            tokens = float(bound) if self._expected is None else min(float(bound), self._expected)
            entered = Admission(time(), tokens)
            self._inside += 1
            self._requests.start(entered.started_at)
            self._tokens.start(entered.started_at, tokens)
            return entered

    def leave(self) -> None:
        """A call has ended, with or without an answer."""
        self._inside -= 1
        self._freed.set()

    def answered(self, entered: Admission, tokens: int) -> None:
        """Record an answer and the tokens that the server counted."""
        self._tokens.correct(tokens - entered.tokens)
        before = float(tokens) if self._expected is None else self._expected
        self._expected = before + _SMOOTHING * (tokens - before)
        self._refused_since = None
        self._pause_s = max(_FIRST_PAUSE_S, self._pause_s / 2)
        self._answered += 1
        self._end_round()

    def refused(self, entered: Admission, retry_after_s: float | None) -> None:
        """The server answered 429."""
        now = asyncio.get_running_loop().time()
        self._tokens.correct(-entered.tokens)
        if self._refused_since is None:
            self._refused_since = now
        requested_s = retry_after_s or 0.0
        if max(requested_s, now - self._refused_since) > MAX_WAIT_S:
            raise RateLimited(
                f"{self._llm}: its server takes no more calls for now (429"
                f"{f', ask again in {requested_s:.0f} s' if requested_s else ''}); what was answered is kept:"
                " run the same command again later, or lower rpm, tpm or concurrency under"
                f" [llm.{self._llm}]",
                requested_s or _LONGEST_PAUSE_S,
            )
        self._close(entered, now, retry_after_s)
        self._refused += 1
        self._end_round()

    def _wait_s(self, now: float) -> float:
        return max(self._closed_until - now, self._requests.wait_s(now), self._tokens.wait_s(now))

    def _close(self, entered: Admission, now: float, requested_s: float | None) -> None:
        if requested_s is None:
            # Calls that were in flight when the limiter closed add nothing.
            if entered.started_at < self._closed_at:
                return
            requested_s = self._pause_s * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
        self._closed_at = now
        self._closed_until = max(self._closed_until, now + requested_s)

    def _end_round(self) -> None:
        calls = self._answered + self._refused
        if calls >= self.allowed:
            kept = 1 - self._refused / calls / 2
            grown = self._allowed * kept + (self._answered > 0)
            self._allowed = min(float(self._most), max(1.0, grown))
            self._answered = self._refused = 0
            self._freed.set()
