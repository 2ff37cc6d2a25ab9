"""LLMs by name: from arguments to settings, their list, their providers, and users' functions as LLMs."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from llm_labeler.records import (
    Ask,
    CallFailed,
    LlmReply,
    Prices,
    TokenUsage,
    content_hash,
)
from llm_labeler.settings import LabelSettings
from llm_labeler.settings.llms import (
    BUILT_IN_LLMS,
    FUNCTION,
    PRICES_AS_OF,
    LlmSettings,
)
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.base.settings import between_commas, load_settings

LlmFunction: TypeAlias = Callable[[str], str] | Callable[[str], Awaitable[str]]
"""A plain or async callable from prompt to answer."""
LlmEntry: TypeAlias = LlmFunction | Mapping[str, Any]
LlmsGiven: TypeAlias = (
    str | LlmFunction | Sequence[str | LlmFunction] | Mapping[str, LlmEntry]
)
"""Names of LLMs (`ensemble`: the papers' three), functions from prompt to answer, or both; or a mapping from
your own names to functions and entries such as `{"kind": "openai_compatible", "model": …, "base_url": …}`."""

_NAME = re.compile(r"[\w-]+")

_SHORT = {"openai_compatible": "server"}  # alias of the kind


class Provider(ABC):
    """An LLM, a function or rules; `build` makes one."""

    # The environment variable with the key; None if no key is needed.
    key_variable: str | None = None
    leaves_machine: bool = False  # whether texts may be sent to another machine

    def __init__(
        self, name: str, settings: LlmSettings, parameters_text: str, prices: Prices
    ) -> None:
        self.name = name  # in the configuration
        self.model = settings.model
        self.prices = prices
        # JSON of the parameters that affect answers, without credentials, and its hash.
        self.parameters_text = parameters_text
        self.parameters = content_hash(parameters_text)
        self.concurrency = settings.concurrency
        self.rpm = settings.rpm
        self.tpm = settings.tpm
        self.attempts = settings.attempts
        # Fields of requests that its server doesn't know; stored with the answers.
        self.refused: set[str] = set()

    @abstractmethod
    def max_usage(self, ask: Ask) -> TokenUsage:
        """Upper bound on the tokens of a call: the bytes of the prompt, and the limit of the answer."""

    async def check(self) -> None:
        """Raise an error if the LLM is not available."""
        return

    @abstractmethod
    async def reply(self, ask: Ask) -> LlmReply:
        """Make one call."""

    async def close(self) -> None:
        """Release connections and threads, if it has any."""
        return


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a callable returns an awaitable."""
    method = getattr(function, "__call__", None)  # noqa: B004 - of an object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


def read_arguments(
    flags: Mapping[str, Any],
    *,
    below: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None,
) -> tuple[LabelSettings, dict[str, LlmFunction]]:
    """Merge defaults < `below` < `config` < `settings` < `flags`, by dotted keys; LLMs may be functions."""
    changes = dict(flags)
    tree = dict(below or {})
    tree["llm"] = dict(tree.get("llm", {}))
    entries: dict[str, LlmEntry] = {}
    plain = set()  # names without a function or entry
    for key in ("llms", "judge.llms"):
        named = list(_named_llms(flags.get(key)))
        changes[key] = [name for name, _ in named] or None
        plain |= {name for name, entry in named if entry is None}
        _add_entries(entries, named)

    functions = {}
    for name, entry in entries.items():
        if isinstance(entry, Mapping):
            changes |= {f"llm.{name}.{field}": entry[field] for field in entry}
            continue
        functions[name] = entry
        # The function, or the class of another callable.
        code = entry if hasattr(entry, "__qualname__") else type(entry)
        changes[f"llm.{name}.model"] = f"python:{code.__module__}.{code.__qualname__}"
        # Not in `changes`, so that the configuration can raise the concurrency of a plain function.
        concurrency = {} if is_async(entry) else {"concurrency": 1}
        tree["llm"][name] = {"kind": FUNCTION, **concurrency}
    merged = load_settings(
        LabelSettings, changes, below=tree, config=config, settings=settings
    )
    if "ensemble" in plain:
        plain.update(merged.ensemble.members)
    for name in functions:
        is_built_in = name in plain and name in BUILT_IN_LLMS
        if is_built_in or merged.llm[name].kind != FUNCTION:
            raise _two_of_a_name(name)
    return merged, functions


def _two_of_a_name(name: str) -> ConfigError:
    return ConfigError(
        f"llm: two LLMs are called {name}; choose another name: llm={{'mine': …}}"
    )


def _named_llms(llms: Any) -> Iterator[tuple[str, LlmEntry | None]]:
    """The name of each LLM with its function or entry, or with None if the settings describe the LLM."""
    if isinstance(llms, Mapping):
        yield from llms.items()
    elif isinstance(llms, str):
        names = between_commas(llms)
        if not all(names):
            raise ConfigError(
                f"llm {llms!r}: expected NAME or NAME,NAME, such as chatgpt,llama"
            )
        for name in names:
            yield name, None
    elif isinstance(llms, Sequence):
        for llm in llms:
            yield from _named_llms(llm)
    elif llms is not None:
        yield getattr(llms, "__name__", type(llms).__name__), llms


def _add_entries(
    entries: dict[str, LlmEntry], named: Iterable[tuple[str, LlmEntry | None]]
) -> None:
    """Add functions and entries by name; raises ConfigError for unusable ones, and for two of one name."""
    names = set()
    for name, entry in named:
        is_repeated = name in names
        names.add(name)
        if entry is None:
            continue
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ConfigError(
                f"llm: {name!r:.60} is not a name; expected letters, digits, _ and -: llm={{'mine': …}}"
            )
        if not (callable(entry) or isinstance(entry, Mapping)):
            raise ConfigError(
                f"llm: {name!r:.60} is {type(entry).__name__}; expected a function from prompt to answer, or"
                " an entry such as {'kind': 'openai_compatible', …}"
            )
        # The same function may propose and judge.
        if is_repeated or entries.setdefault(name, entry) != entry:
            raise _two_of_a_name(name)


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
            prices = (llm.price_in, llm.price_out)
            shown = ["?" if price is None else f"{price:g}" for price in prices]
            table.add_row(
                llm.name,
                _SHORT.get(llm.kind, llm.kind),
                llm.model,
                llm.base_url or "-",
                key,
                " / ".join(shown),
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
                has_key=bool(os.environ.get(variable or "")),
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
    distinct = dict.fromkeys(names)
    if not distinct:
        raise ConfigError(
            "no LLM is named; give --llm, such as chatgpt,llama, or llms in --config"
        )
    return {
        name: build(name, settings.llm[name], functions.get(name)) for name in distinct
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
