"""An HTTP server in its own thread, for `pairs review` and `aoe serve`, with request checks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import threading
from collections.abc import Callable, Collection
from sys import getsizeof
from typing import TYPE_CHECKING, Self

from pairkit.base.cli.result_table import PAGE_HEAD, resource, style
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.types import ASGIApp


LOOPBACK = "127.0.0.1"
_LAST_PORT = 65_535
PAGE_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_WAIT_S = 1.0


class RefusedError(Exception):
    """A refused request with its status."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket."""
    if not 0 <= port <= _LAST_PORT:  # getaddrinfo takes the remainder
        raise ConfigError(f"--port {port}: expected 0 (any free one) to {_LAST_PORT}")
    try:
        first, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, *_, address = first
        listening = socket.create_server(address, family=family, backlog=128)
    except (OSError, OverflowError, UnicodeError) as error:
        text = getattr(error, "strerror", None) or str(error)
        reason, _, _ = text.lower().partition(" (")
        raise ConfigError(
            f"port {port} of {host} can't be used ({reason}); give another --port"
        ) from error
    # asyncio sets TCP_NODELAY only if the protocol is given; without it, each response takes 40 ms.
    return socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP, listening.detach()
    )


def html_page(package: str) -> tuple[bytes, dict[str, str]]:
    """A page with its style and script inside, and headers that allow only these (by hash)."""

    def digest(text: str) -> str:
        sha256 = hashlib.sha256(text.encode()).digest()
        return f"sha256-{base64.b64encode(sha256).decode()}"

    page_style = style(package, "page.css")
    script = resource(package, "page.js")
    policy = (
        f"default-src 'none'; style-src '{digest(page_style)}'; script-src '{digest(script)}';"
        " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )
    html = (
        resource(package, "page.html")
        .replace("@HEAD@", PAGE_HEAD)
        .replace("@STYLE@", page_style)
        .replace("@SCRIPT@", script)
    )
    return html.encode(), {**PAGE_HEADERS, "content-security-policy": policy}


def check_own_page(
    headers: Headers, hosts: Collection[str], *, is_page: bool = False
) -> None:
    """Refuse requests to another host name, or from another page; links may lead to the page itself."""
    # Clients leave out port 80.
    hosts = {host.removesuffix(":80") for host in hosts}
    names = [name.lower().removesuffix(":80") for name in headers.getlist("host")]
    if len(names) != 1 or names[0] not in hosts:
        raise RefusedError(421, "this server has another address")
    sites = {*headers.getlist("sec-fetch-site")}
    origins = {*headers.getlist("origin")}
    is_link = is_page and headers.getlist("sec-fetch-mode") == ["navigate"]
    is_same_site = is_link or sites <= {"same-origin", "none"}
    if not is_same_site or not origins <= {f"http://{host}" for host in hosts}:
        raise RefusedError(403, "requests from other pages are refused")


async def json_body(
    request: Request,
    limit: int,
    receive_s: float,
    hold: Callable[[int], None] = lambda _: None,
) -> bytes:
    """Receive the JSON body of a request; raises RefusedError for other types, and beyond either limit.

    `hold` gets the memory of each part, and may refuse it.
    """
    content_types = request.headers.getlist("content-type")
    types = [text.partition(";")[0].strip().lower() for text in content_types]
    if types != ["application/json"]:
        # Any page can send other types without a preflight request.
        raise RefusedError(415, "expected application/json")
    parts = []
    size = 0
    too_large = RefusedError(413, f"more than {limit:,} bytes")
    # h11 refuses a length that is not a number.
    if int(request.headers.get("content-length", "0")) > limit:
        raise too_large
    deadline = asyncio.get_running_loop().time() + receive_s
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                message = await request.receive()
        except TimeoutError:
            raise RefusedError(
                408, f"the body took more than {receive_s:g} s"
            ) from None
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "gone")
        parts.append(message.get("body", b""))
        hold(getsizeof(parts[-1]))
        size += len(parts[-1])
        if size > limit:
            raise too_large
        if not message.get("more_body"):
            return b"".join(parts)


def _limited_connection(most: int, receive_s: float) -> type[asyncio.Protocol]:
    """Connections with a deadline for headers; at most `most` are open, and half as many of one address."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    waiting = dict[H11Protocol, asyncio.TimerHandle]()  # for headers, the longest first

    class Connection(H11Protocol):
        """A connection that is dropped if headers take too long, or to make room for another one."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.wait()
            address = self.client and self.client[0]
            connections = (
                other for other in self.connections if isinstance(other, H11Protocol)
            )
            same_address = {
                other
                for other in connections
                if other.client and other.client[0] == address
            }
            is_full = len(self.connections) >= most
            if is_full or len(same_address) > most // 2:
                drop(
                    next(other for other in waiting if is_full or other in same_address)
                )

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is None or self.cycle.response_complete:
                self.wait()
            else:
                stop_waiting(self)

        def connection_lost(self, exc: Exception | None) -> None:
            stop_waiting(self)
            super().connection_lost(exc)

        def wait(self) -> None:
            if self not in waiting:
                waiting[self] = self.loop.call_later(receive_s, drop, self)

    def stop_waiting(connection: H11Protocol) -> None:
        if timer := waiting.pop(connection, None):
            timer.cancel()

    def drop(connection: H11Protocol) -> None:
        stop_waiting(connection)
        connection.connections.discard(connection)
        connection.transport.abort()

    return Connection


class HttpServer:
    """Serves an application over HTTP/1.1 without an access log."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        *,
        name: str,
        connections: int,
        receive_s: float,
        stop_s: float,
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
                http=_limited_connection(connections, receive_s),
                loop="asyncio",
                proxy_headers=False,
                limit_concurrency=connections,
                timeout_graceful_shutdown=max(1, round(stop_s)),
            )
        )

        # Not the thread's end: Ctrl-C in `join` may mark a running thread as ended.
        self._ended = threading.Event()

        def serve() -> None:
            try:
                asyncio.run(self._server.serve(sockets=[listening]))
            finally:
                self._ended.set()

        self._thread = threading.Thread(target=serve, name=name, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Block until the server is closed from another thread, or by Ctrl-C."""
        # A signal that arrives just before an endless wait would not end it.
        while not self._ended.wait(timeout=_WAIT_S):
            pass

    def close(self) -> None:
        """Finish running requests and stop; may be called twice."""
        self._server.should_exit = True
        self._ended.wait()
        self._thread.join()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
