"""LLMs by name: their list, their providers, and users' functions as LLMs (`kind = "function"`)."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from llm_labeler.records import (
    Ask,
    CallFailed,
    LlmReply,
    Prices,
    TokenUsage,
    content_hash,
)
from llm_labeler.settings import LabelSettings
from llm_labeler.settings.llms import FUNCTION, LlmSettings
from llm_labeler.settings.providers import PRICES_AS_OF
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

LlmFunction: TypeAlias = Callable[[str], str] | Callable[[str], Awaitable[str]]
"""A plain or async callable from prompt to answer."""

_SHORT = {"openai_compatible": "server"}  # alias of the kind


class Provider(Protocol):
    """An LLM, a function or rules; `build` makes one."""

    name: str  # in the configuration
    model: str
    parameters: str  # hash of `parameters_text`, see AskKey
    parameters_text: str  # JSON of the parameters that affect answers; no credentials
    prices: Prices
    concurrency: int
    rpm: int | None
    tpm: int | None
    attempts: int
    # The environment variable with the key; None if no key is needed.
    key_variable: str | None = None
    leaves_machine: bool = False  # whether texts may be sent to another machine
    # Fields of requests that its server doesn't know; stored with the answers.
    refused: set[str]

    def __init__(
        self, name: str, settings: LlmSettings, parameters_text: str, prices: Prices
    ) -> None:
        self.name = name
        self.model = settings.model
        self.prices = prices
        self.parameters_text = parameters_text
        self.parameters = content_hash(parameters_text)
        self.concurrency = settings.concurrency
        self.rpm = settings.rpm
        self.tpm = settings.tpm
        self.attempts = settings.attempts
        self.refused = set()

    def max_usage(self, ask: Ask) -> TokenUsage:
        """Upper bound on the tokens of a call: the bytes of the prompt, and the limit of the answer."""

    async def check(self) -> None:
        """Raise an error if the LLM is not available."""
        return

    async def reply(self, ask: Ask) -> LlmReply:
        """Make one call."""

    async def close(self) -> None:
        """Release connections and threads, if it has any."""
        return


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a callable returns an awaitable."""
    method = getattr(function, "__call__", None)  # noqa: B004 - of an object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


@dataclass(frozen=True, slots=True)
class Llm:
    """One LLM.

    Attributes:
        name: Name for `llms` and `--llm`.
        kind: Kind of server or `wordnet`.
        model: The server's name of the model.
        base_url: Address of the server; None: the maker's server, or no server.
        key_variable: Environment variable with the key; None: no key is needed.
        has_key: Whether this variable is set.
        price_in: US dollars per million prompt tokens; None: unknown.
        price_out: US dollars per million answer tokens; None: unknown.
    """

    name: str
    kind: str
    model: str
    base_url: str | None
    key_variable: str | None
    has_key: bool
    price_in: float | None
    price_out: float | None


class Llms(Printed, tuple[Llm, ...]):
    """LLMs sorted by name, printed as a table."""

    def table(self) -> ResultTable:
        """One row per LLM."""
        left = ("kind", "model", "server", "key")
        caption = f"$ per million tokens (?: unknown); prices that are not configured are those of {PRICES_AS_OF}"
        table = ResultTable("name", *left, "$ in / out", caption=caption, left=left)
        for llm in self:
            key = llm.key_variable or "none"
            if llm.key_variable and not llm.has_key:
                key += " (not set)"
            price_in = "?" if llm.price_in is None else f"{llm.price_in:g}"
            price_out = "?" if llm.price_out is None else f"{llm.price_out:g}"
            table.add_row(
                llm.name,
                _SHORT.get(llm.kind, llm.kind),
                llm.model,
                llm.base_url or "-",
                key,
                f"{price_in} / {price_out}",
            )
        return table


def known_llms(settings: LabelSettings) -> Llms:
    """The LLMs that settings describe."""
    llms = []
    for name, entry in sorted(settings.llm.items()):
        provider = build(name, entry)
        variable = provider.key_variable
        llms.append(
            Llm(
                name=name,
                kind=entry.kind,
                model=entry.model,
                base_url=entry.base_url,
                key_variable=variable,
                has_key=variable is not None and bool(os.environ.get(variable)),
                price_in=provider.prices.prompt,
                price_out=provider.prices.completion,
            )
        )
    return Llms(llms)


def build(
    name: str, settings: LlmSettings, function: LlmFunction | None = None
) -> Provider:
    """Make the provider of one `[llm.NAME]`, without reading keys or connecting."""
    # Import only the libraries of this kind.
    if settings.kind == FUNCTION:
        return FunctionProvider(name, settings, function)
    if settings.is_rules:
        from llm_labeler.clients.wordnet import WordnetProvider

        return WordnetProvider(name, settings)
    from llm_labeler.clients.llm_server import ServerProvider

    return ServerProvider(name, settings)


def build_all(
    names: Iterable[str], settings: LabelSettings, functions: Mapping[str, LlmFunction]
) -> dict[str, Provider]:
    """Make the providers of several LLMs, by name."""
    return {
        name: build(name, settings.llm[name], functions.get(name))
        for name in dict.fromkeys(names)
    }


def parameters_of(providers: Mapping[str, Provider]) -> dict[str, tuple[str, str]]:
    """The parameters of each LLM: their hash, and the parameters as JSON."""
    return {
        name: (llm.parameters, llm.parameters_text) for name, llm in providers.items()
    }


class FunctionProvider(Provider):
    """Calls a plain function in threads, or an async one in the run's event loop."""

    def __init__(
        self, name: str, settings: LlmSettings, function: LlmFunction | None
    ) -> None:
        if function is None:
            raise ConfigError(
                f"llm {name}: no function; pass one from Python, as llm={{{name!r}: your_function}}"
            )
        parameters = {"kind": FUNCTION, "model": settings.model}
        prices = Prices(settings.price_in, settings.price_out)
        if settings.local:
            prices = Prices(0.0, 0.0)
        super().__init__(name, settings, json.dumps(parameters), prices)
        self.leaves_machine = not settings.local
        self._function = function
        self._max_tokens = settings.max_tokens
        self._threads = ThreadPoolExecutor(
            self.concurrency, thread_name_prefix=f"llm-{name}"
        )

    def max_usage(self, ask: Ask) -> TokenUsage:
        """The bytes of the prompt and `max_tokens`, as the usage of a function is unknown."""
        return TokenUsage(len(_prompt(ask).encode()), self._max_tokens)

    async def reply(self, ask: Ask) -> LlmReply:
        """Call the function with the prompt."""
        prompt = _prompt(ask)
        try:
            if is_async(self._function):
                answer = await self._function(prompt)  # type: ignore[misc]  # it is async
            else:
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(
                    self._threads, self._function, prompt
                )
                if inspect.isawaitable(answer):
                    answer = await answer
        # These errors are repeated; any other ends the run.
        except (TimeoutError, ConnectionError) as error:
            reason = "timeout" if isinstance(error, TimeoutError) else "connection"
            raise CallFailed(reason, one_line(str(error)), maybe_billed=True) from error
        if not isinstance(answer, str):
            raise ConfigError(
                f"llm {self.name}: {self.model} returned {type(answer).__name__}; expected a str, the answer"
            )
        return LlmReply(answer, model=self.model)

    async def close(self) -> None:
        """Don't wait for threads: a hanging function must not block the end of the run."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _prompt(ask: Ask) -> str:
    return "\n\n".join(message.content for message in ask.messages)
