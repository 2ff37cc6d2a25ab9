"""The HTTP server."""

import gc
import logging
import socket
import sys
import threading
import time
import traceback
from pathlib import Path

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request as HttpRequest
from werkzeug.wrappers import Response

from tests.support.github.faults import Delivery, FaultPlan, read_plan
from tests.support.github.service import Options, Request, Service
from tests.support.github.trackers import Catalogue


class Server:
    """A running server in its own thread. Use it as a context manager, or `close` it."""

    def __init__(self, catalogue, port, options, plan, latency_s):
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no banner
        self._http = make_server(
            "127.0.0.1", port, self._app, threaded=True, request_handler=_Handler
        )
        self._http.handle_error = _report
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._service = Service(catalogue, self.url, options=options, faults=plan)
        self._stall_s, self._latency_s = plan.stall_s, latency_s
        self._closing = threading.Event()
        self._connections = set()
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def stats(self):
        """The counts so far."""
        return self._service.stats

    def wait(self):
        """Block until the server is closed from another thread, or by Ctrl-C."""
        # Exclude the dump from garbage collection, which would take 0.3 s each time.
        gc.collect()
        gc.freeze()
        self._thread.join()

    def close(self):
        """Stop serving and drop every connection. Closing twice is harmless."""
        self._closing.set()
        self._http.shutdown()
        for connection in list(self._connections):
            _hang_up(connection)
        self._http.server_close()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _app(self, environ, start_response):
        started, connection = time.monotonic(), environ["werkzeug.socket"]
        self._connections.add(connection)
        asked = HttpRequest(environ)
        headers = {name.lower(): value for name, value in asked.headers.items()}
        target = f"{asked.path}?{asked.query_string.decode()}"
        reply = self._service.handle(
            Request(asked.method, target, headers, asked.get_data())
        )
        self._closing.wait(max(0.0, self._latency_s - (time.monotonic() - started)))
        return self._response(reply, connection)(environ, start_response)

    def _response(self, reply, connection):
        body = reply.body()
        if reply.delivery is Delivery.TRUNCATED:
            body = body[: len(body) // 2]
        response = Response(body, reply.status, reply.headers)
        if reply.delivery is Delivery.STALLED:
            self._closing.wait(self._stall_s)
        if reply.delivery in (Delivery.STALLED, Delivery.DROPPED_BEFORE):
            _hang_up(connection)
        if reply.delivery is Delivery.DROPPED_WITHIN:
            response.response = _half(body, connection)
            response.headers["content-length"] = str(len(body))
        return response


def serve(dump, *, port=0, faults=None, latency_s=0.0, options=None):
    """Start a server for a dump."""
    plan = read_plan(faults) if isinstance(faults, Path) else faults or FaultPlan()
    roots = [Path(dump)] if isinstance(dump, str | Path) else dump
    catalogue = Catalogue(roots)
    return Server(catalogue, port, options or Options(), plan, latency_s)


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    # One write for head and body, which Nagle's algorithm would delay by 40 ms.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def send_response(self, code, message=None):
        """Send only the status; `Service` adds the date of its own clock."""
        self.send_response_only(code, message)

    def log(self, *_, **__):
        """Log nothing, because clients that disconnect are expected."""

    def connection_dropped(self, *_):
        """Ignore it, see `log`."""


def _report(*_):
    """Print bugs of this server, but not disconnected clients."""
    if not isinstance(sys.exception(), ConnectionError):
        traceback.print_exc()


def _half(body, connection):
    yield body[: len(body) // 2]
    _hang_up(connection)


def _hang_up(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # already closed
