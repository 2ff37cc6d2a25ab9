"""A provider with scripted answers, and an event loop with virtual time."""

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from llm_labeler.clients.llms import Provider
from llm_labeler.dispatch.budget import Budget
from llm_labeler.dispatch.workers import ask_all
from llm_labeler.records import (
    POLARITIES,
    Ask,
    AskKey,
    LlmReply,
    Message,
    Prices,
    TokenUsage,
    content_hash,
)
from llm_labeler.settings import BreakerSettings, BudgetSettings

T = TypeVar("T")

BOUND = TokenUsage(100, 50)
ACTUAL = TokenUsage(80, 20)
PRICES = Prices(1.0, 2.0)


def an_ask(number, llm="tester", task="positive"):
    key = AskKey(content_hash(str(number)), llm, task, "prompt", "parameters")
    return Ask(key, (Message("user", f"question {number}"),), text=str(number), size=1)


def answer_at_once(ask, attempt):
    return LlmReply(f"answer to {ask.text}", usage=ACTUAL)


def answers_in(store):
    """All stored answers but those of judges."""
    texts = [
        text_id
        for (text_id,) in store._connection.execute("SELECT text_id FROM answers")
    ]
    return [*store.answers(POLARITIES, texts)]


Script = Callable[[Ask, int], LlmReply | BaseException]


def fails(error, when=lambda ask, attempt: True):
    """A script that fails if `when` is true, and answers otherwise."""
    return lambda ask, attempt: (
        error if when(ask, attempt) else answer_at_once(ask, attempt)
    )


@dataclass
class Scripted(Provider):
    """Returns or raises `script(ask, attempt)`; attempts of a question count from 1."""

    script: Script = answer_at_once
    latency_s: float = 0.0
    name: str = "tester"
    model: str = "scripted"
    parameters: str = "parameters"
    parameters_text: str = "{}"
    prices: Prices = PRICES
    concurrency: int = 4
    rpm: int | None = None
    tpm: int | None = None
    attempts: int = 3
    key_variable: str | None = None
    leaves_machine: bool = False
    refused: set[str] = field(default_factory=set)
    bounds: Callable[[Ask], TokenUsage] = lambda ask: BOUND
    asked: Counter[AskKey] = field(default_factory=Counter)
    starts: list[float] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def max_usage(self, ask):
        return self.bounds(ask)

    async def reply(self, ask):
        self.asked[ask.key] += 1
        self.starts.append(asyncio.get_running_loop().time())
        reply = self.script(ask, self.asked[ask.key])
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        if isinstance(reply, BaseException):
            raise reply
        return reply


class _Selector(selectors.DefaultSelector):
    """Advances the time instead of waiting, as there are no events on files."""

    now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise AssertionError("everybody waits and nothing can happen any more")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time."""

    def __init__(self):
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self):
        return self._virtual.now


def run(main):
    """`asyncio.run` with virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


async def ask_in(
    store,
    *providers,
    count=10,
    questions=None,
    budget=None,
    breaker=None,
    progress=lambda progress: None,
    **options,
):
    """`ask_all` with `count` questions for each provider, or with `questions`."""

    def asks(llm):
        return (an_ask(number, llm) for number in range(count))

    streams = {
        provider.name: (questions or asks)(provider.name) for provider in providers
    }
    return await ask_all(
        streams,
        {provider.name: provider for provider in providers},
        store,
        Budget(budget or BudgetSettings(), store.spent()),
        breaker=breaker or BreakerSettings(),
        progress=progress,
        **options,
    )


def asked(*arguments, **options):
    """The outcome of `ask_in`, in virtual time."""
    return run(ask_in(*arguments, **options))
