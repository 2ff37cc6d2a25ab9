"""The server: authorization, routes, the search page, and the thread that runs them."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aoe_train.encoding.embedders.embedder import Embedder, cut_to
from aoe_train.model.quantization import checked_dim
from aoe_train.searching.index import SearchIndex
from aoe_train.searching.ranking import checked_query
from aoe_train.searching.serve.batching import (
    MIB,
    Batcher,
    EmbeddingRequest,
    Limits,
    RefusalError,
    SearchRequest,
    decoded,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.address import is_loopback, reachable_host
from pairkit.base.system.http_server import (
    HttpServer,
    RefusedError,
    check_own_page,
    html_page,
    json_body,
    listening_socket,
)
from pairkit.base.system.machine import share_memory_among_threads

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_STOP_S = 30  # seconds for running requests when the server is stopped
R = TypeVar("R")


class EmbeddingServer(HttpServer):
    """A server that runs in its own thread. Use it as a context manager, or `close` it.

    Attributes:
        url: Its address, for other machines if it listens on all addresses of this one.
        page_url: The address of the search page, with the key.
        model: The model's name in requests.
    """

    def __init__(
        self,
        embedders: Sequence[Embedder],
        *,
        name: str,
        indexes: Sequence[SearchIndex] = (),
        host: str,
        port: int,
        key: str | None,
        limits: Limits,
    ) -> None:
        """Start the server of the first model; each index has the model in its place."""
        share_memory_among_threads()
        listening = listening_socket(host, port)
        port = listening.getsockname()[1]
        address = reachable_host(host)
        shown = f"[{address}]" if ":" in address else address
        self.url = f"http://{shown}:{port}"
        self.model = name
        self.page_url = self.url if key is None else f"{self.url}/#{key}"
        self._hosts = frozenset[str]()
        if is_loopback(host):
            names = ("localhost", "127.0.0.1", "[::1]", shown)
            self._hosts = frozenset(f"{own}:{port}" for own in names)
        self._key = None if key is None else key.encode()
        self._indexes = indexes
        self._limits = limits
        self._batchers = [
            Batcher(model, batch_tokens=limits.batch_tokens, most_texts=limits.queue)
            for model in embedders
        ]
        self._html, self._html_headers = html_page(__package__ or "")
        self._held = 0  # bytes of bodies
        super().__init__(
            self._routes(),
            listening,
            name="serve",
            connections=limits.connections,
            receive_s=limits.receive_s,
            stop_s=_STOP_S,
        )

    def close(self) -> None:
        """Finish running requests, and stop; may be called twice."""
        super().close()
        for batcher in self._batchers:
            batcher.close()

    def _routes(self) -> Starlette:
        errors = (RefusalError, RefusedError, HTTPException, Exception)
        return Starlette(
            routes=[
                self._post("/v1/embeddings", self._embed),
                self._get("/v1/models", self._models),
                self._get(
                    "/v1/models/{name:path}",
                    lambda request: _json(self._model(request.path_params["name"])),
                ),
                self._post("/search", self._search),
                self._get("/search", self._describe_indexes),
                self._get("/", self._page, is_open=True),
                self._get("/health", self._health, is_open=True),
            ],
            exception_handlers=dict.fromkeys(errors, _refused),
        )

    def _get(
        self,
        path: str,
        respond: Callable[[Request], Response],
        *,
        is_open: bool = False,
    ) -> Route:
        async def answer(request: Request) -> Response:
            self._check(request, is_open=is_open)
            return respond(request)

        return Route(path, answer, methods=["GET"])

    def _post(
        self, path: str, respond: Callable[[bytes], Coroutine[object, object, Response]]
    ) -> Route:
        async def answer(request: Request) -> Response:
            self._check(request)
            async with self._body(request) as body:
                try:
                    return await _unless_disconnected(request, respond(body))
                except (ConfigError, DataError) as error:
                    raise RefusalError(400, str(error)) from error

        return Route(path, answer, methods=["POST"])

    def _check(self, request: Request, *, is_open: bool = False) -> None:
        if self._hosts:
            is_page = request.method == "GET" and request.url.path == "/"
            check_own_page(request.headers, self._hosts, is_page=is_page)
        if self._key is None or is_open:
            return
        given = request.headers.get("authorization", "").encode("latin-1")
        scheme, _, key = given.partition(b" ")
        is_right = hmac.compare_digest(key.strip(), self._key)
        if scheme.lower() != b"bearer" or not is_right:
            message = "this server needs a key: Authorization: Bearer KEY"
            raise RefusalError(401, message, code="invalid_api_key")

    @asynccontextmanager
    async def _body(self, request: Request) -> AsyncIterator[bytes]:
        """The body; its bytes are held from their arrival until the reply."""
        most = self._limits.body_mib * MIB
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            others = self._held - held
            if others and self._held + size > self._limits.held_mib * MIB:
                raise RefusalError(
                    429, "too many requests; try again in 1 s", retry_after_s=1
                )
            held += size
            self._held += size

        try:
            yield await json_body(request, most, self._limits.receive_s, hold)
        finally:
            self._held -= held

    async def _embed(self, body: bytes) -> Response:
        request = decoded(body, EmbeddingRequest)
        if request.model is not None:
            self._model(request.model)
        texts = request.texts(self._limits.texts)
        prompt = None
        if request.prompt_name is not None:
            prompt = self._batchers[0].model.prompts.chosen(
                prompt=None, name=request.prompt_name
            )
        vectors, tokens = await self._batchers[0].encode(texts, prompt)
        if request.dimensions is not None:
            vectors = cut_to(vectors, checked_dim(request.dimensions, vectors.shape[1]))
        if not np.isfinite(vectors).all():
            raise RefusalError(500, "the model returned NaN or infinity")
        if request.encoding_format == "base64":
            little_endian = vectors.astype("<f4", order="C")
            rows = [base64.b64encode(row).decode() for row in little_endian]
        else:
            rows = vectors.tolist()
        data = [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return _json(
            {"object": "list", "data": data, "model": self.model, "usage": usage}
        )

    async def _search(self, body: bytes) -> Response:
        request = decoded(body, SearchRequest)
        index = self._index(request.index)
        batcher = self._batchers[request.index]
        query = checked_query(
            request.text,
            request.by,
            request.top,
            request.weight,
            request.where,
            request.before,
        )
        if query.by != "words":
            prompt = batcher.model.prompts.query
            (vector,), _ = await batcher.encode([query.text], prompt)
            query = query._replace(vector=vector)
        hits = await batcher.together(index.search_together, query)
        return _json(hits.to_dict())

    def _page(self, _: Request) -> Response:
        html_type = "text/html; charset=utf-8"
        return Response(self._html, headers=self._html_headers, media_type=html_type)

    def _describe_indexes(self, _: Request) -> Response:
        """What the page shows of each index before a search."""
        self._index(0)
        indexes = []
        for batcher, index in zip(self._batchers, self._indexes, strict=True):
            model = batcher.model.name
            purpose = index.about.purpose
            name = model if purpose is None else f"{model} for {purpose}"
            indexes.append(
                {"model": name, "texts": len(index), "columns": index.about.text}
            )
        return _json({"indexes": indexes})

    def _index(self, number: int) -> SearchIndex:
        if number >= len(self._indexes):
            flag = "--against" if number else "--index"
            raise RefusalError(
                404,
                f"this server has no such index; start it with {flag}",
                param="index",
            )
        return self._indexes[number]

    def _models(self, _: Request) -> Response:
        return _json({"object": "list", "data": [self._model(self.model)]})

    def _model(self, name: str) -> dict[str, object]:
        """A model as OpenAI's clients expect it; refuses all but the served one."""
        if name != self.model:
            message = (
                f"no model {one_line(name, 100)!r}; this server has {self.model!r}"
            )
            raise RefusalError(404, message, param="model", code="model_not_found")
        return {"id": name, "object": "model", "created": 0, "owned_by": "aoe"}

    def _health(self, _: Request) -> Response:
        queue = {
            "requests": sum(batcher.requests for batcher in self._batchers),
            "texts": sum(batcher.texts for batcher in self._batchers),
        }
        return _json({"status": "ok", "model": self.model, "queue": queue})


def _json(content: dict[str, object]) -> Response:
    body = msgspec.json.encode(content)
    return Response(body, media_type="application/json", headers=_HEADERS)


async def _unless_disconnected(
    request: Request, work: Coroutine[object, object, R]
) -> R:
    """Run `work`, or cancel it if the client disconnects."""
    running = asyncio.ensure_future(work)
    # After the body, only a disconnect can follow.
    disconnected = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({running, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise RefusalError(499, "the client disconnected")
        return running.result()
    finally:
        running.cancel()
        disconnected.cancel()


async def _refused(_: Request, error: Exception) -> Response:
    match error:
        case RefusalError():
            refusal = error
        case RefusedError():
            refusal = RefusalError(error.status, str(error))
        case HTTPException():
            refusal = RefusalError(error.status_code, error.detail)
            refusal.headers.update(error.headers or {})
        case _:  # Starlette raises it again, so it is logged on stderr
            refusal = RefusalError(500, "internal error; see the server's log")
    headers = {**_HEADERS, **refusal.headers}
    return Response(
        refusal.body, refusal.status, headers, media_type="application/json"
    )


def check_open(host: str, *, has_key: bool, no_key: bool) -> None:
    """Refuse an address that other machines can reach, unless there is a key or `--no-key`; not both."""
    if has_key and no_key:
        raise ConfigError("--no-key: contradicts --key-env; leave one out")
    if not is_loopback(host) and not has_key and not no_key:
        raise ConfigError(
            f"host {host}: other machines could use this server; set a key with --key-env, or give --no-key"
        )
