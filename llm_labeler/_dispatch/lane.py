"""One LLM's questions, worked off by several workers that share one stream of them.

There are twice as many workers as calls at a time: those that wait before they ask again leave their place to
others, and still no more than a few questions are in memory.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from llm_labeler._budget import MOST_MISFITS, BudgetSpent
from llm_labeler._dispatch.breaker import Breaker
from llm_labeler._dispatch.caller import Caller
from llm_labeler._dispatch.gate import PATIENCE_S, Gate
from llm_labeler._provider import CallFailed, Provider
from llm_labeler._records import Ask, Failure
from llm_labeler._settings import BreakerSettings
from llm_labeler._store import Store, chunks
from pairkit.errors import PairkitError

_LOG = logging.getLogger(__name__)

_GRACE_S = 15.0  # for calls under way when an LLM has to be given up
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 60.0
_RATE_LIMITED = "rate_limited"
# 429s are no attempts used up, but a server that refuses this one question for ever is not waited for.
_MOST_REFUSALS = 100


class Lane:
    """One LLM, its limits, and the stream of what it is to be asked."""

    def __init__(
        self,
        provider: Provider,
        asks: Iterable[Ask],
        store: Store,
        caller: Caller,
        breaker: BreakerSettings,
        *,
        retry_final: bool,
    ) -> None:
        self.width = 2 * provider.concurrency
        self._provider, self._store, self._caller = provider, store, caller
        self._chunks, self._retry_final = chunks(asks), retry_final
        self._next: deque[Ask] = deque()
        self._pulling = asyncio.Lock()
        self._gate = Gate(provider.name, provider.concurrency, provider.rpm, provider.tpm)
        self._breaker = Breaker(provider.name, breaker, provider.concurrency)
        self._misfits = 0
        self._closing = False  # no further call leaves
        # Whether it is known to answer: until then a refusal may be about the LLM, not about the question.
        self._answers = store.has_answer(provider.name, provider.parameters)
        self._doubtful: list[Failure] = []

    async def run(self) -> PairkitError | None:
        """Ask everything; what ended it before its time, if anything did.

        No new call leaves after that, and those under way have a moment to finish.
        """
        workers = [asyncio.create_task(self._work()) for _ in range(self.width)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            await self._let_finish(workers)
        finally:
            for worker in workers:
                worker.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
        errors = [end for end in ends if isinstance(end, Exception)]
        for error in errors:
            if not isinstance(error, PairkitError):
                raise error
        return next((error for error in errors if isinstance(error, PairkitError)), None)

    async def _let_finish(self, workers: list[asyncio.Task[None]]) -> None:
        """After an error: whoever waits goes home, whoever calls gets a moment for the answer."""
        self._closing = True
        calling = self._caller.calling.intersection(workers)
        for worker in workers:
            if worker not in calling:
                worker.cancel()
        if calling:
            await asyncio.wait(calling, timeout=_GRACE_S)

    async def _work(self) -> None:
        """Take questions from the stream until it, or the budget, has ended."""
        while not self._closing and self._misfits < MOST_MISFITS:
            ask = await self._pull()
            if ask is None:
                return
            await self._settle(ask)
            self._caller.meter.changed()

    async def _pull(self) -> Ask | None:
        """The next question that has no answer yet; None at the end of the stream."""
        async with self._pulling:
            while not self._next:
                chunk = next(self._chunks, None)
                if chunk is None:
                    return None
                self._next.extend(self._store.unanswered(chunk, retry_final=self._retry_final))
                self._caller.meter.cached += len(chunk) - len(self._next)
                await asyncio.sleep(0)  # a long stretch of answered questions must not hold up the others
            return self._next.popleft()

    async def _settle(self, ask: Ask) -> None:
        """Ask until there is an answer, a failure, or no room in the budget."""
        tried = refused = 0
        while not self._closing:
            try:
                await self._ask(ask)
            except BudgetSpent as spent:
                self._misfits += 1
                self._caller.meter.stopped_by = spent.limit
                return
            except CallFailed as failed:
                _LOG.info("%s: %s %s: %s", self._provider.name, ask.key.task, ask.key.text_id, failed)
                is_refusal = failed.reason == _RATE_LIMITED
                refused, tried = refused + is_refusal, tried + (not is_refusal)
                if (
                    not failed.retry
                    or tried >= self._provider.attempts
                    or refused >= _MOST_REFUSALS
                    or (failed.retry_after_s or 0.0) > PATIENCE_S
                ):
                    self._fail(ask, failed, tried + refused)
                    return
                self._caller.meter.retried += 1
                if not is_refusal:  # the gate sees to refusals
                    await asyncio.sleep(_backoff_s(tried, failed.retry_after_s))
            else:
                self._misfits = 0
                self._caller.meter.done += 1
                self._confirm()
                return

    async def _ask(self, ask: Ask) -> None:
        """Ask once, through the gate."""
        bound = self._provider.bound(ask)
        entered = await self._gate.enter(bound.prompt_tokens + bound.completion_tokens)
        try:
            used = await self._caller.call(self._provider, ask, bound)
        except CallFailed as failed:
            if failed.reason == _RATE_LIMITED:
                self._gate.refused(entered, failed.retry_after_s)
            else:
                self._breaker.note(failed)
            raise
        finally:
            self._gate.leave()
        self._gate.answered(entered, used.prompt_tokens + used.completion_tokens)
        self._breaker.note(None)

    def _fail(self, ask: Ask, failed: CallFailed, attempts: int) -> None:
        failure = Failure(ask.key, failed.reason, failed.detail, attempts, failed.final and self._answers)
        if failed.final and not self._answers:
            self._doubtful.append(failure)
        self._store.save_failure(failure)
        self._caller.meter.failed += 1

    def _confirm(self) -> None:
        """It answers: what it said of single questions before was about them."""
        self._answers = True
        while self._doubtful:
            self._store.save_failure(replace(self._doubtful.pop(), final=True))


def _backoff_s(tried: int, wish_s: float | None) -> float:
    """Seconds before the next attempt: doubling, with jitter so that a crowd does not come back as one."""
    longest = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2.0 ** min(tried - 1, 10))
    return max(wish_s or 0.0, longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
