"""A user's function as an LLM (`kind = "function"`): from a prompt to an answer."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from llm_labeler.records import Ask, CallFailed, LlmReply, Prices, TokenUsage, digest
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line

LlmFunction: TypeAlias = Callable[[str], str] | Callable[[str], Awaitable[str]]
"""From a prompt to an answer; plain or async, or an object that can be called so."""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or an object that can be called, has to be awaited."""
    own = getattr(function, "__call__", None)  # noqa: B004 - of an object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(own)


class FunctionProvider:
    """A function that answers prompts: a plain one in threads, an async one in the loop of the run."""

    def __init__(self, name: str, settings: LlmSettings, function: LlmFunction | None = None) -> None:
        if function is None:
            raise ConfigError(
                f"llm {name}: a function can only be given from Python: llms={{{name!r}: your_function}}"
            )
        self.name, self.model = name, settings.model
        self.parameters_text = json.dumps({"kind": "function", "model": settings.model}, sort_keys=True)
        self.parameters = digest(self.parameters_text)
        prompt, completion = settings.price_in, settings.price_out
        self.prices = Prices(0.0, 0.0) if settings.local else Prices(prompt, completion)
        self.concurrency, self.rpm, self.tpm = settings.concurrency, settings.rpm, settings.tpm
        self.attempts = settings.attempts
        self.key_variable: str | None = None
        self.leaves_machine = not settings.local  # only its owner knows
        self._function, self._max_tokens = function, settings.max_tokens
        self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix=f"llm-{name}")

    def bound(self, ask: Ask) -> TokenUsage:
        """The bytes of the prompt, and `max_tokens` of an answer: nobody counts what it really takes."""
        return TokenUsage(len(_prompt(ask).encode("utf-8", "surrogatepass")), self._max_tokens)

    async def check(self) -> None:
        """Nothing to check: a function is always available."""

    async def reply(self, ask: Ask) -> LlmReply:
        """Call the function with the prompt."""
        try:
            said = await self._said(_prompt(ask))
        except (TimeoutError, ConnectionError) as error:  # tried again; any other error ends the run
            reason = "timeout" if isinstance(error, TimeoutError) else "connection"
            raise CallFailed(reason, one_line(str(error)), maybe_billed=True) from error
        if not isinstance(said, str):
            raise ConfigError(
                f"llm {self.name}: {self.model} returned {type(said).__name__}, expected the answer as a str"
            )
        return LlmReply(said, model=self.model)

    async def close(self) -> None:
        """Wait for no thread: a function that hangs must not hold up the end of the run."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _said(self, prompt: str) -> object:
        if is_async(self._function):
            return await self._function(prompt)  # type: ignore[misc]  # it is async
        said: object = await asyncio.get_running_loop().run_in_executor(self._threads, self._function, prompt)
        return await said if inspect.isawaitable(said) else said


def _prompt(ask: Ask) -> str:
    """All that would be said to an LLM behind a server."""
    return "\n\n".join(message.content for message in ask.messages)
