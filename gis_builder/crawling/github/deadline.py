"""One deadline for a whole exchange: connecting, the head of the answer and its body.

The libraries' own timeout is for the gap between two bytes, so a server that drips would never meet it. A
timer shuts the socket down instead, which ends whatever waits for it.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from typing import Any, ClassVar

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection


class Watch:
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
        self.watch = Watch(0.0)
        super().__init__()

    @contextmanager
    def within(self, seconds: float) -> Iterator[Watch]:
        """What is asked inside has so long in all; afterwards the watch says whether that was up."""
        self.watch = watch = Watch(seconds)
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


class _Reader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:  # what a chunk of negative length comes to: all that a server sends
            raise OSError("read without a limit")
        return super().read(size)


class _Response(HTTPResponse):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _Reader(self.fp.detach())


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
