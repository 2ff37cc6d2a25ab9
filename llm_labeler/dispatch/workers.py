"""Ask all LLMs all their questions, concurrently.

Each LLM has twice as many workers as calls at a time: those that wait before a retry leave their place to
others, and only a few questions are in memory.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llm_labeler.dispatch.answers import AnswerStore, chunks
from llm_labeler.dispatch.budget import MOST_MISFITS, Budget, BudgetSpent, Spending, charge, money
from llm_labeler.dispatch.limits import MAX_WAIT_S, Breaker, RateLimiter
from llm_labeler.records import Ask, CallFailed, Failure, LlmReply, Provider, StoredAnswer, TokenUsage
from llm_labeler.settings import BreakerSettings
from pairkit.app.errors import ConfigError, PairkitError, RemoteError
from pairkit.app.progress import Listener, Progress

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class AskOutcome:
    """How a run ended."""

    done: int  # answered by this session
    failed: int
    cached: int  # not asked: answered before, or rejected for good
    retried: int  # calls that were made again
    spent: Spending  # by this session
    stopped_by: str | None  # the limit that left questions unasked: max_cost, max_tokens or max_requests
    problems: Mapping[str, PairkitError] = field(default_factory=dict)  # by LLM: why it was given up


class Meter:
    """Counts calls and reports progress a few times a second."""

    def __init__(self, listener: Listener, total: int | None, stage: str = "asking") -> None:
        self.done = self.failed = self.cached = self.retried = self.in_flight = 0
        self.spent = Spending()
        self.stopped_by: str | None = None
        self._listener, self._total, self._stage = listener, total, stage
        self._reported_at = float("-inf")

    def changed(self, *, last: bool = False) -> None:
        """Report progress, unless it was just reported; the last report is always made."""
        now = asyncio.get_running_loop().time()
        if last or now - self._reported_at >= _EVERY_S:
            self._reported_at = now
            known = self.done + self.cached + self.failed
            self._listener(Progress(self._stage, known, self._total, self._note(), ended=last))

    def outcome(self, problems: Mapping[str, PairkitError]) -> AskOutcome:
        """The final counts."""
        counts = (self.done, self.failed, self.cached, self.retried)
        return AskOutcome(*counts, self.spent, self.stopped_by, problems)

    def _note(self) -> str:
        counts = {"under way": self.in_flight, "failed": self.failed, "repeated": self.retried}
        parts = [f"{count:,} {name}" for name, count in counts.items() if count]
        return ", ".join((f"{self.spent.tokens:,} tokens", f"cost {money(self.spent.cost)}", *parts))


def together(problems: Sequence[PairkitError]) -> PairkitError:
    """One error that names all problems; a ConfigError if one of them is."""
    if len(problems) == 1:
        return problems[0]
    parts = "; ".join(str(problem) for problem in problems)
    is_config = any(isinstance(problem, ConfigError) for problem in problems)
    return (ConfigError if is_config else RemoteError)(f"{len(problems)} LLMs can't be asked: {parts}")


def by_llm(ends: Mapping[str, object]) -> dict[str, PairkitError]:
    """The problems among the ends of tasks."""
    others = [
        end for end in ends.values() if isinstance(end, BaseException) and not isinstance(end, PairkitError)
    ]
    if others:  # a bug in one task cancels the rest
        raise min(others, key=lambda end: isinstance(end, asyncio.CancelledError))
    return {llm: end for llm, end in ends.items() if isinstance(end, PairkitError)}


class Caller:
    """Makes the calls of all LLMs, which share one budget and one store."""

    def __init__(self, store: AnswerStore, budget: Budget, meter: Meter) -> None:
        self.calling: set[asyncio.Task[None]] = set()  # whose call is under way
        self.meter = meter
        self._store, self._budget = store, budget

    def recall(self, provider: Provider, asks: Sequence[Ask]) -> None:
        """Take from stored answers by how much an LLM exceeds its bounds."""
        for ask, usage in self._store.usages(asks) if self._budget.needs_bounds else ():
            bound, prices = provider.bound(ask), provider.prices
            self._budget.recall(
                provider.name, charge(bound, prices.cost(bound)), charge(usage, prices.cost(usage))
            )

    async def call(self, provider: Provider, ask: Ask, bound: TokenUsage) -> TokenUsage:
        """Ask once and keep the answer."""
        cost = provider.prices.cost(bound)
        reservation = await self._budget.room(provider.name, bound, cost)
        try:
            attempt = self._store.begin(ask.key, bound, cost)
        except BaseException:
            self._budget.release(reservation)
            raise
        # However the call ends, others wait for its room: unless more is known it took all that it could.
        usage: TokenUsage | None = bound
        estimated = True
        try:
            reply = await self._under_way(provider, ask)
        except (CallFailed, PairkitError) as error:
            usage = bound if isinstance(error, CallFailed) and error.maybe_billed else None
            self._store.end(attempt, provider.name, usage, cost)
            raise
        else:
            usage, estimated = reply.usage or bound, reply.usage is None
            cost = provider.prices.cost(usage)
            known = replace(reply, usage=usage) if estimated else reply
            self._store.save_answer(StoredAnswer(ask.key, known, cost, estimated), attempt)
            return usage
        finally:
            self._budget.settle(reservation, usage, cost)
            self.meter.spent += charge(usage, cost, estimated=estimated)

    async def _under_way(self, provider: Provider, ask: Ask) -> LlmReply:
        if (task := asyncio.current_task()) is not None:
            self.calling.add(task)
        self.meter.in_flight += 1
        try:
            return await provider.reply(ask)
        finally:
            self.meter.in_flight -= 1
            self.calling.discard(task)


_LOG = logging.getLogger(__name__)

_GRACE_S = 15.0  # for calls under way when an LLM has to be given up
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 60.0
_RATE_LIMITED = "rate_limited"
# 429s are no attempts used up, but a server that refuses this one question for ever is not waited for.
_MOST_REFUSALS = 100


class LlmWorkers:
    """One LLM's workers, its limits, and its stream of questions."""

    def __init__(
        self,
        provider: Provider,
        asks: Iterable[Ask],
        store: AnswerStore,
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
        self._limiter = RateLimiter(provider.name, provider.concurrency, provider.rpm, provider.tpm)
        self._breaker = Breaker(provider.name, breaker, provider.concurrency)
        self._misfits = 0
        self._closing = False  # no further call leaves
        # Whether it is known to answer: until then a refusal may be about the LLM, not about the question.
        self._answers = store.has_answer(provider.name, provider.parameters)
        self._doubtful: list[Failure] = []

    async def run(self) -> PairkitError | None:
        """Ask everything; the error that ended it early, or None."""
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
        """After an error: cancel workers that wait, and give calls in flight a moment to finish."""
        self._closing = True
        calling = self._caller.calling.intersection(workers)
        for worker in workers:
            if worker not in calling:
                worker.cancel()
        if calling:
            await asyncio.wait(calling, timeout=_GRACE_S)

    async def _work(self) -> None:
        """Take questions until the stream or the budget ends."""
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
                self._caller.recall(self._provider, chunk)
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
                    or (failed.retry_after_s or 0.0) > MAX_WAIT_S
                ):
                    self._fail(ask, failed, tried + refused)
                    return
                self._caller.meter.retried += 1
                if not is_refusal:  # the limiter sees to refusals
                    await asyncio.sleep(_backoff_s(tried, failed.retry_after_s))
            else:
                self._misfits = 0
                self._caller.meter.done += 1
                self._confirm()
                return

    async def _ask(self, ask: Ask) -> None:
        """Ask once, through the limiter."""
        bound = self._provider.bound(ask)
        entered = await self._limiter.enter(bound.prompt_tokens + bound.completion_tokens)
        try:
            used = await self._caller.call(self._provider, ask, bound)
        except CallFailed as failed:
            if failed.reason == _RATE_LIMITED:
                self._limiter.refused(entered, failed.retry_after_s)
            else:
                self._breaker.note(failed)
            raise
        finally:
            self._limiter.leave()
        self._limiter.answered(entered, used.prompt_tokens + used.completion_tokens)
        self._breaker.note(None)

    def _fail(self, ask: Ask, failed: CallFailed, attempts: int) -> None:
        failure = Failure(ask.key, failed.reason, failed.detail, attempts, failed.final and self._answers)
        if failed.final and not self._answers:
            self._doubtful.append(failure)
        self._store.save_failure(failure)
        self._caller.meter.failed += 1

    def _confirm(self) -> None:
        """The LLM answers, so its earlier rejections were about the questions."""
        self._answers = True
        while self._doubtful:
            self._store.save_failure(replace(self._doubtful.pop(), final=True))


def _backoff_s(tried: int, requested_s: float | None) -> float:
    """Seconds before the next attempt: doubling, with jitter."""
    longest = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2.0 ** min(tried - 1, 10))
    return max(requested_s or 0.0, longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret


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
) -> AskOutcome:
    """Ask what is not answered yet and fits into the budget, each LLM at its own speed, and store answers."""
    meter = Meter(progress, total, stage)
    caller = Caller(store, budget, meter)
    by_name: dict[str, asyncio.Task[PairkitError | None]] = {}
    for llm, questions in asks.items():
        provider = providers[llm]
        workers = LlmWorkers(provider, questions, store, caller, breaker, retry_final=retry_final)
        by_name[llm] = asyncio.create_task(workers.run())
    try:
        if by_name:
            await asyncio.wait(by_name.values(), return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in by_name.values():
            task.cancel()
        ends = await asyncio.gather(*by_name.values(), return_exceptions=True)
        meter.changed(last=True)
    problems = by_llm(dict(zip(by_name, ends, strict=True)))
    if problems and not keep_going:
        raise together(list(problems.values()))
    return meter.outcome(problems)
