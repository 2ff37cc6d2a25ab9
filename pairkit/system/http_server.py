"""A server that runs in a thread of its own until it is closed: that of `pairs review` and of `aoe serve`."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp, Receive


LOOPBACK = "127.0.0.1"
_JSON = b"application/json"
_MOST_DIGITS = 12  # of a length


class RefusedError(Exception):
    """A request that does not pass, with its status."""

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(words)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Named as TCP, as asyncio sends at once (TCP_NODELAY) only then: else each answer takes 40 ms.
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(f"host {host}: no address of this machine ({error}); give another") from error
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(address)
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        raise ConfigError(
            f"port {port} of {host} can't be used ({error}); give another (--port, port=)"
        ) from error
    return found


def headers_of(raw: Sequence[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """Headers by name in lower case, each with all its values."""
    headers: dict[bytes, list[bytes]] = {}
    for name, value in raw:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def check_own_page(headers: Mapping[bytes, Sequence[bytes]], hosts: Collection[bytes]) -> None:
    """Refuse what was sent to another name than the server's, or by another page."""
    if len(found := headers.get(b"host", [])) != 1 or found[0].lower() not in hosts:
        raise RefusedError(421, "this server has another address")
    origins = {b"http://" + host for host in hosts}
    if any(origin not in origins for origin in headers.get(b"origin", [])):
        raise RefusedError(403, "another page may not ask here")
    if any(site not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])):
        raise RefusedError(403, "another page may not ask here")


def check_json(headers: Mapping[bytes, Sequence[bytes]]) -> None:
    """Refuse a body of another type than JSON, of which a page may send some without being asked."""
    found = headers.get(b"content-type", [])
    if len(found) != 1 or found[0].partition(b";")[0].strip().lower() != _JSON:
        raise RefusedError(415, "expected application/json")


def check_length(headers: Mapping[bytes, Sequence[bytes]], most: int) -> None:
    """Refuse a body that says itself that it is too long, before any of it is read."""
    length = headers.get(b"content-length", [b"0"])[0]
    if not length.isdigit() or len(length) > _MOST_DIGITS or int(length) > most:
        raise RefusedError(413, f"more than {most:,} bytes")


async def body_of(receive: Receive, most: int) -> bytes:
    """The body of a request, which may come in parts and not say how long it is."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "gone")
        body += message.get("body", b"")
        if len(body) > most:
            raise RefusedError(413, f"more than {most:,} bytes")
        if not message.get("more_body"):
            return bytes(body)


class HttpServer:
    """Serves an application over HTTP/1.1 alone, and keeps no log of what is asked."""

    def __init__(
        self, application: ASGIApp, listening: socket.socket, *, name: str, connections: int, stop_s: float
    ) -> None:
        """Start it."""
        import uvicorn

        self._socket = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                log_level="error",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                http="h11",
                loop="asyncio",
                proxy_headers=False,
                limit_concurrency=connections,
                timeout_graceful_shutdown=max(1, round(stop_s)),
            )
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def wait(self) -> None:
        """Block until the server is closed from another thread, or by Ctrl-C."""
        self._thread.join()

    def close(self) -> None:
        """Finish what is worked on, and stop. Closing twice is harmless."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
