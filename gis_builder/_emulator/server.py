"""The emulated server on a socket."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from gis_builder._emulator.faults import FaultPlan, read_plan
from gis_builder._emulator.load import load_trackers
from gis_builder._emulator.reply import Fate, Reply
from gis_builder._emulator.service import Options, Request, Service
from gis_builder._emulator.stats import Stats
from gis_builder._emulator.tracker import Catalogue
from pairkit.errors import ConfigError

_MAX_BODY = 16 << 20
_POLL_S = 0.05


class Server:
    """A running emulator, in a thread of its own. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        catalogue: Catalogue,
        address: tuple[str, int],
        options: Options,
        faults: FaultPlan,
        latency_s: float,
    ) -> None:
        self._http = _bind(address)
        host, port = address[0], self._http.server_address[1]
        self.url = f"http://{host}:{port}"
        self.catalogue = catalogue
        self._service = Service(catalogue, self.url, options=options, faults=faults)
        self._http.answer = self._service.handle
        self._http.latency_s = latency_s
        self._http.stall_s = self._service.stall_s
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": _POLL_S}, name="emulator", daemon=True
        )
        self._thread.start()

    @property
    def stats(self) -> Stats:
        """What it has done so far."""
        return self._service.recorder.stats()

    def wait(self) -> None:
        """Block until the server is closed from another thread, or by Ctrl-C."""
        # The dump stays to the end: going over it in each collection would cost 0.3 s now and then.
        gc.collect()
        gc.freeze()
        self._thread.join()

    def close(self) -> None:
        """Stop serving and drop every connection. Closing twice is harmless."""
        self._http.closing.set()
        self._http.shutdown()
        self._http.drop_connections()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    dump: Path | Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    faults: FaultPlan | Path | None = None,
    latency_s: float = 0.0,
    replicate: int = 1,
    options: Options | None = None,
) -> Server:
    """Start a local GitHub that serves a dump, and return it running.

    Args:
        dump: A folder, or several, that hold trackers; see `gis_builder._dump`.
        host: The address to listen at.
        port: The port, or 0 for any free one; `Server.url` tells which.
        faults: What goes wrong on purpose: a plan, or the TOML file of one.
        latency_s: Seconds that each answer takes at least.
        replicate: Serve each repository so many times, the further ones as `owner/name-2`, `owner/name-3`, ….
        options: Limits and the age of the schema.

    Raises:
        ConfigError: the fault plan is malformed, `replicate` is less than 1, or the port is taken.
        DataError: the dump is missing or malformed (names file and row).
    """
    if replicate < 1:
        raise ConfigError(f"replicate is {replicate}; expected 1 or more")
    plan = read_plan(faults) if isinstance(faults, Path) else faults or FaultPlan()
    roots = [dump] if isinstance(dump, Path) else dump
    catalogue = Catalogue(load_trackers(roots), replicate=replicate)
    return Server(catalogue, (host, port), options or Options(), plan, latency_s)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    answer: Callable[[Request], Reply]
    latency_s = 0.0
    stall_s = 0.0

    def __init__(self, address: tuple[str, int]) -> None:
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        """End connections that clients keep alive; their threads then end too."""
        for connection in list(self._connections):
            _drop(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away; anything else is a bug worth a traceback."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one write for head and body, or Nagle's algorithm costs 40 ms an answer
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _answer(self) -> None:
        started = time.monotonic()
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _MAX_BODY:
            self.close_connection = True
            self._send(Reply(400, {"message": "Bad Request", "status": "400"}))
            return
        headers = {key.lower(): value for key, value in self.headers.items()}
        reply = self.server.answer(Request(self.command, self.path, headers, self.rfile.read(int(length))))
        self.server.closing.wait(max(0.0, self.server.latency_s - (time.monotonic() - started)))
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        if reply.fate is Fate.STALLED:
            self.server.closing.wait(self.server.stall_s)
        if reply.fate in {Fate.STALLED, Fate.DROPPED_BEFORE}:
            self._hang_up()
            return
        body = reply.body()
        sent = body[: len(body) // 2] if reply.fate in {Fate.TRUNCATED, Fate.DROPPED_WITHIN} else body
        promised = sent if reply.fate is Fate.TRUNCATED else body
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 304:  # Not Modified has no body
            self.send_header("content-length", str(len(promised)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent)
        if reply.fate is Fate.DROPPED_WITHIN:
            self.wfile.flush()
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        _drop(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by http.server
        """Stay silent: whoever wants to know asks for the statistics."""


def _bind(address: tuple[str, int]) -> _Http:
    try:
        return _Http(address)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"can't listen at {address[0]}:{address[1]} ({error}); choose another port, or 0 for any"
        ) from error


def _drop(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is gone already
