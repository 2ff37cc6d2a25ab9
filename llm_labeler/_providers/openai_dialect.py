"""OpenAI's protocol, as one server wants it: some fields have two names, some servers lack some fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm_labeler._providers.dialect import Form, Format, check_extra
from llm_labeler._providers.replies import models_of, reply_of
from llm_labeler._records import Ask, Reply
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError
from pairkit.openai_api.refusals import Refusal

# What decides the price or the shape of an answer is not for `extra`.
_RESERVED = frozenset(("model", "messages", "n", "stream", "max_tokens", "max_completion_tokens"))
_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|extra|not permitted|not allowed|unexpected|instead",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"response_format|json_schema|json_object|structured|guided|grammar", re.IGNORECASE)


class OpenAiDialect:
    """What a server of OpenAI's protocol is known to take; see `Dialect`."""

    path, models_path = "/chat/completions", "/models"
    key_header = "Authorization"
    headers: Mapping[str, str] = {}

    def __init__(self, name: str, settings: LlmSettings) -> None:
        check_extra(name, settings, _RESERVED)
        self._name, self._settings = name, settings
        self._refused: set[str] = set()
        # OpenAI's newer models take only the newer name, most other servers only the older one.
        names = ["max_completion_tokens", "max_tokens"]
        if settings.kind != "openai":
            names.reverse()
        self._limits = names if settings.limit_field == "auto" else [settings.limit_field]

    @property
    def form(self) -> Form:
        """How to ask now."""
        limit = next((name for name in self._limits if name not in self._refused), self._limits[0])
        wanted: Format = "json_object" if self._settings.kind == "glm" else "json_schema"
        takes = self._settings.structured != "off" and "response_format" not in self._refused
        return Form(limit, wanted if takes else "")

    def body(self, ask: Ask, form: Form) -> dict[str, Any]:
        """The request for a question."""
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [{"role": message.role, "content": message.content} for message in ask.messages],
            form.limit: settings.max_tokens,
        }
        seed = None if settings.seed is None else settings.seed + ask.sample
        chosen = {"temperature": settings.temperature, "top_p": settings.top_p, "seed": seed}
        body |= {name: value for name, value in chosen.items() if value is not None}
        if settings.kind == "glm":
            body["thinking"] = {"type": "disabled"}  # it is on by default, and costs
        if response_format := self._response_format(ask, form):
            body["response_format"] = response_format
        return body | settings.extra

    def reply_of(self, value: Any) -> Reply:
        """The reply in a decoded body."""
        return reply_of(value)

    def models_of(self, body: bytes) -> list[str]:
        """The models in a list of them."""
        return models_of(body)

    def learns(self, refusal: Refusal, form: Form) -> bool:
        """Whether asking again in another form may help after this refusal of a request in `form`.

        Raises:
            ConfigError: the form was demanded.
        """
        if refusal.status not in (400, 422):
            return False
        about = f"{refusal.param} {refusal.message}"
        if form.format and _FORMAT.search(about):
            if self._settings.structured == "strict":
                raise ConfigError(
                    f"llm {self._name}: the server takes no {form.format} ({refusal.message}); "
                    f'set structured = "auto" in [llm.{self._name}]'
                )
            self._refused.add("response_format")
        elif form.limit in about and _UNKNOWN.search(about):
            self._refused.add(form.limit)
        return self.form != form

    def blames(self, refusal: Refusal) -> ConfigError | None:
        """The setting that a refusal is about, which every question would meet; None if it is about none."""
        chosen = {"temperature", "top_p", "seed", "thinking", *self._settings.extra}
        if refusal.is_about_limit:
            return ConfigError(
                f"llm {self._name}: the server does not give such long answers ({refusal.message}); lower "
                f"max_tokens in [llm.{self._name}]"
            )
        if refusal.status not in (400, 422) or refusal.param not in chosen:
            return None
        return ConfigError(
            f"llm {self._name}: the server does not take {refusal.param} as it is set ({refusal.message}); "
            f"change it in [llm.{self._name}]"
        )

    def _response_format(self, ask: Ask, form: Form) -> dict[str, Any] | None:
        if ask.schema is None or not form.format:
            return None
        if form.format == "json_schema":
            schema = {"name": "answer", "schema": ask.schema, "strict": True}
            return {"type": "json_schema", "json_schema": schema}
        # It is told of no schema: unless the prompt says what JSON is wanted, it would invent some.
        says_json = any("json" in message.content.lower() for message in ask.messages)
        return {"type": "json_object"} if says_json or self._settings.structured == "strict" else None
