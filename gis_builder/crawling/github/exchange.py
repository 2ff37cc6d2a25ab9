"""Sends HTTP requests: all requests of a crawl, each to one server only, with a deadline and a size limit.

The exceptions of `requests` contain the request, whose headers contain the token. They are not re-raised and
never become the cause or context of our errors; only their class names are reported.
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
from functools import partial
from http.client import HTTPResponse
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.responses import AnswerKind, QueryAnswer, bad_reply
from pairkit.base.system.address import Address


class DeadlineWatch:
    """Keeps the socket of one exchange, so that a timer's thread can shut it down."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._end = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    @property
    def left_s(self) -> float:
        """Seconds to the deadline; at least a little, because the libraries take 0 for no timeout."""
        return max(0.001, self._end - time.monotonic())

    def attach(self, connected: socket.socket) -> None:
        """Watch a socket through a second handle, because TLS takes over the first."""
        with self._lock:
            self._close_handle()
            self._socket = socket.fromfd(connected.fileno(), connected.family, connected.type)
            if self.is_over:
                self._shut_down()

    def expire(self) -> None:
        """Shut the socket down."""
        with self._lock:
            self.is_over = True
            self._shut_down()

    def detach(self) -> None:
        """Stop watching the socket, which the next exchange may reuse."""
        with self._lock:
            self._close_handle()

    def _shut_down(self) -> None:
        with suppress(OSError):  # the peer has closed it already
            if self._socket:
                self._socket.shutdown(socket.SHUT_RDWR)

    def _close_handle(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None


class Deadline(HTTPAdapter):
    """An adapter of `requests` with a deadline for each whole exchange; not thread-safe."""

    def __init__(self) -> None:
        self.watch = DeadlineWatch(0.0)
        super().__init__()

    @contextmanager
    def within(self, seconds: float) -> Iterator[DeadlineWatch]:
        """Set the deadline of the requests in this context."""
        self.watch = watch = DeadlineWatch(seconds)
        timer = threading.Timer(seconds, watch.expire)
        timer.daemon = True
        timer.start()
        try:
            yield watch
        finally:
            timer.cancel()
            watch.detach()

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
        pools: dict[str, Any] = {
            scheme: partial(self._new_pool, pool_class)
            for scheme, pool_class in manager.pool_classes_by_scheme.items()
        }
        manager.pool_classes_by_scheme = pools

    def _new_pool(self, pool_class: Any, *args: Any, **options: Any) -> Any:
        pool = pool_class(*args, **options)
        if pool.ConnectionCls not in _WATCHED:
            raise requests.exceptions.InvalidSchema("no deadline for connections over SOCKS")
        pool.ConnectionCls = partial(_WATCHED[pool.ConnectionCls], self)
        return pool


class _WatchedReader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:  # caused by a negative chunk length; would read without a limit
            raise OSError("read without a limit")
        return super().read(size)


class _Response(HTTPResponse):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _WatchedReader(self.fp.detach())


class _WatchedHttp(HTTPConnection):
    response_class = _Response

    def __init__(self, deadline: Deadline, *args: Any, **options: Any) -> None:
        self.deadline = deadline
        super().__init__(*args, **options)

    def _new_conn(self) -> socket.socket:
        with suppress(OSError):  # each address of a host is tried with the full timeout, so divide it
            addresses = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
            self.timeout = self.deadline.watch.left_s / max(1, len(addresses))
        connected = super()._new_conn()
        self.deadline.watch.attach(connected)
        return connected

    def request(self, *args: Any, **options: Any) -> None:
        if self.sock is not None:  # reused from the last exchange
            self.deadline.watch.attach(self.sock)
        super().request(*args, **options)


class _WatchedHttps(_WatchedHttp, HTTPSConnection):
    pass


_WATCHED = {HTTPConnection: _WatchedHttp, HTTPSConnection: _WatchedHttps}


# A hundred comments of the maximum length with every character escaped are 40 MB.
_MAX_BYTES = 64 << 20
_CHUNK = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Raw:
    """A response, in which the token is masked if the server echoed it."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Exchange:
    """Sends requests to one server with one token, over a persistent connection."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address, self._token, self._timeout_s = address, token, timeout_s
        self._session, self._deadline = _open_session(address)

    def post(self, path: str, body: bytes) -> Raw | QueryAnswer:
        """Post JSON to a path below the root; returns the response, or the reason why there is none."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        with self._deadline.within(self._timeout_s) as watch:
            try:
                response = self._send("POST", self._address.join(path), headers, body)
            except requests.ReadTimeout:
                return _LATE
            except (requests.RequestException, HTTPError) as error:
                if watch.is_over:
                    return _LATE
                message = f"the connection failed ({type(error).__name__})"
                return QueryAnswer(AnswerKind.TRANSIENT, message=message, has_response=False)
        # A body without a length, cut off by the deadline, looks complete.
        return _LATE if watch.is_over else response

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Raw | QueryAnswer:
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
            received = {name.lower(): self._token.mask(value) for name, value in response.headers.items()}
            content = _decompress(_read_body(response), received.get("content-encoding", ""))
            if isinstance(content, QueryAnswer):
                return content
            return Raw(response.status_code, received, self._token.mask_bytes(content))


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None; otherwise `requests` prepares the redirected request, although it does not send it."""


def _open_session(address: Address) -> tuple[requests.Session, Deadline]:
    """A session without cookies and redirects, and its deadline."""
    session, deadline = _Session(), Deadline()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"User-Agent": "aoe-toolkit", "Accept-Encoding": "gzip"})
    for scheme in ("https://", "http://"):
        session.mount(scheme, deadline)
    session.trust_env = not address.is_loopback  # no proxy for this machine
    return session, deadline


def _read_body(response: requests.Response) -> bytes:
    """Read the encoded body; stops above the size limit."""
    body = bytearray()
    while len(body) <= _MAX_BYTES and (chunk := response.raw.read(_CHUNK, decode_content=False)):
        body += chunk
    return bytes(body)


def _decompress(body: bytes, encoding: str) -> bytes | QueryAnswer:
    """Decompress a body, at most up to the size limit."""
    encoding = encoding.strip().lower()
    if encoding in ("gzip", "x-gzip"):
        decompressor = zlib.decompressobj(_GZIP)
        try:
            body = decompressor.decompress(body, _MAX_BYTES + 1)
        except zlib.error:
            return bad_reply("damaged gzip data")
        if len(body) <= _MAX_BYTES and not decompressor.eof:
            return bad_reply("truncated gzip data")
    elif encoding not in ("", "identity"):
        return bad_reply("an encoding that was not requested")
    return body if len(body) <= _MAX_BYTES else _TOO_LONG


# A query that timed out may succeed at half its size.
_LATE = QueryAnswer(AnswerKind.TOO_HEAVY, message="no response in time")
_TOO_LONG = QueryAnswer(AnswerKind.TOO_HEAVY, message=f"a response of more than {_MAX_BYTES >> 20} MiB")
