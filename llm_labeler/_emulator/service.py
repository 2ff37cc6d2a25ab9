"""Which part of the server answers a request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from llm_labeler._emulator.batches import Batches
from llm_labeler._emulator.chat import Chat, error
from llm_labeler._emulator.faults import Faults
from llm_labeler._emulator.http import Request, Response, json_response
from llm_labeler._emulator.options import Options
from llm_labeler._emulator.stats import Stats

_ROOTS = ("/v1", "/api/paas/v4")  # OpenAI's and GLM's


class Service:
    """The whole API."""

    def __init__(self, options: Options, faults: Faults) -> None:
        self.stats = Stats()
        self.requests: list[Request] = []  # the first few, for whoever wants to see what a client sends
        self._options = options
        self._chat = Chat(options, faults, self.stats)
        self._batches = Batches(self._chat, options, self.stats)

    def answer(self, request: Request) -> Response:
        """The response to any request."""
        if request.path == "/stats":
            return json_response(self.stats.summary())
        if len(self.requests) < 100:
            self.requests.append(request)
        expected = self._options.api_key
        if expected is not None and request.headers.get("authorization") != f"Bearer {expected}":
            return error(401, "Incorrect API key provided.", code="invalid_api_key")
        root = next((root for root in _ROOTS if request.path.startswith(root + "/")), "")
        return replace(self._route(request, request.path.removeprefix(root)), delay_s=self._options.latency_s)

    def _route(self, request: Request, path: str) -> Response:
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


def _object(body: bytes) -> dict[str, Any]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - any body that is no request ends alike
    return value
