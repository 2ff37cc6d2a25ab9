"""Dynamic batching: what waits while the model runs becomes its next batch.

One thread runs the model, and one more reads texts into tokens to know how many there are. All else happens
in the event loop, so nothing needs a lock. A request stands in line by when it came and by its tokens: it is
overtaken by smaller ones, but only by those that come within the time that its own tokens take. A large one
is cut into batches, between which others have their turn.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, TypeVar

import numpy as np

from aoe_train._evaluate.embedders.embedder import Embedder
from aoe_train._evaluate.embedders.reading import read_as_tokens

_TOKENS_A_SECOND = 10_000.0  # by which size counts as time in the line
_LONGEST_WAIT_S = 60
_WEIGHT = 0.1  # of the last batch in what is known of the speed
R = TypeVar("R")


class FullError(Exception):
    """Too much waits; `retry_after_s` says when there may be room."""

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"too many texts are waiting; try again in {retry_after_s} s")


class Done(NamedTuple):
    """A request's vectors (text, dim), its tokens, and how many texts were cut."""

    vectors: np.ndarray
    tokens: int
    cut: int


@dataclass(order=True)
class _Job:
    rank: float
    number: int
    texts: list[str] = field(compare=False)
    ends: np.ndarray = field(compare=False)  # tokens up to the end of each text
    prompt: str | None = field(compare=False)
    vectors: asyncio.Future[np.ndarray] = field(compare=False)
    begun: int = field(default=0, compare=False)  # texts that were given to the model
    parts: list[np.ndarray] = field(default_factory=list, compare=False)


class _Share(NamedTuple):
    job: _Job
    texts: list[str]


class Batcher:
    """A model with a line before it. It belongs to one event loop.

    Attributes:
        requests: That wait or are worked on.
        texts: Of theirs.
        ran: Called after each batch with how many texts it had, from the thread that runs the model.
    """

    def __init__(self, model: Embedder, *, batch_tokens: int, most_texts: int) -> None:
        """Put a line before a model.

        Args:
            model: Whose texts are read in one thread and encoded in another.
            batch_tokens: That run at once, if one text has no more.
            most_texts: That wait; a request that is larger comes in where nothing waits.
        """
        self.requests = self.texts = 0
        self.ran: Callable[[int], None] = lambda _: None
        self._model, self._batch_tokens, self._most_texts = model, batch_tokens, most_texts
        self._running = ThreadPoolExecutor(1, "model")
        self._reading = ThreadPoolExecutor(1, "tokens")
        self._line: list[_Job] = []
        self._numbers = count()
        self._drain: asyncio.Task[None] | None = None
        self._seconds_a_text = 0.0

    async def encode(self, texts: list[str], prompt: str | None = None) -> Done:
        """The vectors of a request's texts, once it is its turn.

        Raises:
            FullError: Too much waits.
            DataError, ConfigError: Texts that the model can't read.
        """
        self._enter(len(texts))
        loop = asyncio.get_running_loop()
        came = loop.time()
        try:
            read = await loop.run_in_executor(self._reading, read_as_tokens, self._model, texts, prompt)
            ends = np.cumsum(read.lengths)
            rank = came + float(ends[-1]) / _TOKENS_A_SECOND
            job = _Job(rank, next(self._numbers), texts, ends, prompt, loop.create_future())
            heapq.heappush(self._line, job)
            if self._drain is None or self._drain.done():
                self._drain = loop.create_task(self._work())
            return Done(await job.vectors, int(ends[-1]), read.cut)
        finally:
            self._leave(len(texts))

    async def alone(self, work: Callable[[], R]) -> R:
        """Do something else with the model, between two batches.

        Raises:
            FullError: Too much waits.
        """
        self._enter(1)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._running, work)
        finally:
            self._leave(1)

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._running.shutdown(cancel_futures=True)
        self._reading.shutdown(cancel_futures=True)

    def _enter(self, texts: int) -> None:
        if self.texts and self.texts + texts > self._most_texts:
            wait_s = math.ceil(self.texts * self._seconds_a_text)
            raise FullError(min(max(wait_s, 1), _LONGEST_WAIT_S))
        self.requests, self.texts = self.requests + 1, self.texts + texts

    def _leave(self, texts: int) -> None:
        self.requests, self.texts = self.requests - 1, self.texts - texts

    async def _work(self) -> None:
        while shares := self._next():
            found = self._run(shares)
            await asyncio.wait([found])
            if found.exception() is None:
                _give(shares, found.result())
                continue
            for share in shares:  # so that one that can't be run spoils no other
                again = self._run([share])
                await asyncio.wait([again])
                if error := again.exception():
                    if not share.job.vectors.done():
                        share.job.vectors.set_exception(error)
                else:
                    _give([share], again.result())

    def _next(self) -> list[_Share]:
        """What runs next: as much from the head of the line as there is room for, all with one prompt."""
        shares: list[_Share] = []
        others: list[_Job] = []
        room = self._batch_tokens
        while self._line and room > 0:
            job = heapq.heappop(self._line)
            if job.vectors.done():  # nobody waits for it any more
                continue
            if shares and job.prompt != shares[0].job.prompt:
                others.append(job)
                continue
            before = int(job.ends[job.begun - 1]) if job.begun else 0
            stop = int(np.searchsorted(job.ends, before + room, side="right"))
            if stop <= job.begun:
                if shares:
                    others.append(job)
                    break
                stop = job.begun + 1
            shares.append(_Share(job, job.texts[job.begun : stop]))
            room -= int(job.ends[stop - 1]) - before
            job.begun = stop
            if stop < len(job.texts):
                others.append(job)
        for job in others:
            heapq.heappush(self._line, job)
        return shares

    def _run(self, shares: list[_Share]) -> asyncio.Future[np.ndarray]:
        texts = [text for share in shares for text in share.texts]
        prompt = shares[0].job.prompt
        return asyncio.get_running_loop().run_in_executor(self._running, self._timed, texts, prompt)

    def _timed(self, texts: list[str], prompt: str | None) -> np.ndarray:
        begun = time.perf_counter()
        vectors = self._model.encode(texts, prompt)
        took = (time.perf_counter() - begun) / len(texts)
        self._seconds_a_text += (_WEIGHT if self._seconds_a_text else 1) * (took - self._seconds_a_text)
        self.ran(len(texts))
        return vectors


def _give(shares: list[_Share], vectors: np.ndarray) -> None:
    """Each job its rows; one that has all of them is done."""
    start = 0
    for job, texts in shares:
        job.parts.append(vectors[start : start + len(texts)])
        start += len(texts)
        if job.begun == len(job.texts) and not job.vectors.done():
            job.vectors.set_result(job.parts[0] if len(job.parts) == 1 else np.concatenate(job.parts))
