"""The LLMs that can be asked: behind servers, in this process, functions, or rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llm_labeler.clients.provider import Provider
from llm_labeler.settings.kinds import LLM_KINDS, load
from llm_labeler.settings.labelling import LlmSettings

__all__ = ["build"]


def build(name: str, settings: LlmSettings, function: Callable[..., Any] | None = None) -> Provider:
    """The provider of one `[llm.NAME]`; nothing is loaded, read from a key or connected to yet."""
    kind = load(LLM_KINDS[settings.kind].place)
    provider: Provider = kind(name, settings) if function is None else kind(name, settings, function)
    return provider
