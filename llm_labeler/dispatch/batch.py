"""Asking through the Batch API: half the price, within a day.

A batch is stored with all its questions before it is started, under a tag that the server keeps. A killed run
therefore finds its batch again and starts none twice. Results are stored in one step, each line matched by
its custom id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from llm_labeler.clients.chat_completions import can_be_sent
from llm_labeler.dispatch.answers import AnswerStore, SubmittedBatch, chunks
from llm_labeler.dispatch.budget import MOST_MISFITS, Budget, BudgetSpent, Reservation, Spending, charge
from llm_labeler.dispatch.openai_batches import (
    ENDED,
    BatchDraft,
    BatchResults,
    BatchStatus,
    OpenAiBatches,
    read_results,
)
from llm_labeler.dispatch.workers import AskOutcome, Meter, ask_all, by_llm, together
from llm_labeler.records import Ask, AskKey, Failure, Provider, TokenUsage
from llm_labeler.settings import BreakerSettings
from pairkit.app.errors import ConfigError, RemoteError
from pairkit.app.progress import Listener

if TYPE_CHECKING:
    from llm_labeler.clients.server import ServerProvider


_STARTING = "starting"  # the state of a batch that the server may not have heard of
_WITH_BATCHES = ("openai", "openai_compatible")


async def run_batch(
    asks: Mapping[str, Iterable[Ask]],
    providers: Mapping[str, Provider],
    store: AnswerStore,
    budget: Budget,
    *,
    progress: Listener,
    stage: str = "asking",
    poll_s: float = 30.0,
    retry_final: bool = False,
    keep_going: bool = False,
) -> AskOutcome:
    """Collect what earlier batches brought, then ask the rest and wait for it; see `ask_all`."""
    meter = Meter(progress, None, stage)
    able = {llm: _with_batches(providers[llm]) for llm in asks}
    batchers = {
        llm: _Batcher(provider, store, budget, meter, poll_s, retry_final=retry_final)
        for llm, provider in able.items()
    }
    tasks = [asyncio.create_task(batchers[llm].run(questions)) for llm, questions in asks.items()]
    try:
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        meter.changed(last=True)
    problems = by_llm(dict(zip(asks, ends, strict=True)))
    if problems and not keep_going:
        raise together(list(problems.values()))
    return meter.outcome(problems)


def _with_batches(provider: Provider) -> ServerProvider:
    from llm_labeler.clients.server import ServerProvider

    if isinstance(provider, ServerProvider) and provider.kind in _WITH_BATCHES:
        return provider
    raise ConfigError(f"llm {provider.name}: has no Batch API; leave it out, or run without batch (--batch)")


class _Batcher:
    """One LLM's batches."""

    def __init__(
        self,
        provider: ServerProvider,
        store: AnswerStore,
        budget: Budget,
        meter: Meter,
        poll_s: float,
        *,
        retry_final: bool,
    ) -> None:
        self._provider, self._store, self._budget, self._meter = provider, store, budget, meter
        self._poll_s, self._retry_final = poll_s, retry_final
        self._server = OpenAiBatches(provider, poll_s)
        self._portion = BatchDraft()  # what is handed in next
        self._held: dict[str, Reservation] = {}  # by custom id: room held by batches of this process
        self._collected: set[AskKey] = set()  # answered by batches of an earlier process
        self._discount = 0.5 if provider.address.host == self._server.maker else 1.0

    async def run(self, asks: Iterable[Ask]) -> None:
        """Ask everything; the first question at once, at the full price: it shows a wrong key or model."""
        try:
            await self._settle_starts()
            await self._collect_all()
            questions = self._unanswered(asks)
            if (first := next(questions, None)) is not None and await self._answers_now(first):
                await self._hand_in_all(chain(self._store.unanswered([first]), questions))
                await self._collect_all()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """After an error, hold no room that others wait for; what was handed in may go on, and cost."""
        for reservation in self._portion.held.values():
            self._budget.release(reservation)
        for reservation in self._held.values():
            self._budget.write_off(reservation)

    def _unanswered(self, asks: Iterable[Ask]) -> Iterator[Ask]:
        for chunk in chunks(asks):
            missing = self._store.unanswered(chunk, retry_final=self._retry_final)
            collected = sum(ask.key in self._collected for ask in chunk)
            self._meter.done += collected
            self._meter.cached += len(chunk) - len(missing) - collected
            yield from filter(self._can_be_sent, missing)

    def _can_be_sent(self, ask: Ask) -> bool:
        if sendable := can_be_sent(ask):
            return sendable
        detail = "the text holds half a surrogate pair"
        self._store.save_failure(Failure(ask.key, "rejected", detail, 0, final=True))
        self._meter.failed += 1
        return sendable

    async def _answers_now(self, ask: Ask) -> bool:
        """Ask one question directly; whether there is room for more."""
        name, breaker = self._provider.name, BreakerSettings()
        outcome = await ask_all(
            {name: [ask]},
            {name: self._provider},
            self._store,
            self._budget,
            breaker=breaker,
            progress=lambda progress: None,  # noqa: ARG005
            retry_final=self._retry_final,
        )
        self._meter.done += outcome.done
        self._meter.spent += outcome.spent
        self._meter.stopped_by = outcome.stopped_by or self._meter.stopped_by
        return outcome.stopped_by is None

    async def _hand_in_all(self, asks: Iterable[Ask]) -> None:
        misfits = 0
        for ask in asks:
            line, bound = self._server.line(ask), self._provider.bound(ask)
            if not self._server.has_room_for(self._portion, line):
                await self._hand_in()
            try:
                while (reservation := self._reserve(bound)) is None:
                    await self._hand_in()
                    await self._make_room()
            except BudgetSpent as spent:
                self._meter.stopped_by = spent.limit
                if (misfits := misfits + 1) >= MOST_MISFITS:
                    break
                continue
            self._portion.add(ask, line, bound, reservation)
            misfits = 0
        await self._hand_in()

    def _reserve(self, bound: TokenUsage) -> Reservation | None:
        return self._budget.reserve(self._provider.name, bound, self._cost(bound), in_bulk=True)

    async def _make_room(self) -> None:
        """Free what our own batches hold in the budget; else wait for other LLMs'."""
        if self._held:
            await self._collect_all()
        else:
            await self._budget.change()

    async def _hand_in(self) -> None:
        """Start a batch, and begin an empty portion."""
        portion = self._portion
        if not portion.keys:
            return
        file_id = await self._server.prepare(portion)
        name, cost = self._provider.name, self._cost(portion.bound)
        batch = SubmittedBatch(name, portion.tag, _STARTING, portion.keys, portion.bound, cost)
        self._held |= portion.held
        self._portion = BatchDraft()
        self._store.save_batch(batch)
        self._adopt(batch, await self._server.create(portion, file_id))
        self._meter.in_flight += len(portion.keys)
        self._meter.changed()

    async def _settle_starts(self) -> None:
        """Find out what became of batches that an earlier process was about to start."""
        for batch in self._store.batches(self._provider.name):
            if batch.state == _STARTING:
                if (seen := await self._server.find(batch.batch_id)) is not None:
                    self._adopt(batch, seen)
                else:
                    self._store.forget_batch(batch.batch_id)
                    self._budget.correct(batch.most, Spending())

    def _adopt(self, batch: SubmittedBatch, seen: BatchStatus) -> None:
        known = replace(batch, batch_id=seen.batch_id, state=seen.state)
        self._store.save_batch(known, replaces=batch.batch_id)

    async def _collect_all(self) -> None:
        """Wait for every batch of this LLM, and keep what it brings."""
        waiting = self._store.batches(self._provider.name)
        while waiting:
            for batch in list(waiting):
                seen = await self._server.look(batch.batch_id)
                if seen.state in ENDED:
                    await self._collect(batch, seen)
                    waiting.remove(batch)
            self._meter.in_flight = sum(len(batch.keys) for batch in waiting)
            self._meter.changed()
            if waiting:
                await asyncio.sleep(self._poll_s)

    async def _collect(self, batch: SubmittedBatch, seen: BatchStatus) -> None:
        if seen.state == "failed":
            self._store.forget_batch(batch.batch_id)
            self._settle(batch, BatchResults())
            raise RemoteError(
                f"llm {batch.llm}: the server did not take batch {batch.batch_id} "
                f"({seen.problems or 'no reason given'}); fix what it says, then run the same command again"
            )
        lines = await self._server.results(seen)
        results = await read_results(self._provider, batch, seen.state, lines, self._discount)
        self._store.collect_batch(batch, results.answers.values(), results.failures.values())
        self._settle(batch, results)
        if results.problem is not None:
            raise results.problem

    def _settle(self, batch: SubmittedBatch, results: BatchResults) -> None:
        """Put what a batch took in place of what was held for it, or counted by an earlier process."""
        charges = {name: charge(None, None) for name in results.failures}
        for name, answer in results.answers.items():
            charges[name] = charge(answer.reply.usage, answer.cost, estimated=answer.estimated)
        spent = sum(charges.values(), Spending())
        self._meter.spent += spent
        if self._held.keys().isdisjoint(batch.keys):
            self._budget.correct(batch.most, spent)
            self._collected.update(batch.keys[name] for name in results.answers)  # failures are asked again
            return
        self._meter.done += len(results.answers)
        self._meter.failed += len(results.failures)
        for name in batch.keys:
            reservation, found = self._held.pop(name), results.answers.get(name)
            if name in charges:
                usage, cost = (found.reply.usage, found.cost) if found else (None, None)
                self._budget.settle(reservation, usage, cost)
            else:
                self._budget.release(reservation)

    def _cost(self, bound: TokenUsage) -> float | None:
        cost = self._provider.prices.cost(bound)
        return None if cost is None else cost * self._discount
