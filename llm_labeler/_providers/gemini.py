"""Gemini's API: a question as a request of `generateContent`, and what comes back as a reply.

Source: Gemini's API reference (v1beta), and the types of Google's SDK google-genai 3.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm_labeler._providers.dialect import Form, merged
from llm_labeler._providers.native import NativeDialect, system_of
from llm_labeler._providers.replies import (
    broken,
    list_of,
    models_of,
    name_of,
    refused_in,
    replied,
    usage,
)
from llm_labeler._records import Ask, Reply
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError

_RESERVED = frozenset(("model", "contents", "systemInstruction"))
_RESERVED_WITHIN = frozenset(("maxOutputTokens", "candidateCount", "temperature", "topP", "seed"))
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]*")  # it becomes part of a path
_BLOCKED = "content_filter"


class GeminiDialect(NativeDialect):
    """How Gemini's servers are asked; see `Dialect`.

    Raises:
        ConfigError: a model that can't be asked for, or a field that has a setting of its own.
    """

    models_path = "/models?pageSize=1000"
    key_header = "x-goog-api-key"
    headers: Mapping[str, str] = {}
    limit = "maxOutputTokens"
    # Old models take none.
    about_schema = re.compile(r"response_?json_?schema|response_?mime_?type|json mode|schema", re.IGNORECASE)

    def __init__(self, name: str, settings: LlmSettings) -> None:
        super().__init__(name, settings, _RESERVED)
        within = settings.extra.get("generationConfig", {})
        if isinstance(within, dict) and (found := sorted(_RESERVED_WITHIN & within.keys())):
            raise ConfigError(
                f"llm {name}: extra.generationConfig holds {found[0]}, which has a setting of its own or is "
                f"not for changing; take it out of [llm.{name}.extra]"
            )
        model = settings.model.removeprefix("models/")
        if not _MODEL.fullmatch(model):
            raise ConfigError(
                f"llm {name}: model {settings.model!r:.60} is no name of a Gemini model, such as "
                f"gemini-2.5-flash; change it in [llm.{name}]"
            )
        self.model_path = f"/models/{model}"
        self.path = f"{self.model_path}:generateContent"

    def body(self, ask: Ask, form: Form) -> dict[str, Any]:
        """The request for a question; what the system says stands beside the turns."""
        settings = self._settings
        seed = None if settings.seed is None else settings.seed + ask.sample
        chosen = {"temperature": settings.temperature, "topP": settings.top_p, "seed": seed}
        wanted: dict[str, Any] = {"maxOutputTokens": settings.max_tokens}
        wanted |= {name: value for name, value in chosen.items() if value is not None}
        if ask.schema is not None and form.format:
            wanted |= {"responseMimeType": "application/json", "responseJsonSchema": ask.schema}
        body: dict[str, Any] = {
            "contents": [
                {
                    "role": "model" if message.role == "assistant" else "user",
                    "parts": [{"text": message.content}],
                }
                for message in ask.messages
                if message.role != "system"
            ],
            "generationConfig": wanted,
        }
        if system := system_of(ask):
            body["systemInstruction"] = {"parts": [{"text": system}]}
        return merged(body, settings.extra)

    def reply_of(self, value: Any) -> Reply:
        """The reply in an answer; thoughts are no part of it, and a prompt that was blocked is an answer."""
        if not isinstance(value, dict):
            raise broken("not an object", value)
        counts, model = value.get("usageMetadata"), value.get("modelVersion")
        counts = counts if isinstance(counts, dict) else {}
        read = [counts.get("promptTokenCount"), counts.get("toolUsePromptTokenCount") or 0]
        written = [counts.get(part) or 0 for part in ("candidatesTokenCount", "thoughtsTokenCount")]
        used = usage(read, written)
        candidates = list_of(value.get("candidates"))
        if not candidates or not isinstance(candidates[0], dict):
            feedback = value.get("promptFeedback")
            if isinstance(feedback, dict) and feedback.get("blockReason"):
                return replied("", _BLOCKED, used, model)
            raise refused_in(value) or broken("no candidates", value)
        content = candidates[0].get("content")
        parts = list_of(content.get("parts")) if isinstance(content, dict) else []
        texts = [part.get("text") for part in parts if isinstance(part, dict) and not part.get("thought")]
        raw = "".join(text for text in texts if isinstance(text, str))
        return replied(raw, name_of(candidates[0].get("finishReason")), used, model)

    def models_of(self, body: bytes) -> list[str]:
        """The models in a list of them, by the names that settings have."""
        prefix = "models/" if self._settings.model.startswith("models/") else ""
        return [prefix + name.removeprefix("models/") for name in models_of(body, "models", "name")]

    def _fields(self) -> Mapping[str, Any]:
        settings = self._settings
        within = settings.extra.get("generationConfig", {})
        further = (*settings.extra, *(within if isinstance(within, dict) else ()))
        set_here = {
            "temperature": settings.temperature,
            "top_?p": settings.top_p,
            "seed": settings.seed,
            "max_?output_?tokens": settings.max_tokens,
            **{re.escape(name): True for name in further},
        }
        return {f"(?i:{pattern})": value for pattern, value in set_here.items()}
