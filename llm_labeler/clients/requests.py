"""A question as a chat completion request; servers differ in the names of fields and in what they accept."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from llm_labeler.records import Ask
from llm_labeler.settings.labelling import LlmSettings
from pairkit.app.errors import ConfigError
from pairkit.openai_api.refusals import Refusal

# What decides the price or the shape of an answer is not for `extra`.
_RESERVED = frozenset(("model", "messages", "n", "stream", "max_tokens", "max_completion_tokens"))
_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|extra|not permitted|not allowed|unexpected|instead",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"response_format|json_schema|json_object|structured|guided|grammar", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """The variable part of a request."""

    limit: str  # the field with the most tokens of an answer
    format: Literal["json_schema", "json_object", ""]


class Dialect:
    """The requests that one server is known to take; refusals teach it."""

    def __init__(self, name: str, settings: LlmSettings) -> None:
        if found := sorted(_RESERVED & settings.extra.keys()):
            raise ConfigError(
                f"llm {name}: extra holds {found[0]}, which has a setting of its own or is not for "
                f"changing; take it out of [llm.{name}.extra]"
            )
        self._name, self._settings = name, settings
        self._refused: set[str] = set()
        # OpenAI's newer models take only the newer name, most other servers only the older one.
        names = ["max_completion_tokens", "max_tokens"]
        if settings.kind != "openai":
            names.reverse()
        self._limits = names if settings.limit_field == "auto" else [settings.limit_field]

    @property
    def form(self) -> Form:
        """The form of the next request."""
        limit = next((name for name in self._limits if name not in self._refused), self._limits[0])
        if self._settings.structured == "off" or "response_format" in self._refused:
            return Form(limit, "")
        return Form(limit, "json_object" if self._settings.kind == "glm" else "json_schema")

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

    def learns(self, refusal: Refusal, form: Form) -> bool:
        """Whether asking again in another form may help after this refusal of a request in `form`."""
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
        """An error for a refusal of a setting, which every question would meet; None for other refusals."""
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
        # It gets no schema: unless the prompt describes the JSON, the model would invent some.
        says_json = any("json" in message.content.lower() for message in ask.messages)
        return {"type": "json_object"} if says_json or self._settings.structured == "strict" else None


def schema_bytes(ask: Ask) -> int:
    """Bytes that the schema of the answer adds to a prompt, at most."""
    return 0 if ask.schema is None else len(json.dumps(ask.schema).encode())


def can_be_sent(ask: Ask) -> bool:
    """Whether the prompt is valid UTF-8: half a surrogate pair is not."""
    try:
        for message in ask.messages:
            message.content.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
