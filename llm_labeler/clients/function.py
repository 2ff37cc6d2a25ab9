"""A user's function as an LLM (`kind = "function"`)."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from llm_labeler.records import Ask, CallFailed, LlmReply, Prices, TokenUsage, content_hash
from llm_labeler.settings import LlmSettings
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

LlmFunction: TypeAlias = Callable[[str], str] | Callable[[str], Awaitable[str]]
"""A plain or async callable from prompt to answer."""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a callable returns an awaitable."""
    method = getattr(function, "__call__", None)  # noqa: B004 - of an object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


class FunctionProvider:
    """Calls a plain function in threads, or an async one in the run's event loop."""

    def __init__(self, name: str, settings: LlmSettings, function: LlmFunction | None = None) -> None:
        if function is None:
            raise ConfigError(
                f"llm {name}: no function; pass one from Python, as llm={{{name!r}: your_function}}"
            )
        self.name, self.model = name, settings.model
        self.parameters_text = json.dumps({"kind": "function", "model": settings.model}, sort_keys=True)
        self.parameters = content_hash(self.parameters_text)
        prompt, completion = settings.price_in, settings.price_out
        self.prices = Prices(0.0, 0.0) if settings.local else Prices(prompt, completion)
        self.concurrency, self.rpm, self.tpm = settings.concurrency, settings.rpm, settings.tpm
        self.attempts = settings.attempts
        self.key_variable: str | None = None
        self.refused = set[str]()
        self.leaves_machine = not settings.local
        self._function, self._max_tokens = function, settings.max_tokens
        self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix=f"llm-{name}")

    def max_usage(self, ask: Ask) -> TokenUsage:
        """The bytes of the prompt and `max_tokens`, as the usage of a function is unknown."""
        return TokenUsage(len(_prompt(ask).encode()), self._max_tokens)

    async def check(self) -> None:
        """A function is always available."""

    async def reply(self, ask: Ask) -> LlmReply:
        """Call the function with the prompt."""
        try:
            if is_async(self._function):
                answer: object = await self._function(_prompt(ask))  # type: ignore[misc]  # it is async
            else:
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._threads, self._function, _prompt(ask))
                answer = await answer if inspect.isawaitable(answer) else answer
        except (TimeoutError, ConnectionError) as error:  # repeated; any other error ends the run
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
