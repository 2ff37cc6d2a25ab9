"""Ask through the Batch API: half the price, within a day.

A batch is stored with its questions before it is started, under a tag that the server keeps, too. A killed
run therefore finds its batch again and never starts it twice. All results of a batch are stored in one
transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from llm_labeler.clients.llms import Provider
from llm_labeler.dispatch.answer_store import QUESTIONS, AnswerStore, SubmittedBatch
from llm_labeler.dispatch.budget import (
    MAX_MISFITS,
    Budget,
    BudgetSpent,
    Reservation,
    Spending,
)
from llm_labeler.dispatch.openai_batches import (
    ENDED,
    BatchDraft,
    BatchResults,
    BatchStatus,
    OpenAiBatches,
    read_results,
)
from llm_labeler.dispatch.workers import Meter, ask_all, finish
from llm_labeler.records import Ask, AskKey, TokenUsage
from llm_labeler.settings import BreakerSettings
from pairkit.base.cli.progress import Listener
from pairkit.base.errors import ConfigError, RemoteError
from pairkit.base.system.machine import batched

if TYPE_CHECKING:
    from llm_labeler.clients.llm_server import ServerProvider


_STARTING = "starting"  # state of a batch that may not have reached the server


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
) -> Meter:
    """Collect earlier batches, then ask the other questions and wait for the results; see `ask_all`."""
    meter = Meter(progress, None, stage, budget)
    servers = {llm: _with_batches(providers[llm]) for llm in asks}
    tasks = {}
    for llm, server in servers.items():
        batcher = _Batcher(server, store, budget, meter, poll_s, retry_final)
        tasks[llm] = asyncio.create_task(batcher.run(asks[llm]))
    return await finish(tasks, meter, asyncio.ALL_COMPLETED, keep_going=keep_going)


def _with_batches(provider: Provider) -> ServerProvider:
    from llm_labeler.clients.llm_server import ServerProvider

    if isinstance(provider, ServerProvider) and provider.has_batches:
        return provider
    raise ConfigError(
        f"llm {provider.name}: has no Batch API; leave it out, or run without --batch"
    )


@dataclass
class _Batcher:
    """One LLM's batches."""

    provider: ServerProvider
    store: AnswerStore
    budget: Budget
    meter: Meter
    poll_s: float
    retry_final: bool

    def __post_init__(self) -> None:
        self._server = OpenAiBatches(self.provider, self.poll_s)
        self._draft = BatchDraft()  # the next batch
        # What this process's batches reserve, by custom id.
        self._reservations: dict[str, Reservation] = {}
        # Questions answered by batches of an earlier process.
        self._collected: set[AskKey] = set()
        is_half_price = self.provider.address.host == self._server.maker
        self._discount = 0.5 if is_half_price else 1.0

    async def run(self, asks: Iterable[Ask]) -> None:
        """Collect earlier batches, then ask the other questions."""
        try:
            await self._resume()
            await self._collect_all()
            await self._ask(self._unanswered(asks))
        finally:  # after an error, free the reservations; submitted batches may still be billed
            for reservation in self._draft.reservations.values():
                self.budget.release(reservation)
            for reservation in self._reservations.values():
                self.budget.write_off(reservation)

    def _unanswered(self, asks: Iterable[Ask]) -> Iterator[Ask]:
        for batch in batched(asks, QUESTIONS):
            missing = self.store.unanswered(batch, retry_final=self.retry_final)
            # With `retry_final`, collected answers without text are asked again.
            self._collected.difference_update(ask.key for ask in missing)
            collected = sum(ask.key in self._collected for ask in batch)
            self.meter.done += collected
            self.meter.cached += len(batch) - len(missing) - collected
            yield from missing

    async def _ask(self, questions: Iterator[Ask]) -> None:
        """Ask the first question directly, at full price, to detect a wrong key or model; then all others."""
        first = next(questions, None)
        if first is None:
            return
        name = self.provider.name
        outcome = await ask_all(
            {name: [first]},
            {name: self.provider},
            self.store,
            self.budget,
            breaker=BreakerSettings(),
            progress=lambda _: None,
            retry_final=self.retry_final,
        )
        self.meter.done += outcome.done
        self.meter.spent += outcome.spent
        if outcome.stopped_by is not None:
            self.meter.stopped_by = outcome.stopped_by
            return
        repeated = self.store.unanswered([first])
        if not repeated:
            self.meter.failed += outcome.failed
        await self._submit_all(chain(repeated, questions))
        await self._collect_all()

    async def _submit_all(self, asks: Iterable[Ask]) -> None:
        misfits = 0
        for ask in asks:
            line = self._server.line(ask)
            draft = self._draft
            is_full = len(draft.keys) == self._server.max_requests
            if is_full or draft.size + len(line) > self._server.max_bytes:
                await self._submit()
            max_usage = self.provider.max_usage(ask)
            try:
                reservation = await self._reserve(max_usage)
            except BudgetSpent as spent:
                self.meter.stopped_by = spent.limit
                misfits += 1
                if misfits >= MAX_MISFITS:
                    break
                continue
            self._draft.add(ask, line, max_usage, reservation)
            misfits = 0
        await self._submit()

    async def _reserve(self, max_usage: TokenUsage) -> Reservation:
        """Reserve the bound of a question; while it doesn't fit, submit the draft and wait."""
        cost = self._cost(max_usage)
        while True:
            reservation = self.budget.reserve(
                self.provider.name, max_usage, cost, in_bulk=True
            )
            if reservation is not None:
                return reservation
            await self._submit()
            if self._reservations:  # collecting this LLM's batches frees them
                await self._collect_all()
            else:
                await self.budget.wait_for_release()

    async def _submit(self) -> None:
        """Start the drafted batch."""
        draft = self._draft
        if not draft.keys:
            return
        file_id = await self._server.upload(draft)
        batch = SubmittedBatch(
            self.provider.name,
            draft.tag,
            _STARTING,
            draft.keys,
            draft.max_usage,
            self._cost(draft.max_usage),
        )
        self._reservations |= draft.reservations
        self._draft = BatchDraft()
        self.store.save_batch(batch)
        self._update(batch, await self._server.create(draft, file_id))
        self.meter.in_flight += len(draft.keys)
        self.meter.changed()

    async def _resume(self) -> None:
        """Find out which batches of an earlier process were started."""
        for batch in self.store.batches(self.provider.name):
            if batch.state == _STARTING:
                status = await self._server.find(batch.batch_id)
                if status is None:
                    self.store.delete_batch(batch.batch_id)
                    self.budget.correct(batch.max_spending, Spending())
                    continue
                self._update(batch, status)
            self.meter.in_flight += len(batch.keys)

    def _update(self, batch: SubmittedBatch, status: BatchStatus) -> None:
        updated = replace(batch, batch_id=status.batch_id, state=status.state)
        self.store.save_batch(updated, replaces=batch.batch_id)

    async def _collect_all(self) -> None:
        """Wait for every batch of this LLM, and store its results."""
        pending = self.store.batches(self.provider.name)
        while pending:
            for batch in list(pending):
                status = await self._server.status(batch.batch_id)
                if status.state in ENDED:
                    await self._collect(batch, status)
                    pending.remove(batch)
            self.meter.changed()
            if pending:
                await asyncio.sleep(self.poll_s)

    async def _collect(self, batch: SubmittedBatch, status: BatchStatus) -> None:
        if status.state == "failed":
            self.store.delete_batch(batch.batch_id)
            self._settle(batch, BatchResults())
            raise RemoteError(
                f"llm {batch.llm}: the server rejected batch {batch.batch_id}"
                f" ({status.problem or 'no reason given'}); fix the cause, then run the same command again"
            )
        lines = await self._server.results(status)
        results = await read_results(
            self.provider, batch, status.state, lines, self._discount
        )
        failures = [
            (failure, results.charges[name])
            for name, failure in results.failures.items()
        ]
        self.store.collect_batch(batch, results.answers.values(), failures)
        self._settle(batch, results)
        if results.problem is not None:
            raise results.problem

    def _settle(self, batch: SubmittedBatch, results: BatchResults) -> None:
        """Replace the reservation of a batch, or the bound counted by an earlier process, by its usage."""
        charges = {
            name: results.charges[name]
            for name in (*results.answers, *results.failures)
        }
        spent = sum(charges.values(), Spending())
        self.meter.spent += spent
        self.meter.in_flight -= len(batch.keys)
        if self._reservations.keys().isdisjoint(batch.keys):
            self.budget.correct(batch.max_spending, spent)
            # Failures are asked again.
            self._collected.update(batch.keys[name] for name in results.answers)
            return
        self.meter.done += len(results.answers)
        self.meter.failed += len(results.failures)
        for name in batch.keys:
            reservation = self._reservations.pop(name)
            if name in charges:
                self.budget.settle(reservation, charges[name])
            else:
                self.budget.release(reservation)

    def _cost(self, max_usage: TokenUsage) -> float | None:
        cost = self.provider.prices.cost(max_usage)
        return None if cost is None else cost * self._discount
