"""The emulated server: which part of it answers a request, and its socket."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from llm_labeler._emulator.anthropic import Anthropic
from llm_labeler._emulator.batches import Batches
from llm_labeler._emulator.chat import Chat, error
from llm_labeler._emulator.gemini import Gemini
from llm_labeler._emulator.http import Connection, Request, Response, json_response
from llm_labeler._emulator.jobs import Jobs
from llm_labeler._emulator.options import Faults, Options
from llm_labeler._emulator.stats import Stats
from pairkit.errors import ConfigError

_BACKLOG = 1024
_GEMINI = "/v1beta"
_ROOTS = ("/v1", "/api/paas/v4", _GEMINI)  # OpenAI's and Anthropic's, GLM's, Gemini's


class Service:
    """The whole API."""

    def __init__(self, options: Options, faults: Faults) -> None:
        self.stats = Stats()
        self.requests: list[Request] = []  # the first few, for whoever wants to see what a client sends
        self._options = options
        self._chat = Chat(options, faults, self.stats)
        jobs = Jobs(self._chat, options, self.stats)
        self._batches = Batches(jobs, options)
        self._anthropic = Anthropic(self._chat, jobs, options)
        self._gemini = Gemini(self._chat, jobs, options)

    def answer(self, request: Request) -> Response:
        """The response to any request."""
        if request.path == "/stats":
            return json_response(self.stats.summary())
        if len(self.requests) < 100:
            self.requests.append(request)
        expected = self._options.api_key
        if expected is not None and not _has_key(request, expected):
            return error(401, "Incorrect API key provided.", code="invalid_api_key")
        root = next((root for root in _ROOTS if request.path.startswith(root + "/")), "")
        return replace(self._route(request, request.path.removeprefix(root)), delay_s=self._options.latency_s)

    def _route(self, request: Request, path: str) -> Response:
        if request.path.startswith(f"{_GEMINI}/"):
            return self._of(self._gemini, request, path)
        if path.startswith("/messages"):
            return self._of(self._anthropic, request, path)
        if path == "/models" and request.method == "GET" and self._options.lists_models:
            models = [{"id": name, "object": "model"} for name in self._options.models]
            return json_response({"object": "list", "data": models})
        try:
            if path == "/chat/completions" and request.method == "POST":
                return self._chat.reply(_object(request.body))
            found = self._batches.reply(request, path)
        except ValueError:
            return error(400, "We could not parse the JSON body of your request.")
        return found or error(404, f"Invalid URL ({request.method} {request.path})")

    def _of(self, maker: Anthropic | Gemini, request: Request, path: str) -> Response:
        try:
            found = maker.reply(request, path)
        except (ValueError, KeyError, TypeError, AttributeError):
            return error(400, "We could not make sense of your request.")
        return found or error(404, f"Invalid URL ({request.method} {request.path})")


def _has_key(request: Request, expected: str) -> bool:
    """Whether a request has the key, in the header that its API has for it."""
    name = "authorization"
    if request.path.startswith(f"{_GEMINI}/"):
        name = "x-goog-api-key"
    elif "anthropic-version" in request.headers:
        name = "x-api-key"
    wanted = f"Bearer {expected}" if name == "authorization" else expected
    return request.headers.get(name) == wanted


def _object(body: bytes) -> dict[str, Any]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - any body that is no request ends alike
    return value


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
            f"can't listen at {host}:{port} ({error}); choose another port (--port), or 0 for any"
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
    def gemini_url(self) -> str:
        """What a client of Gemini's API wants to know; of Anthropic's it is `base_url`."""
        return f"{self.url}{_GEMINI}"

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

    def __exit__(self, *_: object) -> None:
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
