"""The providers of LLMs, the settings of one LLM, the LLMs that need none, and the hint on any other.

A file of `providers` declares each provider with OpenAI's protocol.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, field_validator

from llm_labeler.records import MAX_PRICE, MAX_TOKENS
from pairkit.base.openai_api.credentials import variable_name
from pairkit.base.settings import Settings, setting

ProviderName = Literal["openai", "openai_compatible", "glm", "anthropic", "gemini"]
PRICES_AS_OF = "June 2026"

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")

_PROVIDERS = Path(__file__).with_name("providers")

RULES = "wordnet"  # rules over a dictionary, not an LLM
FUNCTION = "function"
LlmKind = Literal[ProviderName, "function", "wordnet"]
_KIND_ALIASES = {"compatible": "openai_compatible", "server": "openai_compatible"}
Tree = dict[str, Any]

# `--config` adds entries and overrides fields of these.
BUILT_IN_LLMS: Mapping[str, Tree] = {
    "chatgpt": {"kind": "openai", "model": "gpt-4o-mini"},
    # vLLM's address; Ollama's is http://localhost:11434/v1, llama.cpp's http://localhost:8080/v1
    "llama": {
        "kind": "openai_compatible",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "base_url": "http://localhost:8000/v1",
    },
    "chatglm": {"kind": "glm", "model": "glm-4-flash"},
    "wordnet": {
        "kind": "wordnet",
        "model": "wordnet-3.0 rules",
        "price_in": 0.0,
        "price_out": 0.0,
    },
}
# The built-in LLM to use for a model, by the beginning of the model's name.
_LLM_OF_MODEL = {
    "gpt": "chatgpt",
    "o1": "chatgpt",
    "o3": "chatgpt",
    "o4": "chatgpt",
    "glm": "chatglm",
    "llama": "llama",
}
_PRICE = "US dollars per million {} tokens. Default: published price, 0 on your own server, else unknown."


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


PROVIDERS: Mapping[str, ProviderApi] = {
    name: ProviderApi(**tomllib.loads((_PROVIDERS / f"{name}.toml").read_text("utf-8")))
    for name in get_args(ProviderName)
}


def listed(names: Sequence[str], conjunction: str) -> str:
    """Format as `a, b and c`."""
    return f" {conjunction} ".join([", ".join(names[:-1]), names[-1]])


_APIS = [name for name, provider in PROVIDERS.items() if provider.url]


class LlmSettings(Settings):
    """One LLM, `[llm.NAME]`: its server, prices, limits and parameters."""

    kind: LlmKind = setting(
        ...,
        f"Kind of the LLM: {listed(_APIS, 'or')} (APIs), server or openai_compatible (any other with"
        " OpenAI's API), wordnet (rules) or function (in Python).",
    )
    model: str = setting("", "Name of the model at its server, such as gpt-4o-mini.")
    base_url: str | None = setting(
        None,
        "Root URL of the server's API, such as http://localhost:8000/v1. Default: the provider's own.",
    )
    api_key_env: Annotated[str, AfterValidator(variable_name)] | None = setting(
        None,
        "Environment variable with the API key. Default: the provider's usual one at its own host, no key "
        "elsewhere.",
    )
    local: bool = setting(
        False,
        "The LLM runs on this machine and no text leaves it; false for a local gateway to a remote LLM.",
    )
    plain_http: bool = setting(
        False, "Allow sending the key unencrypted to another machine."
    )
    ca_file: Path | None = setting(
        None,
        "File of trusted certificates (PEM). Default: that of SSL_CERT_FILE, else the system's.",
    )
    must_be_listed: bool = setting(
        True, "Stop if the model is not in the server's list of models."
    )
    price_in: float | None = setting(None, _PRICE.format("prompt"), ge=0, le=MAX_PRICE)
    price_out: float | None = setting(None, _PRICE.format("answer"), ge=0, le=MAX_PRICE)
    concurrency: int = setting(16, "Maximum number of concurrent calls.", ge=1)
    rpm: int | None = setting(
        None, "Maximum number of requests per minute. Default: unlimited.", ge=1
    )
    tpm: int | None = setting(
        None, "Maximum number of tokens per minute. Default: unlimited.", ge=1
    )
    timeout_s: float = setting(60.0, "Seconds to wait for one answer.", gt=0)
    attempts: int = setting(
        8, "Maximum number of attempts per question, including the first.", ge=1
    )
    temperature: float | None = setting(
        None, "Sampling temperature. Default: the server's default.", ge=0
    )
    top_p: float | None = setting(
        None, "Threshold of nucleus sampling. Default: the server's.", gt=0, le=1
    )
    seed: int | None = setting(
        None, "Random seed to send with each request. Default: none is sent."
    )
    max_tokens: int = setting(
        512, "Maximum number of tokens in an answer.", ge=1, le=MAX_TOKENS
    )
    structured: Literal["auto", "off", "strict"] = setting(
        "auto",
        "Whether to request JSON: auto (if supported), off or strict (fail if unsupported).",
    )
    extra: Tree = setting(
        {}, "Additional fields of each request, such as {top_k = 40}."
    )

    @field_validator("kind", mode="before")
    @classmethod
    def _without_alias(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        name = value.replace("-", "_")
        return _KIND_ALIASES.get(name, name)

    @property
    def api(self) -> ProviderApi:
        """What differs between providers; not for rules and functions."""
        return PROVIDERS[self.kind]

    @property
    def is_rules(self) -> bool:
        """Whether these are rules over a dictionary, which can't judge."""
        return self.kind == RULES


def with_built_in(configured: Mapping[str, object]) -> Tree:
    """The configured LLMs and the built-in ones, which give fields that an entry of the same kind lacks."""
    entries = {**BUILT_IN_LLMS, **configured}
    for name, built_in in BUILT_IN_LLMS.items():
        entry = entries[name]
        kind = built_in["kind"]
        if isinstance(entry, dict) and entry.get("kind", kind) == kind:
            entries[name] = {**built_in, **entry}
    return entries


def how_to_add(name: str) -> str:
    """How to use an LLM that has no settings."""
    model = name.rpartition("/")[2].lower()
    for beginning, llm in _LLM_OF_MODEL.items():
        if model.startswith(beginning):
            return f"give --llm={llm} --set llm.{llm}.model={name}"
    for kind, provider in PROVIDERS.items():
        for family in filter(model.startswith, provider.families):
            return f"give --llm={family} --set llm.{family}.kind={kind} --set llm.{family}.model={name}"
    entry = re.split(r"[^\w-]", model)[0] or "mine"
    return f"add [llm.{entry}] to a file for --config"
