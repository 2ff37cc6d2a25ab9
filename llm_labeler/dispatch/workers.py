"""Ask the questions of all LLMs concurrently.

Each LLM has twice as many workers as concurrent calls, so that workers that wait for a retry block no calls.
Only a few questions are in memory.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from llm_labeler.clients.llms import Provider
from llm_labeler.dispatch.answer_store import QUESTIONS, AnswerStore
from llm_labeler.dispatch.budget import (
    MAX_MISFITS,
    PICODOLLARS,
    UNBILLED,
    Budget,
    BudgetSpent,
    Spending,
    charge,
    charge_answer,
    money,
)
from llm_labeler.dispatch.limits import MAX_WAIT_S, Breaker, RateLimiter
from llm_labeler.records import (
    Ask,
    CallFailed,
    Failure,
    LlmReply,
    StoredAnswer,
    TokenUsage,
)
from llm_labeler.settings import BreakerSettings
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, PairkitError, RemoteError
from pairkit.base.system.machine import batched

K = TypeVar("K")

_LOG = logging.getLogger(__name__)

_EVERY_S = 0.1
_GRACE_S = 15.0  # for calls in flight after an error
_MIN_BACKOFF_S = 0.5
_MAX_BACKOFF_S = 60.0
_RATE_LIMITED = "rate_limited"
_REJECTED = "rejected"
# 429s don't count as attempts, but a question that always gets one fails in the end.
_MAX_RATE_LIMITED = 100


@dataclass
class Meter:
    """Counts the calls of a stage and reports progress a few times a second."""

    listener: Listener
    total: int | None
    stage: str
    budget: Budget
    # Questions of this session.
    done: int = 0
    failed: int = 0
    cached: int = 0  # not asked: answered before, or finally rejected
    # Calls of this session.
    retried: int = 0
    in_flight: int = 0
    spent: Spending = field(default_factory=Spending)
    # `max_cost`, `max_tokens` or `max_requests`, if it was reached.
    stopped_by: str | None = None
    # By LLM: why it stopped early.
    problems: Mapping[str, PairkitError] = field(default_factory=dict)
    reported_at: float = float("-inf")

    def changed(self, *, last: bool = False) -> None:
        """Report progress at most every `_EVERY_S`; the last report is always made."""
        now = asyncio.get_running_loop().time()
        if last or now - self.reported_at >= _EVERY_S:
            self.reported_at = now
            processed = self.done + self.cached + self.failed
            self.listener(
                Progress(self.stage, processed, self.total, self._note(), ended=last)
            )

    def _note(self) -> str:
        spent = self.budget.spent  # of all sessions
        cost = None if self.spent.unpriced else spent.picodollars / PICODOLLARS
        note = f"{spent.tokens:,} tokens, cost {money(cost)}"
        counts = {
            "in flight": self.in_flight,
            "failed": self.failed,
            "repeated": self.retried,
        }
        for name, count in counts.items():
            if count:
                note += f", {count:,} {name}"
        return note


def joined_error(errors: Sequence[PairkitError]) -> PairkitError:
    """One error with all messages; a ConfigError if any of them is one."""
    if len(errors) == 1:
        return errors[0]
    message = f"{len(errors)} LLMs can't be asked: {'; '.join(map(str, errors))}"
    if any(isinstance(error, ConfigError) for error in errors):
        return ConfigError(message)
    return RemoteError(message)


def errors_by_task(results: Mapping[K, object]) -> dict[K, PairkitError]:
    """The errors among the results of tasks; any other exception is raised."""
    errors = {}
    bugs = []
    for task, result in results.items():
        if isinstance(result, PairkitError):
            errors[task] = result
        elif isinstance(result, BaseException):
            bugs.append(result)
    if bugs:  # prefer the bug to the cancellations that it caused
        raise min(bugs, key=lambda bug: isinstance(bug, asyncio.CancelledError))
    return errors


@dataclass
class Caller:
    """Makes the calls of all LLMs, which share one budget and one store."""

    store: AnswerStore
    budget: Budget
    meter: Meter
    # Tasks with a call in flight.
    calling: set[asyncio.Task[None]] = field(default_factory=set)
    # Number of saved fields that the server of each LLM doesn't know.
    refused: Counter[str] = field(default_factory=Counter)

    def recall(self, provider: Provider, asks: Sequence[Ask]) -> None:
        """Raise the bounds of an LLM if stored answers exceed them."""
        if not self.budget.needs_bounds:
            return
        for ask, usage in self.store.usages(asks):
            max_usage = provider.max_usage(ask)
            bounds = charge(max_usage, provider.prices.cost(max_usage))
            used = charge(usage, provider.prices.cost(usage))
            self.budget.raise_bounds(provider.name, bounds.amounts, used.amounts)

    async def call(
        self, provider: Provider, ask: Ask, max_usage: TokenUsage
    ) -> TokenUsage:
        """Make one call and store the answer."""
        cost = provider.prices.cost(max_usage)
        reservation = await self.budget.wait_and_reserve(provider.name, max_usage, cost)
        try:
            attempt = self.store.begin(ask.key, max_usage, cost)
        except BaseException:
            self.budget.release(reservation)
            raise
        # However the call ends, the reservation is settled; unknown usage is charged at its upper bound.
        spent = charge(max_usage, cost, estimated=True)
        try:
            reply = await self._reply(provider, ask)
        except (CallFailed, PairkitError) as error:
            if not (isinstance(error, CallFailed) and error.maybe_billed):
                spent = UNBILLED
            elif error.usage is not None:
                spent = charge(error.usage, provider.prices.cost(error.usage))
            self.store.end(attempt, provider.name, spent)
            raise
        else:
            usage = reply.usage or max_usage
            cost = provider.prices.cost(usage)
            stored = StoredAnswer(
                ask.key, replace(reply, usage=usage), cost, reply.usage is None
            )
            spent = charge_answer(stored)
            self.store.save_answer(stored, attempt)
            self._save_refused(provider)
            return usage
        finally:
            self.budget.settle(reservation, spent)
            self.meter.spent += spent

    def _save_refused(self, provider: Provider) -> None:
        """Save which fields the server doesn't know, if there are new ones."""
        count = len(provider.refused)
        if count > self.refused[provider.name]:
            self.store.refused(provider.name, provider.parameters, provider.refused)
            self.refused[provider.name] = count

    async def _reply(self, provider: Provider, ask: Ask) -> LlmReply:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self.calling.add(task)
        self.meter.in_flight += 1
        try:
            return await provider.reply(ask)
        finally:
            self.meter.in_flight -= 1
            self.calling.discard(task)


@dataclass
class LlmWorkers:
    """The workers, limits and questions of one LLM."""

    provider: Provider
    asks: Iterable[Ask]
    caller: Caller
    breaker_settings: BreakerSettings
    retry_final: bool

    def __post_init__(self) -> None:
        provider = self.provider
        store = self.caller.store
        self._batches = batched(self.asks, QUESTIONS)
        self._next: deque[Ask] = deque()
        self._pulling = asyncio.Lock()
        self._limiter = RateLimiter(
            provider.name, provider.concurrency, provider.rpm, provider.tpm
        )
        self._breaker = Breaker(
            provider.name, self.breaker_settings, provider.concurrency
        )
        self._misfits = 0
        self._closing = False  # no further call is made
        # Until the LLM has answered once, a refusal may be caused by the LLM, not by the question.
        self._answers = store.has_answer(provider.name, provider.parameters)
        provider.refused |= store.refused(provider.name, provider.parameters)
        self._unconfirmed: list[Failure] = []

    async def run(self) -> PairkitError | None:
        """Ask all questions; return the error that ended it early."""
        workers = [
            asyncio.create_task(self._work())
            for _ in range(2 * self.provider.concurrency)
        ]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            await self._finish_calls(workers)
        finally:
            for worker in workers:
                worker.cancel()
            results = await asyncio.gather(*workers, return_exceptions=True)
        # The results of cancelled workers are not of the class Exception.
        failed = [result for result in results if isinstance(result, Exception)]
        errors = errors_by_task(dict(enumerate(failed)))
        return next(iter(errors.values()), None)

    async def _finish_calls(self, workers: list[asyncio.Task[None]]) -> None:
        """After an error: cancel waiting workers, and give calls in flight some time to finish."""
        self._closing = True
        calling = self.caller.calling.intersection(workers)
        for worker in workers:
            if worker not in calling:
                worker.cancel()
        if calling:
            await asyncio.wait(calling, timeout=_GRACE_S)

    async def _work(self) -> None:
        """Ask questions until none is left or the budget is spent."""
        while not self._closing and self._misfits < MAX_MISFITS:
            ask = await self._pull()
            if ask is None:
                return
            await self._settle(ask)
            self.caller.meter.changed()

    async def _pull(self) -> Ask | None:
        """The next unanswered question; None if there is none."""
        async with self._pulling:
            while not self._next:
                batch = next(self._batches, None)
                if batch is None:
                    return None
                self._next.extend(
                    self.caller.store.unanswered(batch, retry_final=self.retry_final)
                )
                self.caller.recall(self.provider, batch)
                self.caller.meter.cached += len(batch) - len(self._next)
                # Don't block the loop while many questions are answered already.
                await asyncio.sleep(0)
            return self._next.popleft()

    async def _settle(self, ask: Ask) -> None:
        """Repeat a call until there is an answer or a failure, or the budget is spent."""
        tried = 0
        rate_limited = 0
        while not self._closing:
            try:
                await self._ask(ask)
            except BudgetSpent as spent:
                self._misfits += 1
                self.caller.meter.stopped_by = spent.limit
                return
            except CallFailed as failed:
                name = self.provider.name
                _LOG.info("%s: %s %s: %s", name, ask.key.task, ask.key.text_id, failed)
                requested_s = failed.retry_after_s or 0.0
                is_rate_limited = failed.reason == _RATE_LIMITED
                rate_limited += is_rate_limited
                tried += not is_rate_limited
                if (
                    not failed.retry
                    or tried >= self.provider.attempts
                    or rate_limited >= _MAX_RATE_LIMITED
                    or requested_s > MAX_WAIT_S
                ):
                    self._fail(ask, failed, tried + rate_limited)
                    return
                self.caller.meter.retried += 1
                if not is_rate_limited:  # else the limiter waits
                    doublings = min(tried - 1, 10)
                    longest_s = min(_MAX_BACKOFF_S, _MIN_BACKOFF_S * 2.0**doublings)
                    backoff_s = longest_s * random.uniform(0.5, 1.0)  # noqa: S311 - not cryptographic
                    await asyncio.sleep(max(requested_s, backoff_s))
            else:
                self._misfits = 0
                self.caller.meter.done += 1
                # The answer shows that earlier rejections were caused by the questions, so they are final.
                self._answers = True
                while self._unconfirmed:
                    failure = replace(self._unconfirmed.pop(), final=True)
                    self.caller.store.save_failure(failure)
                return

    async def _ask(self, ask: Ask) -> None:
        """Make one call when the limiter allows it."""
        max_usage = self.provider.max_usage(ask)
        admission = await self._limiter.enter(max_usage.total)
        try:
            used = await self.caller.call(self.provider, ask, max_usage)
        except CallFailed as failed:
            if failed.reason == _RATE_LIMITED:
                self._limiter.refused(admission, failed.retry_after_s)
            # A rejected question that may be repeated is asked in another form.
            elif failed.reason != _REJECTED or not failed.retry:
                self._breaker.note(failed, asyncio.get_running_loop().time())
            raise
        finally:
            self._limiter.leave()
        self._limiter.answered(admission, used.total)
        self._breaker.note(None, asyncio.get_running_loop().time())

    def _fail(self, ask: Ask, failed: CallFailed, attempts: int) -> None:
        is_final = failed.final and self._answers
        failure = Failure(ask.key, failed.reason, failed.detail, attempts, is_final)
        if failed.final and not is_final:
            self._unconfirmed.append(failure)
        self.caller.store.save_failure(failure)
        self.caller.meter.failed += 1


async def ask_all(
    asks: Mapping[str, Iterable[Ask]],
    providers: Mapping[str, Provider],
    store: AnswerStore,
    budget: Budget,
    *,
    breaker: BreakerSettings,
    progress: Listener,
    stage: str = "asking",
    total: int | None = None,
    retry_final: bool = False,
    keep_going: bool = False,
) -> Meter:
    """Ask all unanswered questions that fit into the budget, and store the answers."""
    meter = Meter(progress, total, stage, budget)
    caller = Caller(store, budget, meter)
    tasks = {}
    for llm, questions in asks.items():
        workers = LlmWorkers(providers[llm], questions, caller, breaker, retry_final)
        tasks[llm] = asyncio.create_task(workers.run())
    return await finish(tasks, meter, asyncio.FIRST_EXCEPTION, keep_going=keep_going)


async def finish(
    tasks: Mapping[str, asyncio.Task[PairkitError | None]],
    meter: Meter,
    return_when: str,
    *,
    keep_going: bool,
) -> Meter:
    """Wait for each LLM's task; with `keep_going`, errors are in the outcome instead of raised."""
    try:
        if tasks:
            await asyncio.wait(tasks.values(), return_when=return_when)
    finally:
        for task in tasks.values():
            task.cancel()
        results = await asyncio.gather(*tasks.values(), return_exceptions=True)
        meter.changed(last=True)
    meter.problems = errors_by_task(dict(zip(tasks, results, strict=True)))
    if meter.problems and not keep_going:
        raise joined_error(list(meter.problems.values()))
    return meter
