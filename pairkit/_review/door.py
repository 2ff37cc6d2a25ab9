"""The door of the server: nothing reaches the application but requests of its own page, and of moderate size.

A page of another origin could have a browser send requests here. So the host must be the address that was
bound (else a name could be pointed at it: DNS rebinding), the origin our own, and whoever asks for data must
send a person's token in a header, which another page neither knows nor may send: no cookie is ever set, and
no CORS header.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pairkit.judgements import Person

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = [
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]
"""Of every answer."""
MOST_BYTES = 16 << 10  # of a request's body
_JSON = b"application/json"
_SCHEME = "Bearer "


class RefusedError(Exception):
    """A request that does not pass, with its status."""

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(words)


class Door:
    """An ASGI application before another one."""

    def __init__(self, inner: ASGIApp, port: int) -> None:
        self._inner = inner
        self._hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with why not."""
        if scope["type"] != "http":
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        try:
            body = await self._read(scope, receive)
        except RefusedError as refused:
            await _answer(marked, refused.status, str(refused))
            return
        told = False

        async def once() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._inner(scope, once, marked)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a request that may pass.

        Raises:
            RefusedError: It may not.
        """
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        if len(hosts := headers.get(b"host", [])) != 1 or hosts[0].lower() not in self._hosts:
            raise RefusedError(421, "this server has another address")
        if any(origin not in self._origins for origin in headers.get(b"origin", [])):
            raise RefusedError(403, "another page may not ask here")
        if any(site not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])):
            raise RefusedError(403, "another page may not ask here")
        if scope["method"] == "POST" and headers.get(b"content-type") != [_JSON]:
            raise RefusedError(415, "expected application/json")
        length = headers.get(b"content-length", [b"0"])[0]
        if not length.isdigit() or len(length) > 9 or int(length) > MOST_BYTES:
            raise RefusedError(413, f"more than {MOST_BYTES:,} bytes")
        return await _body(receive)


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "gone")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise RefusedError(413, f"more than {MOST_BYTES:,} bytes")
        if not message.get("more_body"):
            return bytes(body)


async def _answer(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})


def who_asks(authorization: str, people: Sequence[Person]) -> Person | None:
    """The person whose token a header holds; all are compared, each in constant time."""
    given = authorization.removeprefix(_SCHEME).encode("utf-8", "replace")
    if not authorization.startswith(_SCHEME):
        return None
    found = [person for person in people if hmac.compare_digest(person.token.encode(), given)]
    return found[0] if found else None
