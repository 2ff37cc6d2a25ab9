"""Requests and error replies in the format of OpenAI's clients, and dynamic batching.

Texts that wait while the model runs form its next batch. One thread runs the model, a second one counts tokens,
and everything else happens in the event loop, so there are no locks. A text's rank is its arrival plus the time
that the request's tokens up to it take: small requests overtake a large one that arrived just before, but don't
delay it for long.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
from msgspec import Meta
from numpy import ndarray

from aoe_train.encoding.embedders.embedder import Embedder, count_tokens, in_batches
from pairkit.base.printable import one_line
from pairkit.base.settings import Settings, setting

MIB = 1 << 20
_MAX_HITS = 1000
_MAX_QUERY = 100_000  # characters
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_TOKENS_PER_SECOND = 10_000.0  # converts tokens to time in the ranks of texts
_MAX_CHARACTERS = 50_000  # of texts that are tokenised at once
_MAX_CALLS = 64  # calls that are run together
Q = TypeVar("Q")
R = TypeVar("R")


class Limits(Settings):
    """Limits beyond which requests are refused."""

    body_mib: int = setting(8, "Maximum size of a request, in MiB.", ge=1, le=1024)
    texts: int = setting(2048, "Maximum number of texts of a request.", ge=1)
    queue: int = setting(
        16_384,
        "Maximum number of texts in progress or waiting; further requests get status 429.",
        ge=1,
    )
    batch_tokens: int = setting(
        8192,
        "Maximum number of tokens in a batch. Smaller batches need less memory and answer short requests "
        "sooner.",
        ge=1,
    )
    connections: int = setting(
        512, "Maximum number of open connections; one address gets half of them.", ge=1
    )
    held_mib: int = setting(
        256, "Maximum size of all requests in memory, in MiB.", ge=1
    )
    receive_s: float = setting(
        30,
        "Seconds until a request's headers must be complete, and then its body.",
        gt=0,
    )


class RefusalError(Exception):
    """An error reply."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int = 0,
    ) -> None:
        self.status = status
        self.param = param
        self.code = code
        # The rest of the request's body is not read, so the connection can't be used again.
        self.headers = {"connection": "close"}
        if retry_after_s:
            self.headers["retry-after"] = str(retry_after_s)
        if status == 401:
            self.headers["www-authenticate"] = "Bearer"
        super().__init__(message)

    @property
    def body(self) -> bytes:
        """The reply in JSON."""
        default = "server_error" if self.status >= 500 else "invalid_request_error"
        kind = _KINDS.get(self.status, default)
        error = {
            "message": str(self),
            "type": kind,
            "param": self.param,
            "code": self.code,
        }
        return msgspec.json.encode({"error": error})


class EmbeddingRequest(msgspec.Struct, frozen=True):
    """Body of `/v1/embeddings` as in OpenAI's reference, plus `prompt_name`; unknown keys are ignored."""

    input: str | list[str | int | list[int]]
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    prompt_name: str | None = None

    def texts(self, most: int) -> list[str]:
        """The checked texts, in order."""
        items = [self.input] if isinstance(self.input, str) else self.input
        texts = [text for text in items if isinstance(text, str)]
        if len(texts) < len(items):
            problem = "input contains token ids; send texts (LangChain: check_embedding_ctx_length=False)"
        elif not texts:
            problem = "input is empty; expected at least one text"
        elif len(texts) > most:
            problem = f"{len(texts):,} texts in one request; send at most {most:,} per request"
        elif not all(text.strip() for text in texts):
            blank = next(index for index, text in enumerate(texts) if not text.strip())
            problem = f"text {blank} (from 0) is empty; leave it out"
        else:
            return texts
        raise RefusalError(400, problem, param="input")


class SearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `/search`; see `aoe_train.search`."""

    text: Annotated[str, Meta(min_length=1, max_length=_MAX_QUERY)]
    top: Annotated[int, Meta(ge=1, le=_MAX_HITS)] = 10
    where: dict[str, str | int | float | bool] = {}
    before: dict[str, str | int | float] = {}
    by: Literal["both", "model", "words"] = "both"
    weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    index: Annotated[int, Meta(ge=0, le=1)] = 0  # 1 is the one of --against


def decoded(body: bytes, kind: type[R]) -> R:
    """Decode the body of a request."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RefusalError(400, one_line(str(error), 300)) from error
    except RecursionError:
        raise RefusalError(400, "the JSON is nested too deeply") from None


@dataclass(eq=False)
class _Job:
    """A request, with the vectors that are finished, and the number of those that are missing."""

    rows: list[ndarray]
    missing: int
    vectors: asyncio.Future[ndarray]

    def receive(self, position: int, row: ndarray) -> None:
        """Add a vector; the request is answered with the last one, unless it was cancelled."""
        self.rows[position] = row
        self.missing -= 1
        if not self.missing and not self.vectors.done():
            self.vectors.set_result(np.stack(self.rows))


class _QueuedText(NamedTuple):
    """A text in the queue, which is sorted by rank."""

    rank: float
    number: int  # unique, so the fields below are never compared
    text: str
    tokens: int
    position: int  # in its request
    job: _Job


class _Call(NamedTuple):
    """A call that waits to be run together with others."""

    argument: Any
    result: Future[Any]


def _run_calls(work: Callable[[list[Any]], Sequence[Any]], calls: list[_Call]) -> None:
    """Run some calls together; if that fails, each by itself, so that one doesn't fail the others."""
    try:
        results = work([call.argument for call in calls])
    except BaseException as error:  # noqa: BLE001 - raised by the caller; a panic of polars is no Exception
        if len(calls) == 1:
            calls[0].result.set_exception(error)
            return
        for call in calls:
            _run_calls(work, [call])
        return
    for call, result in zip(calls, results, strict=True):
        call.result.set_result(result)


class Batcher:
    """A model with a queue, for one event loop."""

    def __init__(self, model: Embedder, *, batch_tokens: int, most_texts: int) -> None:
        self.requests = 0
        self.texts = 0
        self.model = model
        self._batch_tokens = batch_tokens
        self._most_texts = most_texts
        self._running = ThreadPoolExecutor(1, "model")
        self._reading = ThreadPoolExecutor(1, "tokens")
        # A queue for each prompt, because all texts of a batch have one prompt.
        self._queues: dict[str | None, list[_QueuedText]] = {}
        self._numbers = count()
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._drain: asyncio.Task[None] | None = None

    async def encode(
        self, texts: list[str], prompt: str | None = None
    ) -> tuple[ndarray, int]:
        """The vectors (text, dim) of a request's texts, and the number of their tokens."""
        with self._counted(len(texts)):
            loop = asyncio.get_running_loop()
            arrival = loop.time()
            lengths: list[int] = []
            # In parts, so that other requests are served in between.
            for part in in_batches(texts, len(texts), _MAX_CHARACTERS):
                counts = await loop.run_in_executor(
                    self._reading, count_tokens, self.model, part, prompt
                )
                lengths += counts.tolist()
            job = _Job([np.empty(0)] * len(texts), len(texts), loop.create_future())
            queue = self._queues.setdefault(prompt, [])
            total = 0
            for index, (text, tokens) in enumerate(zip(texts, lengths, strict=True)):
                total += tokens
                rank = arrival + total / _TOKENS_PER_SECOND
                number = next(self._numbers)
                item = _QueuedText(rank, number, text, tokens, index, job)
                heapq.heappush(queue, item)
            if self._drain is None or self._drain.done():
                self._drain = loop.create_task(self._work())
            return await job.vectors, total

    async def together(self, work: Callable[[list[Q]], Sequence[R]], argument: Q) -> R:
        """Call `work`, which must always be the same, for all waiting calls between two batches of texts."""
        with self._counted(1):
            call = _Call(argument, Future())
            self._calls.put(call)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._running, self._run_waiting, work, call)
            return cast("R", call.result.result())

    def _run_waiting(
        self, work: Callable[[list[Q]], Sequence[object]], call: _Call
    ) -> None:
        """Run the waiting calls, unless `call` was already run with earlier ones."""
        while not call.result.done():
            waiting = min(self._calls.qsize(), _MAX_CALLS)
            _run_calls(work, [self._calls.get_nowait() for _ in range(waiting)])

    def close(self) -> None:
        """Wait for the current batch, and end the threads."""
        self._running.shutdown(cancel_futures=True)
        self._reading.shutdown(cancel_futures=True)

    @contextmanager
    def _counted(self, texts: int) -> Iterator[None]:
        """Count a request and its texts while it waits; refuse it if the queue is full."""
        if self.texts and self.texts + texts > self._most_texts:
            message = "too many texts are waiting; try again later"
            raise RefusalError(429, message, code="queue_full", retry_after_s=1)
        self.requests += 1
        self.texts += texts
        try:
            yield
        finally:
            self.requests -= 1
            self.texts -= texts

    async def _work(self) -> None:
        """Take batches of up to `batch_tokens` of one prompt from the queues until these are empty."""
        while self._queues:
            prompt = min(self._queues, key=lambda prompt: self._queues[prompt][0])
            queue = self._queues[prompt]
            batch: list[_QueuedText] = []
            tokens_left = self._batch_tokens
            while queue and (not batch or queue[0].tokens <= tokens_left):
                item = heapq.heappop(queue)
                if not item.job.vectors.done():  # unless it was cancelled
                    batch.append(item)
                    tokens_left -= item.tokens
            if not queue:
                del self._queues[prompt]
            if batch:
                await self._run(batch, prompt)

    async def _run(self, batch: list[_QueuedText], prompt: str | None) -> None:
        """Encode a batch; if that fails, each request by itself, so that one doesn't fail the others."""
        texts = [item.text for item in batch]
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._running, self.model.encode, texts, prompt)
        await asyncio.wait([future])
        error = future.exception()
        if error is None:
            for item, row in zip(batch, future.result(), strict=True):
                item.job.receive(item.position, row)
            return
        jobs = list(dict.fromkeys(item.job for item in batch))
        if len(jobs) > 1:
            for job in jobs:
                await self._run([item for item in batch if item.job is job], prompt)
        elif not jobs[0].vectors.done():
            jobs[0].vectors.set_exception(error)
