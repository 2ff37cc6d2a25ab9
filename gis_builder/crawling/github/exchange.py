"""One HTTP request and what came of it: every request of a crawl is made here, and goes to one server only.

The exceptions of `requests` carry the request, whose headers hold the token. They end here: only their class
name goes on, and none of them becomes the cause or context of an error of ours.
"""

from __future__ import annotations

import io
import socket
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from http.cookiejar import DefaultCookiePolicy
from typing import Any, ClassVar

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from gis_builder.crawling.github.answers import AnswerKind, QueryAnswer, bad_reply
from gis_builder.crawling.github.tokens import Token
from pairkit.system.address import Address


class DeadlineWatch:
    """Holds on to the socket of one exchange, so that another thread can end it."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._end = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    @property
    def left_s(self) -> float:
        """Seconds to the deadline; a little even when it has passed, as 0 means none to the libraries."""
        return max(0.001, self._end - time.monotonic())

    def hold(self, connected: socket.socket) -> None:
        """Watch this socket. A second handle of it is kept: TLS takes the first over."""
        with self._lock:
            self._let_go()
            self._socket = socket.fromfd(connected.fileno(), connected.family, connected.type)
            if self.is_over:
                self._shut_down()

    def cut(self) -> None:
        """End the exchange."""
        with self._lock:
            self.is_over = True
            self._shut_down()

    def release(self) -> None:
        """Let go of the socket, which may live on for the next exchange."""
        with self._lock:
            self._let_go()

    def _shut_down(self) -> None:
        with suppress(OSError):  # the other side was first
            if self._socket:
                self._socket.shutdown(socket.SHUT_RDWR)

    def _let_go(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None


class Deadline(HTTPAdapter):
    """Connections of `requests` that keep a deadline; for one thread, which asks one thing at a time."""

    def __init__(self) -> None:
        self.watch = DeadlineWatch(0.0)
        super().__init__()

    @contextmanager
    def within(self, seconds: float) -> Iterator[DeadlineWatch]:
        """What is asked inside has so long in all; afterwards the watch says whether that was up."""
        self.watch = watch = DeadlineWatch(seconds)
        timer = threading.Timer(seconds, watch.cut)
        timer.daemon = True
        timer.start()
        try:
            yield watch
        finally:
            timer.cancel()
            watch.release()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """See `HTTPAdapter`."""
        super().init_poolmanager(*args, **options)
        self._watch_over(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> PoolManager:
        """See `HTTPAdapter`."""
        is_new = proxy not in self.proxy_manager
        manager: PoolManager = super().proxy_manager_for(proxy, **options)
        if is_new:
            self._watch_over(manager)
        return manager

    def _watch_over(self, manager: PoolManager) -> None:
        pools: dict[str, type[HTTPConnectionPool]] = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: self._watched(pool) for scheme, pool in pools.items()}

    def _watched(self, pool: type[HTTPConnectionPool]) -> type[Any]:
        connection = type("WatchedConnection", (_Watched, pool.ConnectionCls), {"deadline": self})
        return type("WatchedPool", (pool,), {"ConnectionCls": connection})


class _WatchedReader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:  # what a chunk of negative length comes to: all that a server sends
            raise OSError("read without a limit")
        return super().read(size)


class _Response(HTTPResponse):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _WatchedReader(self.fp.detach())


class _Watched(HTTPConnection):
    deadline: ClassVar[Deadline]
    response_class = _Response

    def _new_conn(self) -> socket.socket:
        with suppress(OSError):  # a name of many addresses: each is tried as long as the timeout says
            addresses = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
            self.timeout = self.deadline.watch.left_s / max(1, len(addresses))
        connected = super()._new_conn()
        self.deadline.watch.hold(connected)
        return connected

    def request(self, *args: Any, **options: Any) -> None:
        if self.sock is not None:  # kept open since the last exchange
            self.deadline.watch.hold(self.sock)
        super().request(*args, **options)


# A hundred comments of the longest kind, each letter of them escaped, are 40 MB.
_MOST_BYTES = 64 << 20
_CHUNK = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came, but for the token, should the server have echoed it."""

    status: int
    headers: Mapping[str, str]  # their names in lower case
    body: bytes


class Exchange:
    """Asks one server with one token, over a connection that is kept open."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address, self._token, self._timeout_s = address, token, timeout_s
        self._session, self._deadline = _open_session(address)

    def post(self, path: str, body: bytes) -> Raw | QueryAnswer:
        """Send JSON to a path below the root: what came, or why nothing did."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        with self._deadline.within(self._timeout_s) as watch:
            try:
                came = self._once("POST", self._address.join(path), headers, body)
            except requests.ReadTimeout:
                return _LATE
            except (requests.RequestException, HTTPError) as error:
                return _LATE if watch.is_over else _failed(type(error).__name__)
        # Where a body ends with the connection, one that was cut off looks whole.
        return _LATE if watch.is_over else came

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _once(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Raw | QueryAnswer:
        with self._session.request(
            method,
            url,
            data=body,
            headers=headers,
            auth=self._token,
            timeout=self._timeout_s,
            allow_redirects=False,
            stream=True,
        ) as response:
            came = {name.lower(): self._token.mask(value) for name, value in response.headers.items()}
            content = _unpacked(_body(response), came.get("content-encoding", ""))
            if isinstance(content, QueryAnswer):
                return content
            return Raw(response.status_code, came, self._token.mask_bytes(content))


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: what to ask next is for us to decide. Else the next request is prepared, though not sent."""


def _open_session(address: Address) -> tuple[requests.Session, Deadline]:
    """A session without cookies that follows no redirect, and the deadline that its exchanges keep."""
    session, deadline = _Session(), Deadline()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"User-Agent": "aoe-toolkit", "Accept-Encoding": "gzip"})
    for scheme in ("https://", "http://"):
        session.mount(scheme, deadline)
    # What is for this machine goes through no proxy.
    session.trust_env = not address.is_loopback
    return session, deadline


def _body(response: requests.Response) -> bytes:
    """The body as it was sent, or a little more than may be taken of it."""
    body = bytearray()
    while len(body) <= _MOST_BYTES and (chunk := response.raw.read(_CHUNK, decode_content=False)):
        body += chunk
    return bytes(body)


def _unpacked(body: bytes, encoding: str) -> bytes | QueryAnswer:
    """The body without its encoding, which takes no more memory than a body may."""
    packing = encoding.strip().lower()
    if packing in ("gzip", "x-gzip"):
        unpacker = zlib.decompressobj(_GZIP)
        try:
            body = unpacker.decompress(body, _MOST_BYTES + 1)
        except zlib.error:
            return bad_reply("a gzip that is damaged")
        if len(body) <= _MOST_BYTES and not unpacker.eof:
            return bad_reply("a gzip that is cut off")
    elif packing not in ("", "identity"):
        return bad_reply("an encoding that was not asked for")
    return body if len(body) <= _MOST_BYTES else _TOO_LONG


def _failed(error: str) -> QueryAnswer:
    return QueryAnswer(AnswerKind.TRANSIENT, message=f"the connection failed ({error})", was_heard=False)


# A server that does not come to an end with a query may do so with half of it.
_LATE = QueryAnswer(AnswerKind.TOO_HEAVY, message="no answer in time")
_TOO_LONG = QueryAnswer(AnswerKind.TOO_HEAVY, message=f"an answer of more than {_MOST_BYTES >> 20} MiB")
