"""Budgets are never exceeded and fully used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.dispatch.budget import (
    Budget,
    BudgetSpent,
    Reservation,
    Spending,
    charge,
    check_prices,
    picodollars,
)
from llm_labeler.records import Prices, TokenUsage
from llm_labeler.settings import BudgetSettings
from pairkit import ConfigError


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (0.0, 0),
        (1.0, 10**12),
        (0.1 + 0.2, 3 * 10**11),  # 0.30000000000000004
        (1e-12, 1),
        (1.1e-12, 2),
        (4e-13, 1),
        (0.000_6, 6 * 10**8),
        (12.345678901234, 12345678901234),
    ],
)
def test_picodollars(cost: float, expected: int) -> None:
    assert picodollars(cost) == expected


@given(
    prompt=st.integers(0, 10**6),
    completion=st.integers(0, 10**6),
    micro=st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)),
)
def test_costs_in_picodollars_are_exact(prompt: int, completion: int, micro: tuple[int, int]) -> None:
    cost = Prices(micro[0] / 1e6, micro[1] / 1e6).cost(TokenUsage(prompt, completion))
    assert cost is not None
    exact = prompt * micro[0] + completion * micro[1]  # in picodollars
    # A double has 15 digits, so the cost of an expensive call may be rounded up.
    assert exact <= picodollars(cost) <= exact + 1 + exact // 10**15


def test_an_unknown_price_is_not_zero() -> None:
    known, unknown = Prices(0.0, 0.0), Prices(1.0, None)
    limited = BudgetSettings(max_cost=1.0)
    check_prices(limited, {"free": known}, Spending())
    check_prices(BudgetSettings(max_tokens=1), {"odd": unknown}, Spending(unpriced=3))
    remedy = r"price of odd is unknown; .*settings='llm.odd.price_in=X' and settings='llm.odd.price_out=Y'"
    with pytest.raises(ConfigError, match=remedy):
        check_prices(limited, {"free": known, "odd": unknown}, Spending())
    with pytest.raises(ConfigError, match="the price of 3 earlier calls is unknown"):
        check_prices(limited, {"free": known}, Spending(unpriced=3))


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        (BudgetSettings(max_requests=3), "max_requests"),
        (BudgetSettings(max_tokens=30), "max_tokens"),
        (BudgetSettings(max_cost=0.3), "max_cost"),  # as floats, three times 0.1 is more than 0.3
    ],
)
def test_limits_are_reached_exactly(settings: BudgetSettings, limit: str) -> None:
    budget = Budget(settings, charge(TokenUsage(4, 6), 0.1))
    one, two = (hold(budget, 4, 6, 0.1, in_bulk=True) for _ in range(2))
    assert budget.reserve("a", TokenUsage(4, 6), 0.1, in_bulk=True) is None  # not now
    budget.settle(one, TokenUsage(4, 6), 0.1)
    assert budget.reserve("a", TokenUsage(4, 6), 0.1, in_bulk=True) is None
    budget.settle(two, TokenUsage(4, 6), 0.1)
    with pytest.raises(BudgetSpent) as spent:
        budget.reserve("a", TokenUsage(4, 6), 0.1)
    assert spent.value.limit == limit


def test_a_written_off_call_counts_at_its_bound() -> None:
    budget = Budget(BudgetSettings(max_tokens=40), Spending())
    reservation = hold(budget, 6, 4, 0.0)
    budget.write_off(reservation)
    with pytest.raises(BudgetSpent, match="max_tokens has no room for the call"):
        budget.reserve("a", TokenUsage(31, 0), 0.0)
    assert budget.reserve("a", TokenUsage(30, 0), 0.0) is not None


def test_free_calls_ignore_a_spent_cost_limit() -> None:
    budget = Budget(BudgetSettings(max_cost=1.0), charge(TokenUsage(1, 1), 3.0))
    assert budget.reserve("a", TokenUsage(5, 5), 0.0) is not None
    with pytest.raises(BudgetSpent):
        budget.reserve("a", TokenUsage(5, 5), 1e-9)


def hold(
    budget: Budget, prompt: int, completion: int, cost: float | None = None, **options: Any
) -> Reservation:
    """Reserve a call of the LLM `a`."""
    reservation = budget.reserve("a", TokenUsage(prompt, completion), cost, **options)
    assert reservation is not None
    return reservation


def test_concurrent_calls_start_at_one_and_double() -> None:
    budget = Budget(BudgetSettings(max_tokens=10**6), Spending())
    rounds = []
    for _ in range(6):
        flying = []
        while (reservation := budget.reserve("a", TokenUsage(4, 6), None)) is not None:
            flying.append(reservation)
        rounds.append(len(flying))
        for reservation in flying:
            budget.settle(reservation, TokenUsage(4, 2), None)
    assert rounds == [1, 1, 2, 4, 8, 16]
    assert budget.reserve("b", TokenUsage(4, 6), None) is not None
    assert budget.reserve("b", TokenUsage(4, 6), None) is None
    free = Budget(BudgetSettings(max_cost=1.0), Spending())
    assert None not in [free.reserve("a", TokenUsage(4, 6), 0.0) for _ in range(100)]


def test_calls_in_flight_reserve_at_most_a_quarter() -> None:
    budget = Budget(BudgetSettings(max_tokens=1000), Spending())
    for _ in range(40):
        reservation = hold(budget, 5, 5)
        budget.settle(reservation, TokenUsage(5, 5), None)
    flying = [budget.reserve("a", TokenUsage(5, 5), None) for _ in range(20)]
    assert sum(reservation is not None for reservation in flying) == 15  # of 600
    alone = Budget(BudgetSettings(max_tokens=1000), Spending())
    assert alone.reserve("a", TokenUsage(500, 500), None) is not None


def test_calls_in_flight_may_reserve_all_requests() -> None:
    budget = Budget(BudgetSettings(max_requests=4), Spending())
    assert None not in [budget.reserve("a", TokenUsage(5, 5), None) for _ in range(4)]


def test_excess_usage_raises_the_next_bound() -> None:
    budget = Budget(BudgetSettings(max_tokens=1000), Spending())
    reservation = hold(budget, 5, 5)
    budget.settle(reservation, TokenUsage(30, 5), None)
    raised = hold(budget, 5, 5)
    assert raised.amounts == (1, 35, 0)
    other = budget.reserve("b", TokenUsage(5, 5), None)
    assert other is not None
    assert other.amounts == (1, 10, 0)
    budget.settle(raised, TokenUsage(1, 1), None)
    with pytest.raises(BudgetSpent):
        budget.reserve("a", TokenUsage(140, 140), None)


@given(
    limit=st.integers(100, 10_000),
    max_usage=st.integers(1, 50),
    ratios=st.lists(st.integers(0, 80), min_size=1, max_size=200),
    maximum=st.integers(1, 64),
)
def test_a_limit_is_exceeded_at_most_by_the_excess_of_calls_in_flight(
    limit: int, max_usage: int, ratios: list[int], maximum: int
) -> None:
    """Servers may count up to eight times the bound."""
    budget = Budget(BudgetSettings(max_tokens=limit), Spending())
    flying: list[tuple[Reservation, int]] = []
    used = excess = 0
    for ratio in ratios:
        try:
            while (
                len(flying) < maximum
                and (reservation := budget.reserve("a", TokenUsage(max_usage, 0), None)) is not None
            ):
                flying.append((reservation, max_usage * ratio // 10))
        except BudgetSpent:
            break
        excess = max(excess, sum(max(0, took - reservation.amounts[1]) for reservation, took in flying))
        reservation, took = flying.pop(0)
        budget.settle(reservation, TokenUsage(took, 0), None)
        used += took
    used += sum(took for _, took in flying)
    assert used <= limit + excess
    assert excess <= 7 * max(max_usage, limit // 4)
