"""From an entry of the configuration to something that can be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping

from llm_labeler._provider import Provider
from llm_labeler._settings import LlmSettings


def build(name: str, settings: LlmSettings, *, environ: Mapping[str, str] = os.environ) -> Provider:
    """The provider of one `[llm.NAME]`; nothing is loaded, read from a key or connected to yet.

    Args:
        name: The entry's name.
        settings: The entry.
        environ: Where keys are looked up.

    Raises:
        ConfigError: the entry lacks something or contradicts itself.
    """
    # Each kind brings libraries that the others can do without.
    match settings.kind:
        case "local":
            from llm_labeler._providers.local import LocalProvider

            return LocalProvider(name, settings)
        case "wordnet":
            from llm_labeler._providers.wordnet import WordnetProvider

            return WordnetProvider(name, settings)
        case "openai" | "openai_compatible" | "glm":
            from llm_labeler._providers.openai_compatible import OpenAiProvider

            return OpenAiProvider(name, settings, environ=environ)
