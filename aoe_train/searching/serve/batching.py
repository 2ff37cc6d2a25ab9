"""Dynamic batching: texts that wait while the model runs become its next batch.

One thread runs the model, a second one counts tokens, and all else happens in the event loop, so nothing
needs a lock. Texts are ordered by arrival and by the tokens of their request so far: small requests overtake
the rest of a large one, but only those that come within the time that its own tokens take.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from aoe_train.evaluation.embedders.embedder import Embedder, count_tokens, in_batches
from aoe_train.searching.serve.requests import RefusalError

_TOKENS_A_SECOND = 10_000.0  # converts tokens to time in the order of texts
_CHARACTERS_READ = 50_000  # without a break
_MOST_CALLS = 64  # at once
Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(eq=False, slots=True)
class _Job:
    rows: list[np.ndarray]
    left: int
    vectors: asyncio.Future[np.ndarray]


class _QueuedTexts(NamedTuple):
    rank: float
    number: int  # unique, so nothing below is compared
    text: str
    tokens: int
    place: int
    job: _Job


@dataclass(eq=False, slots=True)
class _Call:
    asked: Any
    result: Any = None
    error: BaseException | None = None
    is_done: bool = False


def _answered(work: Callable[[list[Any]], Sequence[Any]], calls: list[_Call]) -> bool:
    """Answer some calls; of several that fail none is answered."""
    try:
        results = work([call.asked for call in calls])
    except BaseException as error:  # noqa: BLE001 - each call raises its own; a panic of polars is no Exception
        if len(calls) > 1:
            return False
        calls[0].error, calls[0].is_done = error, True
        return True
    for call, result in zip(calls, results, strict=True):
        call.result, call.is_done = result, True
    return True


class Batcher:
    """A model with a queue. It belongs to one event loop."""

    def __init__(self, model: Embedder, *, batch_tokens: int, most_texts: int) -> None:
        self.requests = self.texts = 0
        self._model, self._batch_tokens, self._most_texts = model, batch_tokens, most_texts
        self._running, self._reading = ThreadPoolExecutor(1, "model"), ThreadPoolExecutor(1, "tokens")
        self._queues: dict[str | None, list[_QueuedTexts]] = {}  # by prompt, as a batch has one
        self._numbers = count()
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._drain: asyncio.Task[None] | None = None

    async def encode(self, texts: list[str], prompt: str | None = None) -> tuple[np.ndarray, int]:
        """The vectors (text, dim) of a request's texts, and their tokens."""
        self._enter(len(texts))
        loop = asyncio.get_running_loop()
        came = loop.time()
        try:
            lengths: list[int] = []
            # One by one, so that other requests come in between.
            for part in in_batches(texts, len(texts), _CHARACTERS_READ):
                found = await loop.run_in_executor(self._reading, count_tokens, self._model, part, prompt)
                lengths += found.tolist()
            job = _Job([np.empty(0)] * len(texts), len(texts), loop.create_future())
            queue, so_far = self._queues.setdefault(prompt, []), 0
            for place, (text, tokens) in enumerate(zip(texts, lengths, strict=True)):
                so_far += tokens
                rank = came + so_far / _TOKENS_A_SECOND
                heapq.heappush(queue, _QueuedTexts(rank, next(self._numbers), text, tokens, place, job))
            if self._drain is None or self._drain.done():
                self._drain = loop.create_task(self._work())
            return await job.vectors, so_far
        finally:
            self._leave(len(texts))

    async def together(self, work: Callable[[list[Q]], Sequence[R]], asked: Q) -> R:
        """Run `work`, the same in all calls, between two batches of texts for all calls that wait."""
        self._enter(1)
        try:
            call = _Call(asked)
            self._calls.put(call)
            await asyncio.get_running_loop().run_in_executor(self._running, self._answer, work, call)
            if call.error is not None:
                raise call.error
            return cast("R", call.result)
        finally:
            self._leave(1)

    def _answer(self, work: Callable[[list[Q]], Sequence[Any]], own: _Call) -> None:
        """Answer the calls that wait, if no earlier one has answered `own`."""
        while not own.is_done:
            calls = [self._calls.get_nowait() for _ in range(min(self._calls.qsize(), _MOST_CALLS))]
            if not _answered(work, calls):
                for call in calls:  # one that fails must not fail the others
                    _answered(work, [call])

    def close(self) -> None:
        """Wait for the batch that runs, and end the threads."""
        self._running.shutdown(cancel_futures=True)
        self._reading.shutdown(cancel_futures=True)

    def _enter(self, texts: int) -> None:
        if self.texts and self.texts + texts > self._most_texts:
            message = "too many texts are waiting; try again later"
            raise RefusalError(429, message, code="queue_full", retry_after_s=1)
        self.requests, self.texts = self.requests + 1, self.texts + texts

    def _leave(self, texts: int) -> None:
        self.requests, self.texts = self.requests - 1, self.texts - texts

    async def _work(self) -> None:
        while self._queues:
            prompt = min(self._queues, key=lambda prompt: self._queues[prompt][0])
            batch = self._next(self._queues[prompt])
            if not self._queues[prompt]:
                del self._queues[prompt]
            if batch and await self._run(batch, prompt) is not None:
                for job in {item.job: None for item in batch}:  # one that fails must not fail the others
                    error = await self._run([item for item in batch if item.job is job], prompt)
                    if error is not None and not job.vectors.done():
                        job.vectors.set_exception(error)

    def _next(self, queue: list[_QueuedTexts]) -> list[_QueuedTexts]:
        """The head of a queue, up to `batch_tokens`; requests that were cancelled are dropped."""
        batch: list[_QueuedTexts] = []
        tokens_left = self._batch_tokens
        while queue and (not batch or queue[0].tokens <= tokens_left):
            item = heapq.heappop(queue)
            if not item.job.vectors.done():
                batch.append(item)
                tokens_left -= item.tokens
        return batch

    async def _run(self, batch: list[_QueuedTexts], prompt: str | None) -> BaseException | None:
        """Encode a batch and hand out its vectors; the error if it fails."""
        texts = [item.text for item in batch]
        found = asyncio.get_running_loop().run_in_executor(self._running, self._model.encode, texts, prompt)
        await asyncio.wait([found])
        if error := found.exception():
            return error
        for item, row in zip(batch, found.result(), strict=True):
            job = item.job
            job.rows[item.place], job.left = row, job.left - 1
            if not job.left and not job.vectors.done():
                job.vectors.set_result(np.stack(job.rows))
        return None
