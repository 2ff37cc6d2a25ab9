"""The door of the server: who may ask, and bodies of moderate size; each request is counted once."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from aoe_train._serve.limits import MIB, Limits
from aoe_train._serve.metrics import Metrics
from aoe_train._serve.refusals import RefusalError
from pairkit.http_door import (
    RefusedError,
    body_of,
    check_json,
    check_length,
    check_own_page,
    headers_of,
    replayed,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROUTES = ("/v1/embeddings", "/v1/models", "/search", "/health", "/metrics", "/openapi.json")
_OPEN = "/health"  # to whoever has no key
_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_SCHEME = b"bearer "
_GONE = 499  # as nginx counts a client that left


class Door:
    """An ASGI application before another one."""

    def __init__(
        self, inner: ASGIApp, limits: Limits, metrics: Metrics, *, hosts: Collection[bytes], key: str | None
    ) -> None:
        """Stand before an application.

        Args:
            inner: Behind the door.
            limits: Of bodies.
            metrics: Told of each request.
            hosts: The only names that a request may call the server by; empty for any.
            key: What a request has to bear; None for nothing.
        """
        self._inner, self._limits, self._metrics = inner, limits, metrics
        self._hosts, self._key = hosts, None if key is None else key.encode()
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with why not."""
        if scope["type"] != "http":
            return
        begun, status, held = time.perf_counter(), _GONE, 0

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            headers = headers_of(scope["headers"])
            self._check(scope["path"], headers)
            if scope["method"] != "POST":
                await self._inner(scope, receive, marked)
                return
            body = await self._body(headers, receive)
            held = len(body)
            self._held += held
            await self._inner(scope, replayed(body, receive), marked)
        except RefusedError as refused:
            await refuse(marked, RefusalError(refused.status, str(refused)))
        except RefusalError as refused:
            await refuse(marked, refused)
        finally:
            self._held -= held
            path = scope["path"] if scope["path"] in ROUTES else "other"
            self._metrics.requests.labels(path, status).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - begun)

    def _check(self, path: str, headers: Mapping[bytes, Sequence[bytes]]) -> None:
        if self._hosts:
            check_own_page(headers, self._hosts)
        if self._key is None or path == _OPEN:
            return
        given = headers.get(b"authorization", [])
        known = len(given) == 1 and given[0][: len(_SCHEME)].lower() == _SCHEME
        if not known or not hmac.compare_digest(given[0][len(_SCHEME) :].strip(), self._key):
            raise RefusalError(401, "a key is needed, as Authorization: Bearer KEY", code="invalid_api_key")

    async def _body(self, headers: Mapping[bytes, Sequence[bytes]], receive: Receive) -> bytes:
        check_json(headers)
        most = self._limits.body_mib * MIB
        check_length(headers, most)
        if self._held and self._held + most > self._limits.held_mib * MIB:
            raise RefusalError(429, "too much is being worked on; try again in 1 s", retry_after_s=1)
        try:
            async with asyncio.timeout(self._limits.receive_s):
                return await body_of(receive, most)
        except TimeoutError:
            raise RefusalError(408, f"the body took more than {self._limits.receive_s:g} s") from None


async def refuse(send: Send, refused: RefusalError) -> None:
    """Answer with an error, and end the connection, as there may be more of the body."""
    headers = [(name.encode(), value.encode()) for name, value in refused.headers.items()]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": refused.body})
