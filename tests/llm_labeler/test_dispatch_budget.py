"""Runs with random budgets: the servers' bill stays within the limits, and the budget is used."""

from __future__ import annotations

import asyncio
import random
from fractions import Fraction
from pathlib import Path

import pytest

from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.records import Ask, CallFailed, LlmReply, Prices, TokenUsage
from llm_labeler.settings import BudgetSettings
from pairkit.base.errors import AuthError, ConfigError

from .scripted_provider import ACTUAL, BOUND, Scripted, an_ask, answer_at_once, answers_in, ask_in, run


class Billing:
    """A server with random faults and an exact bill."""

    def __init__(self, draw: random.Random, name: str) -> None:
        self.draw = draw
        self.micro = draw.randint(0, 20_000_000), draw.randint(0, 60_000_000)  # millionths of dollars
        self.requests = self.tokens = 0
        self.dollars = Fraction(0)
        sizes = [TokenUsage(draw.randint(0, 500), draw.randint(0, 500)) for _ in range(40)]
        self.provider = Scripted(
            self.script,
            name=name,
            latency_s=draw.choice([0.0, 0.1, 3.0]),
            prices=Prices(self.micro[0] / 1e6, self.micro[1] / 1e6),
            concurrency=draw.randint(1, 8),
            attempts=draw.randint(1, 4),
            bounds=lambda ask: sizes[int(ask.text)],
        )

    def exact(self, usage: TokenUsage) -> Fraction:
        return Fraction(usage.prompt_tokens * self.micro[0] + usage.completion_tokens * self.micro[1], 10**12)

    def script(self, ask: Ask, attempt: int) -> LlmReply | BaseException:
        max_usage = self.provider.max_usage(ask)
        used = TokenUsage(
            self.draw.randint(0, max_usage.prompt_tokens), self.draw.randint(0, max_usage.completion_tokens)
        )
        self.requests += 1
        kind = self.draw.choice(["usage", "usage", "no usage", "billed", "refused", "rejected"])
        if kind in ("usage", "no usage", "billed"):
            self.tokens += used.prompt_tokens + used.completion_tokens
            self.dollars += self.exact(used)
        if kind == "billed":
            return CallFailed("timeout", "", maybe_billed=True)
        if kind == "refused":
            return CallFailed("rate_limited", "")
        if kind == "rejected":
            return CallFailed("rejected", "", retry=False)
        return LlmReply("x", usage=used if kind == "usage" else None)


def check(store: AnswerStore, draw: random.Random) -> bool:
    """Check one run; return whether its budget ended it."""
    servers = [Billing(draw, name) for name in ("a", "b")]
    budget = BudgetSettings(
        max_cost=draw.choice([None, draw.randint(0, 60_000) / 1e6]),
        max_tokens=draw.choice([None, draw.randint(0, 20_000)]),
        max_requests=draw.choice([None, draw.randint(0, 80)]),
    )
    outcome = run(ask_in(store, *(server.provider for server in servers), count=40, budget=budget))
    limits = [
        None if x is None else Fraction(str(x))
        for x in (budget.max_requests, budget.max_tokens, budget.max_cost)
    ]
    bill = (
        sum(server.requests for server in servers),
        sum(server.tokens for server in servers),
        sum(server.dollars for server in servers),
    )
    assert all(limit is None or used <= limit for used, limit in zip(bill, limits, strict=True))
    spent = store.spent()
    assert spent == outcome.spent
    assert spent.requests == bill[0]
    settled = {answer.key for answer in answers_in(store)} | {f.key for f in store.failures()}
    for server in servers:
        for number in range(40):
            if (ask := an_ask(number, server.provider.name)).key not in settled:
                max_usage = server.provider.max_usage(ask)
                needed = (
                    spent.requests + 1,
                    spent.tokens + max_usage.prompt_tokens + max_usage.completion_tokens,
                    Fraction(spent.picodollars, 10**12) + server.exact(max_usage),
                )
                assert any(
                    limit is not None and use > limit for use, limit in zip(needed, limits, strict=True)
                )
    assert (outcome.stopped_by is None) == (len(settled) == 80)
    return outcome.stopped_by is not None


@pytest.mark.parametrize("runs", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_runs_keep_their_budget_and_use_it(tmp_path: Path, runs: int) -> None:
    stopped = 0
    for seed in range(runs):
        path = tmp_path / f"{seed}.sqlite"
        with AnswerStore.open(path, create=True) as store:
            store._connection.execute("PRAGMA synchronous = OFF")
            stopped += check(store, random.Random(seed))
        path.unlink()
    assert runs / 3 < stopped < runs


def test_bounds_stay_raised_in_the_next_session(store: AnswerStore) -> None:
    def dear(ask: Ask, attempt: int) -> LlmReply:
        return LlmReply("x", usage=TokenUsage(500, 100))

    for _ in range(6):
        run(ask_in(store, Scripted(dear), count=50, budget=BudgetSettings(max_tokens=3200)))
    assert store.spent().tokens == 5 * 600


def test_a_question_beyond_the_budget_does_not_stop_smaller_ones(store: AnswerStore) -> None:
    provider = Scripted(bounds=lambda ask: TokenUsage(10**6, 1) if ask.text == "0" else BOUND)
    outcome = run(ask_in(store, provider, count=30, budget=BudgetSettings(max_tokens=10_000)))
    assert (outcome.done, outcome.stopped_by) == (29, "max_tokens")


def test_a_spent_budget_stops_reading_questions(store: AnswerStore) -> None:
    pulled = 0

    def stream(llm: str):
        nonlocal pulled
        for number in range(100_000):
            pulled += 1
            yield an_ask(number, llm)

    provider = Scripted(answer_at_once, concurrency=2)
    run(ask_in(store, provider, questions=stream, budget=BudgetSettings(max_tokens=0)))
    assert not provider.asked
    assert pulled < 3000


class Dying(Scripted):
    """Answers twice; then one call hangs, and the next finds the key refused."""

    async def reply(self, ask: Ask) -> LlmReply:
        self.asked[ask.key] += 1
        if self.asked.total() == 3:
            await asyncio.sleep(100_000)
        if self.asked.total() >= 4:
            raise AuthError("the key was withdrawn")
        return LlmReply("x", usage=ACTUAL)


def test_reservations_of_a_failed_llm_are_freed(store: AnswerStore) -> None:
    dead, alive = Dying(name="dead"), Scripted(name="alive", latency_s=1.0)
    budget = BudgetSettings(max_tokens=2000)
    outcome = run(ask_in(store, dead, alive, count=40, budget=budget, keep_going=True))
    assert isinstance(outcome.problems["dead"], AuthError)
    assert outcome.stopped_by == "max_tokens"
    assert outcome.spent == store.spent()  # the cancelled call counts at its bound
    assert outcome.spent.estimated == 1
    # 200 for the two answers, 150 for the cancelled call; the other LLM uses the rest
    assert alive.asked.total() == 16


def test_a_call_that_can_not_be_recorded_reserves_nothing(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = AnswerStore.begin

    def fails_for_one(store: AnswerStore, key, max_usage: TokenUsage, cost: float | None) -> int:
        if key.llm == "dead":
            raise ConfigError("no space left on the device")
        return begin(store, key, max_usage, cost)

    monkeypatch.setattr(AnswerStore, "begin", fails_for_one)
    dead, alive = Scripted(name="dead"), Scripted(name="alive")
    budget = BudgetSettings(max_requests=10)
    outcome = run(ask_in(store, dead, alive, count=10, budget=budget, keep_going=True))
    assert list(outcome.problems) == ["dead"]
    assert (alive.asked.total(), outcome.stopped_by) == (10, None)
