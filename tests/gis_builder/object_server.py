"""A store of objects on this machine, moto's, which counts what it is asked and fails where it is told to."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

BUCKET = "tests"
KEY, SECRET = "AKIATEST", "sec/ret+of-tests"
_DRIP_S = 0.05  # between two bytes


class Store:
    """What the store was asked, and how it fails.

    Attributes:
        fault: `503`, `flaky` (every eighth is 503), `403`, `silent` or `drip`; empty where all is well.
        pause_s: Seconds before each answer, as a network takes them.
        asked: Requests by method; listings as `LIST`.
        signed: Keys and regions that requests were signed with.
        put: How often each key was put.
        url: Its root.
    """

    def __init__(self, app: Any) -> None:
        self._app, self._turn, self._ended = app, 0, threading.Event()
        self._lock = threading.Lock()
        self.fault, self.url, self.pause_s = "", "", 0.0
        self.asked: Counter[str] = Counter()
        self.put: Counter[str] = Counter()
        self.signed: set[tuple[str, str]] = set()

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        with self._lock:
            self._turn += 1
            method = "LIST" if "list-type" in environ["QUERY_STRING"] else environ["REQUEST_METHOD"]
            self.asked[method] += 1
        signature = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split("/")
        if len(signature) > 2:
            self.signed.add((signature[0], signature[2]))
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        time.sleep(self.pause_s)
        if self.fault == "silent":
            self._ended.wait(60)
        if self.fault == "503" or (self.fault == "flaky" and self._turn % 8 == 0):
            return _refusal(start, "503 Slow Down", "SlowDown")
        if self.fault == "403":
            return _refusal(start, "403 Forbidden", "SignatureDoesNotMatch")
        answer = self._app(environ, start)
        if method == "PUT":
            self.put[environ["PATH_INFO"].removeprefix(f"/{BUCKET}/")] += 1
        return self._dripped(b"".join(answer)) if self.fault == "drip" else answer

    @property
    def environment(self) -> dict[str, str]:
        """What leads there."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": self.url}

    def begin_anew(self) -> None:
        """Count from here on."""
        self.asked.clear()
        self.put.clear()
        self.signed.clear()

    def end(self) -> None:
        """Let go of those who wait."""
        self._ended.set()

    def _dripped(self, data: bytes) -> Iterator[bytes]:
        for byte in data:
            if self._ended.is_set():
                return
            time.sleep(_DRIP_S)
            yield bytes([byte])


def _refusal(start: Any, status: str, code: str) -> list[bytes]:
    body = f"<Error><Code>{code}</Code><AWSAccessKeyId>{KEY}</AWSAccessKeyId></Error>".encode()
    start(status, [("Content-Length", str(len(body)))])
    return [body]


@contextmanager
def storing() -> Iterator[Store]:
    """A store with an empty bucket."""
    import requests
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            """Say nothing."""

        def connection_dropped(self, *_: Any) -> None:
            """As a client that is killed leaves it."""

    store = Store(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    store.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        requests.put(f"{store.url}/{BUCKET}", timeout=30).raise_for_status()
        yield store
    finally:
        store.end()
        server.shutdown()
        server.server_close()
