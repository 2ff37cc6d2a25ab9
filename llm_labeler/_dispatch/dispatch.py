"""Asking all LLMs all their questions, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from llm_labeler._budget import Budget
from llm_labeler._dispatch.caller import Caller
from llm_labeler._dispatch.lane import Lane
from llm_labeler._dispatch.progress import Meter, Outcome, by_llm, together
from llm_labeler._provider import Provider
from llm_labeler._records import Ask
from llm_labeler._settings import BreakerSettings
from llm_labeler._store import Store
from pairkit.errors import PairkitError
from pairkit.progress import Listener


async def ask_all(
    asks: Mapping[str, Iterable[Ask]],
    providers: Mapping[str, Provider],
    store: Store,
    budget: Budget,
    *,
    breaker: BreakerSettings,
    progress: Listener,
    stage: str = "asking",
    total: int | None = None,
    retry_final: bool = False,
    keep_going: bool = False,
) -> Outcome:
    """Ask what is not answered yet, and keep every answer as it comes.

    Each LLM goes at its own speed through its own stream, of which only a few questions are in memory. What
    the budget has no room for is left unasked; the outcome says so. An LLM that can't be asked any more ends
    its own stream alone. Cancelling it, or killing the process, loses no answer that was kept.

    Args:
        asks: By LLM, what it is asked.
        providers: By LLM, who answers; checked by the caller, who also closes them.
        store: Where answers and failures go. What an earlier process left in flight is already charged.
        budget: Begun from what the store says is spent.
        breaker: When to give a failing server up.
        progress: Told a few times a second, and at the end.
        stage: What progress calls this.
        total: How many questions there are in all, where known.
        retry_final: Ask again what a server rejected for good.
        keep_going: Leave it to the outcome to say which LLMs could not be asked to the end.

    Raises:
        PairkitError: an LLM could not be asked to the end, or the store not be written; the others have
            finished by then.
    """
    meter = Meter(progress, total, stage)
    caller = Caller(store, budget, meter)
    lanes: dict[str, asyncio.Task[PairkitError | None]] = {}
    for llm, questions in asks.items():
        provider = providers[llm]
        lane = Lane(provider, questions, store, caller, breaker, retry_final=retry_final)
        lanes[llm] = asyncio.create_task(lane.run())
    try:
        if lanes:
            await asyncio.wait(lanes.values(), return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in lanes.values():
            task.cancel()
        ends = await asyncio.gather(*lanes.values(), return_exceptions=True)
        meter.changed(last=True)
    problems = by_llm(dict(zip(lanes, ends, strict=True)))
    if problems and not keep_going:
        raise together(list(problems.values()))
    return meter.outcome(problems)
