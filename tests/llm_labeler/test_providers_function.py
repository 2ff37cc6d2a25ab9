"""Functions as LLMs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_labeler.clients.function import FunctionProvider
from llm_labeler.clients.llms import build
from llm_labeler.records import Ask, CallFailed, LlmReply, Message, TokenUsage
from llm_labeler.settings import LlmSettings
from pairkit.base.errors import ConfigError
from tests.llm_labeler.llm_server import an_ask

ENTRY = LlmSettings(kind="function", model="python:here.answer", concurrency=2)


def replies(function: Any, *asks: Ask, entry: LlmSettings = ENTRY) -> list[LlmReply]:
    async def main() -> list[LlmReply]:
        provider = build("mine", entry, function)
        try:
            await provider.check()
            return list(await asyncio.gather(*map(provider.reply, asks or (an_ask(),))))
        finally:
            await provider.close()

    return asyncio.run(main())


async def later(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt.upper()


class Shouting:
    def __call__(self, prompt: str) -> str:
        return prompt.upper()


@pytest.mark.parametrize("function", [str.upper, later, Shouting(), lambda prompt: later(prompt)])
def test_plain_async_and_objects(function: Any) -> None:
    (reply,) = replies(function)
    assert reply.raw == an_ask().messages[0].content.upper()
    assert (reply.usage, reply.model) == (None, "python:here.answer")


def test_a_function_gets_the_whole_prompt() -> None:
    seen: list[str] = []
    ask = Ask(an_ask().key, (Message("system", "Be brief."), Message("user", "Write.")))

    def answer(prompt: str) -> str:
        seen.append(prompt)
        return ""

    replies(answer, ask)
    assert seen == ["Be brief.\n\nWrite."]
    provider = FunctionProvider("mine", ENTRY, answer)
    assert provider.max_usage(ask) == TokenUsage(len("Be brief.\n\nWrite."), 512)


@pytest.mark.parametrize(
    ("raised", "reason"),
    [(TimeoutError("slow"), "timeout"), (ConnectionError("gone"), "connection"), (CallFailed("x", "y"), "x")],
)
def test_temporary_failures_of_functions(raised: Exception, reason: str) -> None:
    def answer(prompt: str) -> str:
        raise raised

    with pytest.raises(CallFailed) as caught:
        replies(answer)
    assert (caught.value.reason, caught.value.retry) == (reason, True)


def test_wrong_return_types_and_missing_functions() -> None:
    with pytest.raises(ConfigError, match="returned int; expected a str"):
        replies(len)
    with pytest.raises(ConfigError, match="no function; pass one from Python"):
        build("mine", ENTRY)


def test_functions_are_priced_and_remote_unless_local() -> None:
    provider = build("mine", ENTRY, str.upper)
    assert (provider.prices.cost(TokenUsage(1, 1)), provider.leaves_machine) == (None, True)
    local = build("mine", ENTRY.model_copy(update={"local": True}), str.upper)
    assert (local.prices.cost(TokenUsage(1, 1)), local.leaves_machine) == (0.0, False)
    assert provider.parameters == local.parameters
