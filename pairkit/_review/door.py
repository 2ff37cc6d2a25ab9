"""The door of the server: nothing reaches the application but requests of its own page, and of moderate size.

Besides what `pairkit.http_door` refuses: whoever asks for data must send a person's token in a header, which
another page neither knows nor may send. No cookie is ever set, and no CORS header.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pairkit.http_door import (
    RefusedError,
    body_of,
    check_json,
    check_length,
    check_own_page,
    headers_of,
    replayed,
)
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
_SCHEME = "Bearer "


class Door:
    """An ASGI application before another one."""

    def __init__(self, inner: ASGIApp, port: int) -> None:
        self._inner = inner
        self._hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}

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
        await self._inner(scope, replayed(body, receive), marked)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a request that may pass.

        Raises:
            RefusedError: It may not.
        """
        headers = headers_of(scope["headers"])
        check_own_page(headers, self._hosts)
        if scope["method"] == "POST":
            check_json(headers)
        check_length(headers, MOST_BYTES)
        return await body_of(receive, MOST_BYTES)


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
