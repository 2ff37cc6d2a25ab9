"""What Anthropic's and Gemini's protocols have in common, where OpenAI's differs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from llm_labeler._providers.dialect import Form, check_extra
from llm_labeler._records import Ask
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError
from pairkit.openai_api.refusals import Refusal


class NativeDialect(ABC):
    """One field limits the tokens, old models take no schema, and refusals name a field in their words.

    Attributes:
        limit: The field with the most tokens of an answer.
        about_schema: What a refusal says that is about the schema.

    Args:
        name: The entry's name.
        settings: The entry.
        reserved: Fields that `extra` must not hold, see `check_extra`.

    Raises:
        ConfigError: names the field.
    """

    limit: ClassVar[str]
    about_schema: ClassVar[re.Pattern[str]]

    def __init__(self, name: str, settings: LlmSettings, reserved: frozenset[str]) -> None:
        check_extra(name, settings, reserved)
        if settings.limit_field != "auto":
            raise ConfigError(
                f"llm {name}: limit_field is for servers of OpenAI's protocol; take it out of [llm.{name}]"
            )
        self._name, self._settings = name, settings
        self._takes_schema = settings.structured != "off"

    @property
    def form(self) -> Form:
        """How to ask now."""
        return Form(self.limit, "json_schema" if self._takes_schema else "")

    def learns(self, refusal: Refusal, form: Form) -> bool:
        """Whether asking without a schema may help.

        Raises:
            ConfigError: the schema was demanded.
        """
        if refusal.status != 400 or not form.format or not self.about_schema.search(refusal.message):
            return False
        if self._settings.structured == "strict":
            raise ConfigError(
                f"llm {self._name}: the model takes no schema ({refusal.message}); "
                f'set structured = "auto" in [llm.{self._name}]'
            )
        self._takes_schema = False
        return True

    def blames(self, refusal: Refusal) -> ConfigError | None:
        """The setting that a refusal names."""
        if refusal.status != 400 or refusal.is_about_question:
            return None
        for pattern, value in self._fields().items():
            named = re.search(rf"\b{pattern}\b", refusal.message)
            if value is not None and named:
                return ConfigError(
                    f"llm {self._name}: the model does not take {named[0]} as it is set ({refusal.message}); "
                    f"change it in [llm.{self._name}]"
                )
        return None

    @abstractmethod
    def _fields(self) -> Mapping[str, Any]:
        """What is set, by patterns of the names that a refusal may have for it; None where it is not."""


def system_of(ask: Ask) -> str:
    """What the system says, which these protocols have beside the turns."""
    return "\n\n".join(message.content for message in ask.messages if message.role == "system")
