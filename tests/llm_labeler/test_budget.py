"""Budgets are never exceeded and fully used: the accounts, then runs with servers of any bill."""

import asyncio
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler import CallFailed
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.budget import (
    MAX_AMOUNT,
    Budget,
    BudgetSpent,
    Spending,
    charge,
    check_prices,
    money,
    picodollars,
)
from llm_labeler.records import LlmReply, Prices, TokenUsage
from llm_labeler.settings import BudgetSettings
from pairkit import AuthError
from tests.support.shorthand import config_error, parametrize, raises, table

from .scripted_provider import (
    ACTUAL,
    BOUND,
    Scripted,
    an_ask,
    answer_at_once,
    answers_in,
    asked,
)


@given(
    prompt=st.integers(0, 10**6),
    completion=st.integers(0, 10**6),
    micro=st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)),
)
def test_costs_in_picodollars_are_exact(prompt, completion, micro):
    cost = Prices(micro[0] / 1e6, micro[1] / 1e6).cost(TokenUsage(prompt, completion))
    assert cost is not None
    exact = prompt * micro[0] + completion * micro[1]  # in picodollars
    # A double has 15 digits, so the cost of an expensive call may be rounded up.
    assert exact <= picodollars(cost) <= exact + 1 + exact // 10**15
    assert picodollars(1e300) == picodollars(float("inf")) == MAX_AMOUNT
    # To 15 digits, then up.
    assert [*map(picodollars, (0.1 + 0.2, 1.1e-12, 4e-13))] == [
        3 * 10**11,
        2,
        1,
    ]


def test_an_unknown_price_is_not_zero():
    known, unknown = Prices(0.0, 0.0), Prices(1.0, None)
    limited = BudgetSettings(max_cost=1.0)
    check_prices(limited, {"free": known}, Spending())
    check_prices(BudgetSettings(max_tokens=1), {"odd": unknown}, Spending(unpriced=3))
    remedy = r"price of odd is unknown; .*settings='llm.odd.price_in=X' and settings='llm.odd.price_out=Y'"
    with config_error(remedy):
        check_prices(limited, {"free": known, "odd": unknown}, Spending())
    with config_error("the price of 3 earlier calls is unknown"):
        check_prices(limited, {"free": known}, Spending(unpriced=3))


@parametrize(
    "settings, limit",
    [
        (BudgetSettings(max_requests=3), "max_requests"),
        (BudgetSettings(max_tokens=30), "max_tokens"),
        # As floats, three times 0.1 is more than 0.3.
        (BudgetSettings(max_cost=0.3), "max_cost"),
    ],
)
def test_limits_are_reached_exactly(settings, limit):
    budget = Budget(settings, charge(TokenUsage(4, 6), 0.1))
    one, two = (hold(budget, 4, 6, 0.1, in_bulk=True) for _ in range(2))
    assert budget.reserve("a", TokenUsage(4, 6), 0.1, in_bulk=True) is None  # not now
    budget.settle(one, charge(TokenUsage(4, 6), 0.1))
    assert budget.reserve("a", TokenUsage(4, 6), 0.1, in_bulk=True) is None
    budget.settle(two, charge(TokenUsage(4, 6), 0.1))
    with raises(BudgetSpent) as spent:
        budget.reserve("a", TokenUsage(4, 6), 0.1)
    assert spent.value.limit == limit


def test_a_share_of_the_rest_is_kept_for_a_later_stage():
    budget = Budget(BudgetSettings(max_tokens=110), charge(TokenUsage(4, 6), None))
    budget.keep_back(0.3)
    with raises(BudgetSpent):
        budget.reserve("a", TokenUsage(71, 0), None)
    budget.settle(hold(budget, 70, 0), charge(TokenUsage(50, 0), None))
    budget.keep_back(0)
    assert hold(budget, 50, 0).amounts == (1, 50, 0)
    with raises(BudgetSpent):
        budget.reserve("a", TokenUsage(51, 0), None)


def test_a_call_that_is_not_awaited_counts_at_its_plain_bound():
    budget = Budget(BudgetSettings(max_tokens=1000), Spending())
    budget.settle(hold(budget, 6, 4), charge(TokenUsage(12, 8), None))
    late = hold(budget, 6, 4)
    assert late.amounts == (1, 20, 0)  # the server counts twice the bound
    budget.write_off(late)
    assert budget.spent == (2, 30, 0)


@table("""
    cost, expected
    None | unknown
    0.0 | $0
    4e-05 | <$0.0001
    0.0001 | $0.0001
    0.5 | $0.5000
    0.99994 | $0.9999
    0.99999 | $1.00
    1.0 | $1.00
    12.345 | $12.35
""")
def test_money(cost, expected):
    assert money(cost) == expected


def test_free_calls_ignore_a_spent_cost_limit():
    budget = Budget(BudgetSettings(max_cost=1.0), charge(TokenUsage(1, 1), 3.0))
    assert budget.reserve("a", TokenUsage(5, 5), 0.0) is not None
    with raises(BudgetSpent):
        budget.reserve("a", TokenUsage(5, 5), 1e-9)
    # Calls in flight may reserve all requests.
    budget = Budget(BudgetSettings(max_requests=4), Spending())
    assert None not in [budget.reserve("a", TokenUsage(5, 5), None) for _ in range(4)]


def hold(budget, prompt, completion, cost=None, **options):
    """Reserve a call of the LLM `a`."""
    reservation = budget.reserve("a", TokenUsage(prompt, completion), cost, **options)
    assert reservation is not None
    return reservation


def test_concurrent_calls_start_at_one_and_double():
    budget = Budget(BudgetSettings(max_tokens=10**6), Spending())
    rounds = []
    for _ in range(6):
        flying = []
        while (reservation := budget.reserve("a", TokenUsage(4, 6), None)) is not None:
            flying.append(reservation)
        rounds.append(len(flying))
        for reservation in flying:
            budget.settle(reservation, charge(TokenUsage(4, 2), None))
    assert rounds == [1, 1, 2, 4, 8, 16]
    assert budget.reserve("b", TokenUsage(4, 6), None) is not None
    assert budget.reserve("b", TokenUsage(4, 6), None) is None
    free = Budget(BudgetSettings(max_cost=1.0), Spending())
    assert None not in [free.reserve("a", TokenUsage(4, 6), 0.0) for _ in range(100)]


@given(
    limit=st.integers(100, 10_000),
    max_usage=st.integers(1, 50),
    ratios=st.lists(st.integers(0, 80), min_size=1, max_size=200),
    maximum=st.integers(1, 64),
)
def test_a_limit_is_exceeded_at_most_by_the_excess_of_calls_in_flight(
    limit, max_usage, ratios, maximum
):
    """Servers may count up to eight times the bound."""
    budget = Budget(BudgetSettings(max_tokens=limit), Spending())
    flying = []
    used = excess = 0
    for ratio in ratios:
        try:
            while (
                len(flying) < maximum
                and (reservation := budget.reserve("a", TokenUsage(max_usage, 0), None))
                is not None
            ):
                flying.append((reservation, max_usage * ratio // 10))
        except BudgetSpent:
            break
        excess = max(
            excess,
            sum(max(0, took - reservation.amounts[1]) for reservation, took in flying),
        )
        reservation, took = flying.pop(0)
        budget.settle(reservation, charge(TokenUsage(took, 0), None))
        used += took
    used += sum(took for _, took in flying)
    assert used <= limit + excess
    assert excess <= 7 * max(max_usage, limit // 4)


class Billing:
    """A server with random faults and an exact bill."""

    def __init__(self, draw, name):
        self.draw = draw
        # Millionths of dollars.
        self.micro = (
            draw.randint(0, 20_000_000),
            draw.randint(0, 60_000_000),
        )
        self.requests = self.tokens = 0
        self.dollars = Fraction(0)
        sizes = [
            TokenUsage(draw.randint(0, 500), draw.randint(0, 500)) for _ in range(40)
        ]
        self.provider = Scripted(
            self.script,
            name=name,
            latency_s=draw.choice([0.0, 0.1, 3.0]),
            prices=Prices(self.micro[0] / 1e6, self.micro[1] / 1e6),
            concurrency=draw.randint(1, 8),
            attempts=draw.randint(1, 4),
            bounds=lambda ask: sizes[int(ask.text)],
        )

    def exact(self, usage):
        return Fraction(
            usage.prompt_tokens * self.micro[0]
            + usage.completion_tokens * self.micro[1],
            10**12,
        )

    def script(self, ask, attempt):
        max_usage = self.provider.max_usage(ask)
        used = TokenUsage(
            self.draw.randint(0, max_usage.prompt_tokens),
            self.draw.randint(0, max_usage.completion_tokens),
        )
        self.requests += 1
        kind = self.draw.choice(
            ["usage", "usage", "no usage", "billed", "refused", "rejected"]
        )
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


def check(store, draw):
    """Check one run; return whether its budget ended it."""
    servers = [Billing(draw, name) for name in ("a", "b")]
    budget = BudgetSettings(
        max_cost=draw.choice([None, draw.randint(0, 60_000) / 1e6]),
        max_tokens=draw.choice([None, draw.randint(0, 20_000)]),
        max_requests=draw.choice([None, draw.randint(0, 80)]),
    )
    outcome = asked(
        store, *(server.provider for server in servers), count=40, budget=budget
    )
    limits = [
        None if x is None else Fraction(str(x))
        for x in (budget.max_requests, budget.max_tokens, budget.max_cost)
    ]
    bill = (
        sum(server.requests for server in servers),
        sum(server.tokens for server in servers),
        sum(server.dollars for server in servers),
    )
    assert all(
        limit is None or used <= limit for used, limit in zip(bill, limits, strict=True)
    )
    spent = store.spent()
    assert spent == outcome.spent
    assert spent.requests == bill[0]
    settled = {answer.key for answer in answers_in(store)} | {
        f.key for f in store.failures()
    }
    for server in servers:
        for number in range(40):
            if (ask := an_ask(number, server.provider.name)).key not in settled:
                max_usage = server.provider.max_usage(ask)
                needed = (
                    spent.requests + 1,
                    spent.tokens
                    + max_usage.prompt_tokens
                    + max_usage.completion_tokens,
                    Fraction(spent.picodollars, 10**12) + server.exact(max_usage),
                )
                assert any(
                    limit is not None and use > limit
                    for use, limit in zip(needed, limits, strict=True)
                )
    assert (outcome.stopped_by is None) == (len(settled) == 80)
    return outcome.stopped_by is not None


@parametrize("runs", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_runs_keep_their_budget_and_use_it(tmp_path, runs):
    stopped = 0
    for seed in range(runs):
        path = tmp_path / f"{seed}.sqlite"
        with AnswerStore(path, create=True) as store:
            store._connection.execute("PRAGMA synchronous = OFF")
            stopped += check(store, random.Random(seed))
        path.unlink()
    assert runs / 3 < stopped < runs


def test_bounds_stay_raised_in_the_next_session(store):
    def dear(ask, attempt):
        return LlmReply("x", usage=TokenUsage(500, 100))

    for _ in range(6):
        asked(store, Scripted(dear), count=50, budget=BudgetSettings(max_tokens=3200))
    assert store.spent().tokens == 5 * 600


def test_bounds_are_raised_by_the_ratio_to_the_plain_bound():
    budget = Budget(BudgetSettings(max_tokens=10**6), Spending())
    raised = []
    for used in (50, 200, 300, 150, 450):
        reservation = hold(budget, 60, 40)
        raised.append(reservation.amounts[1])
        budget.settle(reservation, charge(TokenUsage(used, 0), None))
    assert raised == [100, 100, 200, 300, 300]
    assert hold(budget, 60, 40).amounts == (1, 450, 0)


def test_a_question_beyond_the_budget_does_not_stop_smaller_ones(store):
    provider = Scripted(
        bounds=lambda ask: TokenUsage(10**6, 1) if ask.text == "0" else BOUND
    )
    outcome = asked(store, provider, count=30, budget=BudgetSettings(max_tokens=10_000))
    assert (outcome.done, outcome.stopped_by) == (29, "max_tokens")


def test_a_spent_budget_stops_reading_questions(store):
    pulled = 0

    def stream(llm):
        nonlocal pulled
        for number in range(100_000):
            pulled += 1
            yield an_ask(number, llm)

    provider = Scripted(answer_at_once, concurrency=2)
    asked(store, provider, questions=stream, budget=BudgetSettings(max_tokens=0))
    assert not provider.asked
    assert pulled < 3000


class Dying(Scripted):
    """Answers twice; then one call hangs, and the next finds the key refused."""

    async def reply(self, ask):
        self.asked[ask.key] += 1
        if self.asked.total() == 3:
            await asyncio.sleep(100_000)
        if self.asked.total() >= 4:
            raise AuthError("the key was withdrawn")
        return LlmReply("x", usage=ACTUAL)


def test_reservations_of_a_failed_llm_are_freed(store):
    dead, alive = Dying(name="dead"), Scripted(name="alive", latency_s=1.0)
    budget = BudgetSettings(max_tokens=2000)
    outcome = asked(store, dead, alive, count=40, budget=budget, keep_going=True)
    assert isinstance(outcome.problems["dead"], AuthError)
    assert outcome.stopped_by == "max_tokens"
    assert outcome.spent == store.spent()  # the cancelled call counts at its bound
    assert outcome.spent.estimated == 1
    # 200 for the two answers, 150 for the cancelled call; the other LLM uses the rest
    assert alive.asked.total() == 16
