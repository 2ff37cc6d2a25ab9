"""Anthropic's Messages API: a question as a request of it, and its message as a reply.

Source: Anthropic's API reference, `POST /v1/messages` (version 2023-06-01), and the types of its SDK 2.12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm_labeler._providers.dialect import Form, merged
from llm_labeler._providers.native import NativeDialect, system_of
from llm_labeler._providers.replies import broken, list_of, models_of, name_of, replied, usage
from llm_labeler._records import Ask, Reply
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError
from pairkit.openai_api.refusals import Refusal, Refused

VERSION = "2023-06-01"
_RESERVED = frozenset(("model", "messages", "system", "max_tokens", "stream", "temperature", "top_p"))
_PROMPT_PARTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# An error in a batch's results has a type alone; these are the statuses that it would have come with.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicDialect(NativeDialect):
    """How Anthropic's servers are asked; see `Dialect`.

    Raises:
        ConfigError: a setting that the API doesn't have.
    """

    path, models_path = "/messages", "/models?limit=1000"
    key_header = "x-api-key"
    headers: Mapping[str, str] = {"anthropic-version": VERSION}
    limit = "max_tokens"
    # Models before Claude 4.5 take none.
    about_schema = re.compile(r"output_config|output_format|json_schema|structured output", re.IGNORECASE)

    def __init__(self, name: str, settings: LlmSettings) -> None:
        super().__init__(name, settings, _RESERVED)
        if settings.seed is not None:
            raise ConfigError(f"llm {name}: Anthropic's API takes no seed; take it out of [llm.{name}]")

    def body(self, ask: Ask, form: Form) -> dict[str, Any]:
        """The request for a question; what the system says stands beside the turns."""
        settings = self._settings
        turns = [message for message in ask.messages if message.role != "system"]
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_tokens,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        }
        chosen = {
            "system": system_of(ask) or None,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
        }
        body |= {name: value for name, value in chosen.items() if value is not None}
        if ask.schema is not None and form.format:
            body["output_config"] = {"format": {"type": "json_schema", "schema": ask.schema}}
        return merged(body, settings.extra)

    def reply_of(self, value: Any) -> Reply:
        """The reply in a message; thoughts, which stand in blocks of their own, are no part of it."""
        if not isinstance(value, dict):
            raise broken("not an object", value)
        if value.get("type") == "error":
            raise Refused(Refusal.from_value(error_status(value), value), {})
        if not isinstance(value.get("content"), list):
            raise broken("a message without content", value)
        blocks = [block for block in list_of(value["content"]) if isinstance(block, dict)]
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        raw = "".join(text for text in texts if isinstance(text, str))
        counts = value.get("usage")
        counts = counts if isinstance(counts, dict) else {}
        read = [counts.get(part) or 0 for part in _PROMPT_PARTS]
        used = usage(read, [counts.get("output_tokens")])
        return replied(raw, name_of(value.get("stop_reason")), used, value.get("model"))

    def models_of(self, body: bytes) -> list[str]:
        """The models in a list of them."""
        return models_of(body)

    def _fields(self) -> Mapping[str, Any]:
        # From Claude Opus 4.7 on, models take no temperature.
        settings = self._settings
        sampling = {"temperature": settings.temperature, "top_p": settings.top_p}
        set_here = {"max_tokens": settings.max_tokens, **sampling, **settings.extra}
        return {re.escape(name): value for name, value in set_here.items()}


def error_status(value: Any) -> int:
    """The HTTP status that an error object stands for."""
    error = value.get("error") if isinstance(value, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return _STATUSES.get(kind, 500) if isinstance(kind, str) else 500
