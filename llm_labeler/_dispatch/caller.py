"""One call: room in the budget, written down, made, charged, kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from llm_labeler._budget import Budget, charge
from llm_labeler._dispatch.progress import Meter
from llm_labeler._provider import CallFailed, Provider
from llm_labeler._records import Answer, Ask, Reply, Usage
from llm_labeler._store import Store
from pairkit.errors import PairkitError


class Caller:
    """Makes calls for all LLMs, which share one budget and one store."""

    def __init__(self, store: Store, budget: Budget, meter: Meter) -> None:
        self.calling: set[asyncio.Task[None]] = set()  # whose call is under way
        self.meter = meter
        self._store, self._budget = store, budget

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
        reservation = await self._budget.room(provider.name, bound, cost)
        try:
            attempt = self._store.begin(ask.key, bound, cost)
        except BaseException:
            self._budget.release(reservation)
            raise
        # However the call ends, others wait for its room: unless more is known it took all that it could.
        usage: Usage | None = bound
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
            self._store.save_answer(Answer(ask.key, known, cost, estimated), attempt)
            return usage
        finally:
            self._budget.settle(reservation, usage, cost)
            self.meter.spent += charge(usage, cost, estimated=estimated)

    async def _under_way(self, provider: Provider, ask: Ask) -> Reply:
        if (task := asyncio.current_task()) is not None:
            self.calling.add(task)
        self.meter.in_flight += 1
        try:
            return await provider.reply(ask)
        finally:
            self.meter.in_flight -= 1
            self.calling.discard(task)
