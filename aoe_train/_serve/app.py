"""The routes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from aoe_train._evaluate.embedders.embedder import Embedder
from aoe_train._evaluate.embedders.small import cut_to
from aoe_train._serve.batching import Batcher, FullError
from aoe_train._serve.limits import Limits
from aoe_train._serve.metrics import Metrics
from aoe_train._serve.openapi import openapi
from aoe_train._serve.refusals import RefusalError
from aoe_train._serve.token_arrays import TokenArrays
from aoe_train._serve.wire import Sought, Texts, check_model, listed, read
from aoe_train._small import checked_dim
from pairkit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from starlette.requests import Request

R = TypeVar("R")


class Found(Protocol):
    """A hit of an index; see `aoe_train.Hit`."""

    @property
    def text(self) -> str:
        """The text."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Its place, scores and row."""
        ...


Search = Callable[[Sought], Sequence[Found]]


class Application:
    """What answers behind the door."""

    def __init__(
        self,
        embedder: Embedder,
        name: str,
        search: Search | None,
        batcher: Batcher,
        metrics: Metrics,
        limits: Limits,
        arrays: TokenArrays | None = None,
    ) -> None:
        """Put it together.

        Args:
            embedder: Whose prompts may be named.
            name: What clients call the model.
            search: Looks into an index; None where there is none.
            batcher: Runs the model.
            metrics: Told of texts and tokens.
            limits: Of a request.
            arrays: Reads texts that come as arrays of tokens; None refuses them.
        """
        self._embedder, self._name, self._search = embedder, name, search
        self._batcher, self._metrics, self._limits = batcher, metrics, limits
        self._arrays = arrays

    def routes(self) -> Starlette:
        """The application."""
        return Starlette(
            routes=[
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/v1/models/{name:path}", self._model, methods=["GET"]),
                Route("/search", self._found, methods=["POST"]),
                Route("/health", self._health, methods=["GET"]),
                Route("/metrics", self._told, methods=["GET"]),
                Route("/openapi.json", self._described, methods=["GET"]),
            ],
            exception_handlers={
                RefusalError: _refused,
                FullError: _refused,
                HTTPException: _refused,
                Exception: _refused,
            },
        )

    async def _embeddings(self, request: Request) -> Response:
        asked = read(await request.body(), Texts)
        check_model(asked.model, self._name)
        texts = asked.texts(self._limits.texts, self._arrays)
        try:
            prompt = None
            if asked.prompt_name is not None:
                prompt = self._embedder.prompts.chosen(prompt=None, name=asked.prompt_name)
            done = await _unless_gone(request, self._batcher.encode(texts, prompt))
            vectors = done.vectors
            if asked.dimensions is not None:
                vectors = cut_to(vectors, checked_dim(asked.dimensions, vectors.shape[1]))
        except (ConfigError, DataError) as wrong:
            raise RefusalError(400, str(wrong)) from wrong
        if not np.isfinite(vectors).all():
            raise RefusalError(500, "the model gave a number that is not finite")
        self._metrics.texts.inc(len(texts))
        self._metrics.tokens.inc(done.tokens)
        self._metrics.cut.inc(done.cut)
        return _json(listed(vectors, asked.encoding_format, self._name, done.tokens))

    async def _found(self, request: Request) -> Response:
        if self._search is None:
            raise RefusalError(404, "this server has no index; start it with --index")
        sought, search = read(await request.body(), Sought), self._search
        if not sought.text.strip():
            raise RefusalError(400, "the text is empty; give what to search for", param="text")
        try:
            hits = await _unless_gone(request, self._batcher.alone(lambda: search(sought)))
        except ConfigError as wrong:
            raise RefusalError(400, str(wrong)) from wrong
        return _json(msgspec.json.encode({"hits": [{**hit.to_dict(), "text": hit.text} for hit in hits]}))

    async def _models(self, _: Request) -> Response:
        return _json(msgspec.json.encode({"object": "list", "data": [self._shown()]}))

    async def _model(self, request: Request) -> Response:
        check_model(request.path_params["name"], self._name)
        return _json(msgspec.json.encode(self._shown()))

    def _shown(self) -> dict[str, Any]:
        return {"id": self._name, "object": "model", "created": 0, "owned_by": "aoe"}

    async def _health(self, _: Request) -> Response:
        queue = {"requests": self._batcher.requests, "texts": self._batcher.texts}
        return _json(msgspec.json.encode({"status": "ok", "model": self._name, "queue": queue}))

    async def _told(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _described(self, _: Request) -> Response:
        return _json(msgspec.json.encode(openapi(self._limits, has_search=self._search is not None)))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


async def _unless_gone(request: Request, work: Coroutine[Any, Any, R]) -> R:
    """What comes of some work, which is dropped when nobody waits for it any more."""
    running = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise RefusalError(499, "the client is gone")
        return running.result()
    finally:
        for task in (running, gone):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await _ended(task)


async def _ended(task: Awaitable[Any]) -> None:
    await asyncio.wait([asyncio.ensure_future(task)])


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _refused(_: Request, error: Exception) -> Response:
    match error:
        case RefusalError():
            refusal = error
        case FullError():
            refusal = RefusalError(429, str(error), code="queue_full", retry_after_s=error.retry_after_s)
        case HTTPException():
            refusal = RefusalError(error.status_code, error.detail)
        case _:  # Starlette raises it again, so that it is told on stderr
            refusal = RefusalError(500, "a fault of the server; its log says more")
    return Response(refusal.body, refusal.status, headers=refusal.headers)
