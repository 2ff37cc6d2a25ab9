"""As much HTTP/1.1 as the clients of an LLM need: kept-alive connections, bodies of known length."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_MAX_BODY = 256 << 20  # a batch's file may have 200 MB
_JSON = {"content-type": "application/json"}


class Fate(Enum):
    """What becomes of a response on its way."""

    WHOLE = "whole"
    CUT_OFF = "cut off"  # half of it, then the connection closes
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One response; it is sent after `delay_s`."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: _JSON)
    fate: Fate = Fate.WHOLE
    delay_s: float = 0.0


def json_response(value: Any, status: int = 200, **headers: str) -> Response:
    """A response of JSON; underscores in names of headers stand for hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(status, json.dumps(value).encode(), {**_JSON, **named})


class Connection(asyncio.Protocol):
    """One client's connection; it answers one request after the other."""

    def __init__(self, answer: Callable[[Request], Response], connections: set[Connection]) -> None:
        self._answer, self._connections = answer, connections
        self._buffer = bytearray()
        self._busy = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the client in."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget the client."""
        self._transport = None
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Answer once a request is whole."""
        self._buffer += data
        self._take_request()

    def drop(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _take_request(self) -> None:
        if self._busy or (end := self._buffer.find(b"\r\n\r\n")) < 0:
            return
        start, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _MAX_BODY or start.count(" ") != 2:
            self._send(json_response({"error": {"message": "bad request"}}, 400), keep=False)
            return
        if len(self._buffer) < (stop := end + 4 + int(length)):
            return
        body = bytes(self._buffer[end + 4 : stop])
        del self._buffer[:stop]
        method, target, _ = start.split(" ")
        url = urlsplit(target)
        self._busy = True
        response = self._answer(Request(method, url.path, dict(parse_qsl(url.query)), headers, body))
        keep = headers.get("connection", "").lower() != "close"
        if response.delay_s > 0:
            asyncio.get_running_loop().call_later(response.delay_s, self._send, response, keep)
        else:
            self._send(response, keep)

    def _send(self, response: Response, keep: bool) -> None:
        if self._transport is None or response.fate is Fate.NEVER:
            return
        lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        lines.append(f"content-length: {len(response.body)}\r\n\r\n")
        is_whole = response.fate is Fate.WHOLE
        body = response.body if is_whole else response.body[: len(response.body) // 2]
        self._transport.write("\r\n".join(lines).encode("latin-1") + body)
        self._busy = False
        if keep and is_whole:
            self._take_request()
        else:
            self._transport.close()
