"""Asking all LLMs all their questions, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from llm_labeler.budget import Budget
from llm_labeler.dispatch.caller import Caller
from llm_labeler.dispatch.lane import Lane
from llm_labeler.dispatch.progress import Meter, Outcome, Progress
from llm_labeler.provider import Provider
from llm_labeler.records import Ask
from llm_labeler.settings import BreakerSettings
from llm_labeler.store import Store

_GRACE_S = 15.0  # for calls under way when the run has to end


async def ask_all(
    asks: Mapping[str, Iterable[Ask]],
    providers: Mapping[str, Provider],
    store: Store,
    budget: Budget,
    *,
    breaker: BreakerSettings,
    progress: Callable[[Progress], None],
    total: int | None = None,
    retry_final: bool = False,
) -> Outcome:
    """Ask what is not answered yet, and keep every answer as it comes.

    Each LLM goes at its own speed through its own stream, of which only a few questions are in memory. What
    the budget has no room for is left unasked; the outcome says so. Cancelling it, or killing the process,
    loses no answer that was kept.

    Args:
        asks: By LLM, what it is asked.
        providers: By LLM, who answers; checked by the caller, who also closes them.
        store: Where answers and failures go. What an earlier process left in flight is already charged.
        budget: Begun from what the store says is spent.
        breaker: When to give a failing server up.
        progress: Told a few times a second, and at the end.
        total: How many questions there are in all, where known.
        retry_final: Ask again what a server rejected for good.

    Raises:
        PairkitError: an LLM can't be asked any more, or the store can't be written. No new call left after
            that, and those under way had a moment to finish.
    """
    meter = Meter(progress, total)
    caller = Caller(store, budget, meter)
    workers: list[asyncio.Task[None]] = []
    try:
        for llm, questions in asks.items():
            provider = providers[llm]
            store.save_parameters(provider.parameters, provider.parameters_text)
            lane = Lane(provider, questions, store, caller, breaker, retry_final=retry_final)
            workers += [asyncio.create_task(lane.work()) for _ in range(lane.width)]
        if workers:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            await _let_finish(workers, caller)
    finally:
        for worker in workers:
            worker.cancel()
        ends = await asyncio.gather(*workers, return_exceptions=True)
        meter.changed(last=True)
    for end in ends:
        if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
            raise end
    return meter.outcome()


async def _let_finish(workers: Iterable[asyncio.Task[None]], caller: Caller) -> None:
    """After an error: whoever waits goes home, whoever calls gets a moment for the answer."""
    caller.closing = True
    for worker in workers:
        if worker not in caller.calling:
            worker.cancel()
    if caller.calling:
        await asyncio.wait(set(caller.calling), timeout=_GRACE_S)
