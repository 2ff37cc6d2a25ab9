"""A server of hours on this machine, with ranges, versions and faults."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Hours:
    """What it serves, and how it fails.

    Attributes:
        folder: The files.
        faults: By file name what happens to whole or ranged downloads, in turn; then all is well.
        has_md5: Whether it names digests, as Google's does.
        names_content_md5: Whether it names the digest of what it sends, in another header.
        has_version: Whether it names versions.
        has_ranges: Whether it sends parts of files.
        asked: Requests by file name, those for an end apart (`NAME end`).
        sent: Bytes of downloads by file name; of ends only those of a fault.
        agents: Who asked.
        headers: Of all requests.
        most_at_once: How many requests there were at one time.
    """

    folder: Path
    faults: dict[str, list[Any]] = field(default_factory=dict)
    has_md5: bool = True
    names_content_md5: bool = False
    has_version: bool = True
    has_ranges: bool = True
    asked: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    agents: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""


@contextmanager
def serving(folder: Path, **more: Any) -> Iterator[Hours]:
    hours = Hours(folder, **more)

    class Handler(_Handler):
        told = hours

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hours.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hours
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Hours

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
        """Say nothing."""

    def do_GET(self) -> None:
        told, name = self.told, self.path.removeprefix("/")
        with told.lock:
            told.at_once += 1
            told.most_at_once = max(told.most_at_once, told.at_once)
        try:
            self._serve(told, name)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with told.lock:
                told.at_once -= 1

    def _serve(self, told: Hours, name: str) -> None:
        part = self.headers.get("Range", "")
        is_end = part.startswith("bytes=-")
        key = f"{name} end" if is_end else name
        told.agents.add(self.headers["User-Agent"])
        told.headers.append(dict(self.headers))
        told.asked[key] += 1
        faults = told.faults.get(key, [])
        fault = faults.pop(0) if faults else None
        path = told.folder / name
        if callable(fault):  # changes the folder
            fault(path)
            fault = None
        if isinstance(fault, tuple):
            status, headers = fault
            return self._answer(status, headers, b"")
        if not path.is_file():
            return self._answer(404, {}, b"no such file")
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        headers = {"ETag": tag} if told.has_version else {}
        if told.has_md5:
            digest = base64.b64encode(hashlib.md5(data).digest()).decode()
            headers["x-goog-hash"] = f"crc32c=AAAAAA==, md5={digest}"
        if told.names_content_md5 and not part:
            headers["Content-MD5"] = base64.b64encode(hashlib.md5(data).digest()).decode()
        first, status, size = 0, 200, len(data)
        match = re.fullmatch(r"bytes=([0-9]*)-", part) or re.fullmatch(r"bytes=-([0-9]+)", part)
        if match and told.has_ranges and self.headers.get("If-Range", tag) == tag:
            if not size:
                return self._answer(416, {"Content-Range": "bytes */0"}, b"")
            first = max(0, size - int(match[1])) if is_end else int(match[1])
            status = 206
            headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
        body = data[first:]
        if fault == "garbage":
            body = b"<html>" * (len(body) // 6 + 1)
            body = body[: len(data[first:])]
        if fault == "damaged":
            body = body[:200] + bytes([body[200] ^ 1]) + body[201:]
        if fault == "endless":
            return self._go_on(told, key, headers)
        length = len(body)
        if fault == "wrong length":
            length = size + 7
        if isinstance(fault, int):  # bytes until the connection drops
            body = body[:fault]
        if not is_end:
            told.sent[name] += len(body)
        return self._answer(status, headers, body, length)

    def _go_on(self, told: Hours, key: str, headers: dict[str, str]) -> None:
        """Send until nobody takes it any more, or far too much."""
        self.send_response(206)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        for _ in range(1024):
            self.wfile.write(bytes(1 << 16))
            told.sent[key] += 1 << 16

    def _answer(self, status: int, headers: dict[str, str], body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        if length is not None and length != len(body):
            self.close_connection = True
