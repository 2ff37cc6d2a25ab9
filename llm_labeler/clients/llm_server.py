"""LLMs on servers with OpenAI's protocol (OpenAI, GLM, Anthropic, Gemini, vLLM, Ollama), and their prices."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from ipaddress import ip_address

from llm_labeler.clients.chat_completions import (
    Dialect,
    call_error,
    models_of,
    read_body,
    reply_of,
)
from llm_labeler.clients.llms import Provider
from llm_labeler.records import Ask, CallFailed, LlmReply, Prices, TokenUsage
from llm_labeler.settings.llms import PROVIDERS, LlmSettings
from pairkit.base.errors import AuthError, ConfigError, PairkitError, RemoteError
from pairkit.base.openai_api.channel import Channel, ServerConnection
from pairkit.base.openai_api.credentials import ANTHROPIC_HOST, find_key, key_variable
from pairkit.base.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from pairkit.base.printable import one_line
from pairkit.base.system.address import Address, read_address

_PRICES = {
    host: models
    for provider in PROVIDERS.values()
    for host, models in provider.prices.items()
}
_SEPARATOR = re.compile(r"[/:@]")  # between maker, model and variant
# Models without open weights: every other server of one is a gateway.
_CLOSED = re.compile(r"gpt-[3-9]|chatgpt|o[134](?:-|$)|claude|gemini|grok-[3-9]")
# Domains of private networks; host names without a dot are private, too.
_PRIVATE_DOMAINS = (".localhost", ".local", ".internal", ".home.arpa")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")

_SHOWN_MODELS = 5
_SHOWN_CHARS = 60  # of a model's name
_MAX_BYTES = 8 << 20  # of a response
# A text has at most as many tokens as bytes; chat templates add special tokens, and some a system message.
_TOKENS_PER_MESSAGE = 16
_TOKENS_PER_CALL = 256
_EXAMPLE = "http://localhost:8000/v1"
_ANSWER_FIELDS = (
    "kind",
    "model",
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "extra",
    "structured",
)


def _published(settings: LlmSettings, address: Address) -> Sequence[float] | None:
    """Published prices, of prompt and answer; 0 on the user's own server; None if unknown."""
    if address.host in _PRICES:
        return _look_up(address.host, settings.model)
    # Gateways prefix the maker: openai/gpt-4o.
    _, _, model = settings.model.rpartition("/")
    of_openai = _look_up("api.openai.com", model)
    if of_openai:
        return of_openai
    # A gateway passes on the price, and a variant such as `gpt-4o:extended` has another one.
    if any(map(_CLOSED.match, _SEPARATOR.split(settings.model.casefold()))):
        return None
    has_key = key_variable(address.host, settings.api_key_env) is not None
    if settings.local or (not has_key and _is_private(address.host)):
        return (0.0, 0.0)
    return _look_up("api.z.ai", model)


def _is_private(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_private
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_DOMAINS)


def _look_up(host: str, model: str) -> Sequence[float] | None:
    folded = model.casefold()
    prices = _PRICES[host]
    return prices.get(folded) or prices.get(_DATE.sub("", folded))


class ServerProvider(Provider):
    """One LLM on a server."""

    def __init__(
        self,
        name: str,
        settings: LlmSettings,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Check the settings without connecting."""
        if not settings.model:
            raise ConfigError(f"llm {name}: no model; set model in [llm.{name}]")
        self.address = _find_address(name, settings)
        price_in, price_out = _published(settings, self.address) or (None, None)
        if settings.price_in is not None:
            price_in = settings.price_in
        if settings.price_out is not None:
            price_out = settings.price_out
        parameters = _answer_parameters(name, settings, self.address)
        super().__init__(name, settings, parameters, Prices(price_in, price_out))
        self.has_batches = settings.api.has_batches
        self._settings = settings
        self.dialect = Dialect(name, settings)
        self.refused = self.dialect.refused
        self.key_variable = key_variable(self.address.host, settings.api_key_env)
        # A closure, so that printing a provider doesn't print the environment.
        self._environ: Callable[[], Mapping[str, str]] = lambda: environ
        self.leaves_machine = not settings.local  # even a local server may be a gateway

    @cached_property
    def channel(self) -> Channel:
        """The channel, which reads the key when it is first used; the first call connects it."""
        settings = self._settings
        environ = self._environ()
        key = None
        if self.key_variable is not None:
            remedy = f"set {self.key_variable} or api_key_env in [llm.{self.name}]"
            key = find_key(f"llm {self.name}", self.key_variable, environ, remedy)
        connection = ServerConnection(
            self.address,
            key,
            timeout_s=settings.timeout_s,
            concurrency=settings.concurrency,
            ca_file=settings.ca_file,
            plain_http=settings.plain_http,
        )
        try:
            return Channel(connection, environ)
        except ConfigError as error:
            raise ConfigError(
                f"llm {self.name}: {error}; see [llm.{self.name}]"
            ) from error

    def max_usage(self, ask: Ask) -> TokenUsage:
        """Upper bound on the tokens of a call."""
        prompt = _TOKENS_PER_CALL
        for message in ask.messages:
            prompt += len(message.content.encode()) + _TOKENS_PER_MESSAGE
        if self.dialect.form(ask).format == "json_schema":
            prompt += len(json.dumps(ask.schema).encode())
        return TokenUsage(prompt, self._settings.max_tokens)

    async def check(self) -> None:
        """Check the key, the connection, and that the server's list of models, if any, has the model."""
        # Anthropic's list of models has another protocol.
        if self.address.host == ANTHROPIC_HOST:
            _ = self.channel
            return
        try:
            models = await self._list_models()
        except RefusedCall as refused:
            if refused.refusal.cause == "key":
                raise self._auth_error(refused.refusal) from refused
            return  # a server without a list may have the model
        except NoAnswer as missed:
            remedy = "check the network"
            if _is_private(self.address.host):
                remedy = "start the server"
            raise RemoteError(
                f"llm {self.name}: can't be reached at {self.address.url} ({missed.detail}); {remedy}, or set"
                f" base_url in [llm.{self.name}]"
            ) from missed
        settings = self._settings
        is_trusted = not (settings.must_be_listed and settings.api.lists_all_models)
        if models and not is_trusted and not {*_spellings(self.model)} & {*models}:
            raise self._no_such_model(models)

    async def reply(self, ask: Ask) -> LlmReply:
        """Send the question; if the server refuses the form of the request, try another form."""
        while True:
            form = self.dialect.form(ask)
            try:
                request = {**self.dialect.body(ask, form), "stream": False}
                body = await self.channel.post(
                    "/chat/completions", request, most_bytes=_MAX_BYTES
                )
                reply = reply_of(read_body(body))
            except NoAnswer as missed:
                raise CallFailed(
                    missed.reason, missed.detail, maybe_billed=missed.was_sent
                ) from missed
            except CallFailed as failed:
                if failed.reason == "empty_answer":  # DeepSeek's JSON mode has many
                    self.dialect.misses[ask.key] += 1
                raise
            except RefusedCall as refused:
                if self.dialect.adapt(ask, form, refused.refusal):
                    continue
                # The question is repeated, and then asked without the format.
                if form.format and ask.key in self.dialect.misses:
                    raise CallFailed(
                        "rejected", str(refused), maybe_billed=True
                    ) from refused
                raise await self.explain(refused) from refused
            else:
                self.dialect.answered(ask, form)
                return reply

    async def explain(self, refused: RefusedCall) -> CallFailed | PairkitError:
        """The error for a refusal."""
        refusal = refused.refusal
        if refusal.cause == "key":
            return self._auth_error(refusal)
        if 300 <= refusal.status < 400:
            target, _, _ = refused.headers.get("location", "elsewhere").partition("?")
            return ConfigError(
                f"llm {self.name}: {self.address.url} redirects to {one_line(target)}; set this address as"
                f" base_url in [llm.{self.name}]"
            )
        if refusal.cause == "model":
            return await self._model_error(refusal)
        return self.dialect.setting_error(refusal) or call_error(self.name, refused)

    async def close(self) -> None:
        """Close the connections."""
        if "channel" in self.__dict__:
            await self.channel.close()

    async def _model_error(self, refusal: Refusal) -> PairkitError:
        try:
            models = await self._list_models()
        except (RefusedCall, NoAnswer):
            models = []
        if {*_spellings(self.model)} & {*models}:
            return RemoteError(
                f"llm {self.name}: HTTP {refusal.status} although the server lists {self.model}"
                f" ({refusal.message}); fix that, or check that it is a chat model, then run the same command"
                " again"
            )
        return self._no_such_model(models, refusal)

    async def _list_models(self) -> list[str]:
        """The server's models; empty if the list can't be read."""
        return models_of(await self.channel.get("/models"))

    def _no_such_model(
        self, models: list[str], refusal: Refusal | None = None
    ) -> ConfigError:
        close = get_close_matches(self.model, models, _SHOWN_MODELS, cutoff=0.3)
        others = [model for model in models if model not in close]
        shown = [
            one_line(model, _SHOWN_CHARS) for model in (close + others)[:_SHOWN_MODELS]
        ]
        listed = "it lists none; base_url usually ends in /v1"
        if shown:
            more = ", …" if len(models) > len(shown) else ""
            listed = f"it has {', '.join(shown)}{more}"
        message = f" (HTTP {refusal.status}: {refusal.message})" if refusal else ""
        return ConfigError(
            f"llm {self.name}: no such model {self.model!r} at {self.address.url}{message}: {listed}; "
            f"set model in [llm.{self.name}], or must_be_listed = false there if the server has it"
        )

    def _auth_error(self, refusal: Refusal) -> AuthError:
        key = self.channel.key
        credential = f"the key from {key.source}" if key else "a call without a key"
        # The message of a 401 may repeat part of the key.
        message = f" ({refusal.message})" if refusal.status != 401 else ""
        return AuthError(
            f"llm {self.name}: {self.address.url} refused {credential} with HTTP {refusal.status}{message};"
            f" fix it, or name another variable as api_key_env in [llm.{self.name}]"
        )


def _spellings(model: str) -> tuple[str, ...]:
    """A model's names in lists: Ollama adds a tag, Gemini a prefix."""
    return model, f"{model}:latest", f"models/{model}"


def _answer_parameters(name: str, settings: LlmSettings, address: Address) -> str:
    """The parameters that affect answers, as JSON."""
    values = {field: getattr(settings, field) for field in _ANSWER_FIELDS}
    values["base_url"] = address.url
    try:
        return json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"llm {name}: extra can't be written as JSON ({error}); use strings, numbers, lists and"
            f" tables in [llm.{name}.extra]"
        ) from error


def _find_address(name: str, settings: LlmSettings) -> Address:
    url = settings.base_url or settings.api.url
    if not url:
        raise ConfigError(
            f"llm {name}: no address; set base_url in [llm.{name}], such as {_EXAMPLE}"
        )
    address = read_address(url, f"llm {name}: base_url", _EXAMPLE)
    if settings.local and not address.is_loopback:
        raise ConfigError(
            f"llm {name}: local = true, but {address.url} is another machine; remove local from [llm.{name}]"
        )
    if settings.structured == "strict" and address.host == ANTHROPIC_HOST:
        raise ConfigError(
            f'llm {name}: Anthropic\'s endpoint ignores schemas; set structured = "auto" in [llm.{name}]'
        )
    return address
