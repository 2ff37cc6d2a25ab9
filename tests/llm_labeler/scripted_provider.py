"""A provider with scripted answers, and an event loop with virtual time."""

from __future__ import annotations

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from llm_labeler.clients.llms import Provider
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.budget import Budget
from llm_labeler.dispatch.workers import Meter, ask_all
from llm_labeler.records import (
    POLARITIES,
    Ask,
    AskKey,
    LlmReply,
    Message,
    Prices,
    StoredAnswer,
    TokenUsage,
    content_hash,
)
from llm_labeler.settings import BreakerSettings, BudgetSettings
from pairkit import Progress

T = TypeVar("T")

BOUND = TokenUsage(100, 50)
ACTUAL = TokenUsage(80, 20)
PRICES = Prices(1.0, 2.0)


def an_ask(number: int, llm: str = "tester", task: str = "positive") -> Ask:
    key = AskKey(content_hash(str(number)), llm, task, "prompt", "parameters")  # type: ignore[arg-type]
    return Ask(key, (Message("user", f"question {number}"),), text=str(number), size=1)


def answer_at_once(ask: Ask, attempt: int) -> LlmReply | Exception:
    return LlmReply(f"answer to {ask.text}", usage=ACTUAL)


def answers_in(store: AnswerStore) -> list[StoredAnswer]:
    """All stored answers but those of judges."""
    texts = [text_id for (text_id,) in store._connection.execute("SELECT text_id FROM answers")]
    return [*store.answers(POLARITIES, texts)]


Script = Callable[[Ask, int], LlmReply | BaseException]


def fails(error: Exception, when: Callable[[Ask, int], bool] = lambda ask, attempt: True) -> Script:
    """A script that fails if `when` is true, and answers otherwise."""
    return lambda ask, attempt: error if when(ask, attempt) else answer_at_once(ask, attempt)


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

    def max_usage(self, ask: Ask) -> TokenUsage:
        return self.bounds(ask)

    async def reply(self, ask: Ask) -> LlmReply:
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


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Advances the time instead of waiting, as there are no events on files."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everybody waits and nothing can happen any more")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` with virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


async def ask_in(
    store: AnswerStore,
    *providers: Scripted,
    count: int = 10,
    questions: Callable[[str], Iterable[Ask]] | None = None,
    budget: BudgetSettings | None = None,
    breaker: BreakerSettings | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    **options: Any,
) -> Meter:
    """`ask_all` with `count` questions for each provider, or with `questions`."""

    def asks(llm: str) -> Iterable[Ask]:
        return (an_ask(number, llm) for number in range(count))

    streams = {provider.name: (questions or asks)(provider.name) for provider in providers}
    return await ask_all(
        streams,
        {provider.name: provider for provider in providers},
        store,
        Budget(budget or BudgetSettings(), store.spent()),
        breaker=breaker or BreakerSettings(),
        progress=progress,
        **options,
    )
