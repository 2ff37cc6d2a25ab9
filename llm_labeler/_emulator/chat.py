"""Chat completions: what a request brings back, in OpenAI's shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llm_labeler._emulator.answers import Messages, answer, text_of
from llm_labeler._emulator.http import Fate, Response, json_response
from llm_labeler._emulator.options import ANSWERING, FaultKind, Faults, Options
from llm_labeler._emulator.stats import Stats
from llm_labeler._records import digest

_LIMITS = ("max_completion_tokens", "max_tokens")
_PAGE = b"<!DOCTYPE html><html><body>Please log in to this network.</body></html>"


def error(status: int, message: str, *, code: str = "", param: str | None = None, **headers: str) -> Response:
    """An error as OpenAI words it."""
    body = {"message": message, "type": "emulated_error", "param": param, "code": code or None}
    return json_response({"error": body}, status, **headers)


def refused(status: int, body: Mapping[str, Any], options: Options) -> Response | None:
    """Why this request can't be answered at all, if so; `status` is what a missing model brings."""
    model, messages = body.get("model"), body.get("messages")
    if model not in options.models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        return error(status, message, code="model_not_found", param="model")
    if not isinstance(messages, list) or not messages:
        return error(400, "Invalid 'messages': empty array.", param="messages")
    for name in sorted(options.refuses & body.keys()):
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return error(400, message, code="unsupported_parameter", param=name)
    if options.context_chars is not None and len(text_of(messages)) > options.context_chars:
        message = "This model's maximum context length is exceeded."
        return error(400, message, code="context_length_exceeded", param="messages")
    return None


class Chat:
    """Answers and their faults, counted."""

    def __init__(self, options: Options, faults: Faults, stats: Stats) -> None:
        self._options, self._faults, self._stats = options, faults, stats

    def reply(self, body: Mapping[str, Any]) -> Response:
        """What one call brings back."""
        if refusal := refused(404, body, self._options):
            return refusal
        question = digest(str(body["model"]), json.dumps(body["messages"], sort_keys=True))
        self._stats.count_request()
        self._stats.asked[question] += 1
        kind = self._faults.strikes(question, self._stats.asked[question])
        if kind is not None:
            self._stats.faults[kind] += 1
        if kind is None or kind in ANSWERING:
            self._stats.answered += 1
            self._stats.answers[question] += 1
            return json_response(self._completion(body, question, kind))
        return self._fail(kind, body, question)

    def _fail(self, kind: FaultKind, body: Mapping[str, Any], question: str) -> Response:
        wait = f"{self._faults.retry_after_s:g}"
        good = self._completion(body, question, None)
        match kind:
            case "rate_limited":
                return error(429, "Rate limit reached.", code="rate_limit_exceeded", retry_after=wait)
            case "quota":
                return error(429, "You exceeded your current quota.", code="insufficient_quota")
            case "server_error":
                return error(500, "The server had an error.")
            case "unavailable":
                return error(503, "Overloaded.", retry_after=wait)
            case "empty_choices":
                return json_response({**good, "choices": []})
            case "html":
                return Response(200, _PAGE, {"content-type": "text/html"})
            case "broken_json":
                whole = json.dumps(good).encode()
                return Response(200, whole[: len(whole) // 2])
            case _:
                fate = Fate.NEVER if kind == "hang" else Fate.CUT_OFF
                return Response(200, json.dumps(good).encode(), fate=fate)

    def _completion(self, body: Mapping[str, Any], question: str, kind: FaultKind | None) -> dict[str, Any]:
        messages: Messages = body["messages"]
        wanted = body.get("response_format") or {}
        text = answer(str(body["model"]), messages, (wanted.get("json_schema") or {}).get("schema"))
        limit = next((int(body[name]) for name in _LIMITS if body.get(name)), 1 << 30)
        if kind == "cut":
            limit = min(limit, max(1, _tokens(text) // 2))
        is_cut = _tokens(text) > limit
        message: dict[str, Any] = {"role": "assistant", "content": _shortened(text, limit), "refusal": None}
        if kind == "refusal":
            message |= {"content": None, "refusal": "I can't help with that."}
        completion = {
            "id": f"chatcmpl-{question}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "length" if is_cut else "stop"}],
        }
        if self._options.usage and kind != "no_usage":
            used = _tokens(text_of(messages)), min(limit, _tokens(text))
            completion["usage"] = {
                "prompt_tokens": used[0],
                "completion_tokens": used[1],
                "total_tokens": sum(used),
            }
        return completion


def _tokens(text: str) -> int:
    """Four bytes a token, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def _shortened(text: str, tokens: int) -> str:
    return text.encode("utf-8", "replace")[: 4 * tokens].decode("utf-8", "ignore")
