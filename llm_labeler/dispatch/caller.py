"""One call: room in the budget, written down, made, charged, kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from llm_labeler.budget import Budget, Reservation, charge
from llm_labeler.dispatch.progress import Meter
from llm_labeler.provider import CallFailed, Provider
from llm_labeler.records import Answer, Ask, Reply, Usage
from llm_labeler.store import Store
from pairkit.errors import PairkitError

_ABSURD = 1 << 40  # tokens; no call takes so many, whatever a server says


class Caller:
    """Makes calls for all LLMs, which share one budget and one store."""

    def __init__(self, store: Store, budget: Budget, meter: Meter) -> None:
        self.calling: set[asyncio.Task[None]] = set()  # whose call is under way
        self.meter = meter
        self._store, self._budget = store, budget
        self._settled = asyncio.Event()

    async def call(self, provider: Provider, ask: Ask, bound: Usage) -> Usage:
        """Ask once and keep the answer.

        If this is cancelled while the server works, the call stays written down as in flight: it may be on
        the bill, and counts so.

        Returns:
            What it took; the bound where the server did not say.

        Raises:
            BudgetSpent: the call can't fit any more and was not made.
            CallFailed: it brought no answer; it is charged.
            PairkitError: no call can succeed.
        """
        cost = provider.prices.cost(bound)
        reservation = await self._reserve(provider.name, bound, cost)
        attempt = self._store.begin(ask.key, bound, cost)
        try:
            reply = await self._under_way(provider, ask)
        except (CallFailed, PairkitError) as error:
            billed = bound if isinstance(error, CallFailed) and error.maybe_billed else None
            self._store.end(attempt, provider.name, billed, cost)
            self._settle(reservation, billed, cost, estimated=True)
            raise
        usage = _believable(reply.usage)
        answer = _answer(ask, reply, usage or bound, provider, estimated=usage is None)
        self._store.save_answer(answer, attempt)
        self._settle(reservation, usage or bound, answer.cost, estimated=usage is None)
        return usage or bound

    async def _reserve(self, llm: str, bound: Usage, cost: float | None) -> Reservation:
        while (reservation := self._budget.reserve(llm, bound, cost)) is None:
            self._settled.clear()
            await self._settled.wait()
        return reservation

    async def _under_way(self, provider: Provider, ask: Ask) -> Reply:
        if (task := asyncio.current_task()) is not None:
            self.calling.add(task)
        self.meter.in_flight += 1
        try:
            return await provider.reply(ask)
        finally:
            self.meter.in_flight -= 1
            self.calling.discard(task)

    def _settle(
        self, reservation: Reservation, usage: Usage | None, cost: float | None, *, estimated: bool
    ) -> None:
        self._budget.settle(reservation, usage, cost)
        self.meter.spent += charge(usage, cost, estimated=estimated)
        self._settled.set()


def _believable(usage: Usage | None) -> Usage | None:
    """What the server told, unless it can't be: a negative count must not fill the budget up again."""
    if usage is None or not all(0 <= n < _ABSURD for n in (usage.prompt_tokens, usage.completion_tokens)):
        return None
    return usage


def _answer(ask: Ask, reply: Reply, usage: Usage, provider: Provider, *, estimated: bool) -> Answer:
    return Answer(ask.key, replace(reply, usage=usage), provider.prices.cost(usage), estimated)
