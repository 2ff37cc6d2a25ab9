"""The providers of LLMs with OpenAI's protocol; a file declares each of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

ProviderName = Literal["openai", "openai_compatible", "glm", "anthropic", "gemini"]
PRICES_AS_OF = "June 2026"

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class ProviderApi:
    """What differs between providers, as declared in the file of each.

    Attributes:
        url: Root URL of the API; empty: only the settings of an LLM have it.
        families: Beginnings of model names, for the hint on an LLM without settings.
        fields: Additional fields of each request.
        limit_field: Field of the maximum length that is tried first.
        takes_schemas: Whether it accepts a JSON schema, not only a request for JSON.
        has_batches: Whether it has OpenAI's Batch API.
        lists_all_models: Whether a model that is not in its list doesn't exist.
        prices: By host and model, the published US dollars per million prompt and answer tokens.
    """

    url: str = ""
    families: Sequence[str] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    limit_field: str = "max_tokens"
    takes_schemas: bool = True
    has_batches: bool = False
    lists_all_models: bool = True
    prices: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)


_FOLDER = Path(__file__).parent
PROVIDERS: Mapping[str, ProviderApi] = {
    name: ProviderApi(**tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8")))
    for name in get_args(ProviderName)
}
