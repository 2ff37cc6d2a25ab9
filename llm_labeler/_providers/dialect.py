"""How a maker's servers want to be asked, and how they answer: one dialect for each protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from llm_labeler._records import Ask, Reply
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError
from pairkit.openai_api.refusals import Refusal

Format = Literal["json_schema", "json_object", ""]


@dataclass(frozen=True, slots=True)
class Form:
    """The variable part of a request."""

    limit: str  # the field with the most tokens of an answer
    format: Format


class Dialect(Protocol):
    """How one server is asked; it learns from what that server turns down.

    Attributes:
        path: Where a question goes, below the address.
        models_path: Where the list of models is.
        key_header: The header that the key goes in.
        headers: What every request takes along.
        form: How to ask now.
    """

    path: str
    models_path: str
    key_header: str
    headers: Mapping[str, str]

    @property
    def form(self) -> Form:
        """How to ask now."""
        ...

    def body(self, ask: Ask, form: Form) -> dict[str, Any]:
        """The request for a question."""
        ...

    def reply_of(self, value: Any) -> Reply:
        """The reply in a decoded body.

        Raises:
            CallFailed: there is none, or the model failed.
            Refused: an error in the place of an answer.
        """
        ...

    def models_of(self, body: bytes) -> list[str]:
        """The models in a list of them; none where it can't be understood."""
        ...

    def learns(self, refusal: Refusal, form: Form) -> bool:
        """Whether asking again in another form may help after this refusal of a request in `form`.

        Raises:
            ConfigError: the form was demanded.
        """
        ...

    def blames(self, refusal: Refusal) -> ConfigError | None:
        """The setting that a refusal is about, which every question would meet; None if it is about none."""
        ...


def check_extra(name: str, settings: LlmSettings, reserved: frozenset[str]) -> None:
    """Refuse fields that have a setting of their own, or that decide the price or the shape of an answer.

    Raises:
        ConfigError: names the field.
    """
    if found := sorted(reserved & settings.extra.keys()):
        raise ConfigError(
            f"llm {name}: extra holds {found[0]}, which has a setting of its own or is not for "
            f"changing; take it out of [llm.{name}.extra]"
        )


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A request with further fields; where both have a table of one name, its fields come together."""
    found = {**body, **extra}
    for name in body.keys() & extra.keys():
        if isinstance(body[name], dict) and isinstance(extra[name], dict):
            found[name] = {**body[name], **extra[name]}
    return found


def schema_bytes(ask: Ask) -> int:
    """Bytes that the schema of the answer adds to a prompt, at most."""
    return 0 if ask.schema is None else len(json.dumps(ask.schema).encode())


def can_be_sent(ask: Ask) -> bool:
    """Whether its text can be encoded: half a surrogate pair can't."""
    try:
        for message in ask.messages:
            message.content.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
