"""The emulated server on a socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from llm_labeler._emulator.faults import Faults
from llm_labeler._emulator.http import Connection, Request
from llm_labeler._emulator.options import Options
from llm_labeler._emulator.service import Service
from llm_labeler._emulator.stats import Stats
from pairkit.errors import ConfigError

_BACKLOG = 1024


async def listen(
    service: Service, host: str, port: int, stop: asyncio.Event, announce: Callable[[int], None]
) -> None:
    """Serve until `stop` is set; `announce` is told the port once clients can connect.

    Raises:
        ConfigError: the port is taken.
    """
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            lambda: Connection(service.answer, connections), host, port, backlog=_BACKLOG
        )
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"can't listen at {host}:{port} ({error}); choose another --port, or 0 for any"
        ) from error
    announce(server.sockets[0].getsockname()[1])
    try:
        await stop.wait()
    finally:
        server.close()
        for connection in list(connections):
            connection.drop()


class Server:
    """A running server in a thread of its own. Use it as a context manager, or `close` it."""

    def __init__(self, options: Options, faults: Faults, host: str, port: int) -> None:
        self._service = Service(options, faults)
        self._host, self._port = host, port
        self._ready = threading.Event()
        self._failure: ConfigError | None = None
        self._thread = threading.Thread(target=self._run, name="llm-emulator", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self._host}:{self._port}"

    @property
    def base_url(self) -> str:
        """What a client of the OpenAI protocol wants to know."""
        return f"{self.url}/v1"

    @property
    def stats(self) -> Stats:
        """What it has done so far."""
        return self._service.stats

    @property
    def requests(self) -> list[Request]:
        """The first hundred requests, as they came."""
        return list(self._service.requests)

    def close(self) -> None:
        """Stop serving and drop every connection. Closing twice is harmless."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._listen())
        except ConfigError as error:
            self._failure = error
        self._ready.set()

    async def _listen(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await listen(self._service, self._host, self._port, self._stop, self._announce)

    def _announce(self, port: int) -> None:
        self._port = port
        self._ready.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()


def serve(
    options: Options | None = None, faults: Faults | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> Server:
    """Start a server and return it running.

    Args:
        options: What it has and knows.
        faults: What goes wrong on purpose.
        host: The address to listen at.
        port: The port, or 0 for any free one; `Server.base_url` tells which.

    Raises:
        ConfigError: the port is taken.
    """
    return Server(options or Options(), faults or Faults(), host, port)
