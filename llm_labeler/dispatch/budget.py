"""The budget of a run, which all unfinished calls must fit into at their upper bounds.

The bound of a call is a token per byte of its prompt plus the token limit of its
answer. If a server counts more, the bounds of its LLM are raised by the largest excess,
including that of stored answers. The number of concurrent calls to an LLM starts at one
and doubles, so the first answer shows an excess. Unfinished calls together reserve at
most a quarter of the rest of the budget (a single call may reserve more), so a limit
can be exceeded only by the excess of a few calls.

Costs are whole picodollars, since sums of floats drift. Prices with up to six decimals
per million tokens are exact; finer ones are rounded up for each call.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction
from math import ceil
from operator import add, mul, sub
from typing import NamedTuple

from llm_labeler.records import Prices, StoredAnswer, TokenUsage
from llm_labeler.settings import BudgetSettings
from pairkit.base.errors import ConfigError

PROMISE = (
    "the upper bound that limits are checked against. If a server counts more, the\n"
    "bounds are raised; concurrent calls together reserve at most a quarter of the\n"
    "rest of the budget."
)
PICODOLLARS = 10**12  # in a dollar
# Unfinished calls together reserve at most the rest of the budget divided by this
# number.
_RESERVED_DIVISOR = 4
_NO_EXCESS = [Fraction(1)] * 3

# Consecutive questions that don't fit into the budget before a worker stops.
MAX_MISFITS = 1000
MAX_AMOUNT = 1 << 62  # the sum of two still fits SQLite's integers


class Amounts(NamedTuple):
    """What the limits are about."""

    requests: int = 0
    tokens: int = 0
    picodollars: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """The sums."""
        return Amounts(*map(add, self, other))

    def minus(self, other: Amounts) -> Amounts:
        """The differences."""
        return Amounts(*map(sub, self, other))


def picodollars(cost: float) -> int:
    """US dollars as whole picodollars, rounded up after removing float noise."""
    femtodollars = round(min(cost, MAX_AMOUNT / PICODOLLARS) * 1e15)
    return min(MAX_AMOUNT, -(-femtodollars // 1000))


def money(cost: float | None) -> str:
    """Format US dollars: cents, or four decimals below a dollar."""
    if cost is None:
        return "unknown"
    if not cost:
        return "$0"
    if cost < 0.0001:
        return "<$0.0001"
    return f"${cost:.2f}" if round(cost, 4) >= 1 else f"${cost:.4f}"


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of a number of calls."""

    requests: int = 0  # each attempt counts
    prompt_tokens: int = 0
    completion_tokens: int = 0
    picodollars: int = 0  # of calls with a known price
    unpriced: int = 0  # calls with an unknown price
    estimated: int = 0  # calls counted at their bound, as their usage is unknown

    def __add__(self, other: Spending) -> Spending:
        return Spending(*map(add, astuple(self), astuple(other)))

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def amounts(self) -> Amounts:
        """The part that limits are about."""
        return Amounts(self.requests, self.tokens, self.picodollars)

    @property
    def known_cost(self) -> float:
        """US dollars of the calls with a known price."""
        return self.picodollars / PICODOLLARS

    @property
    def cost(self) -> float | None:
        """US dollars; None if a price is unknown."""
        return None if self.unpriced else self.known_cost


UNBILLED = Spending(requests=1)


def charge_answer(answer: StoredAnswer) -> Spending:
    """The spending of an answered attempt."""
    usage = answer.reply.usage
    if usage is None:
        return UNBILLED
    return charge(usage, answer.cost, estimated=answer.estimated)


def charge(
    usage: TokenUsage, cost: float | None, *, estimated: bool = False
) -> Spending:
    """The spending of one attempt."""
    return Spending(
        requests=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        picodollars=picodollars(cost or 0.0),
        unpriced=int(cost is None),
        estimated=int(estimated),
    )


class BudgetSpent(Exception):  # noqa: N818 - named after the event
    """A call doesn't fit into the budget, even if unfinished calls cost nothing."""

    def __init__(self, limit: str) -> None:
        self.limit = limit
        super().__init__(f"{limit} has no room for the call")


def check_prices(
    settings: BudgetSettings, prices: Mapping[str, Prices], spent: Spending
) -> None:
    """Refuse a cost limit if a price is unknown."""
    if settings.max_cost is None:
        return
    unknown = sorted(
        llm for llm, price in prices.items() if price.cost(TokenUsage(1, 1)) is None
    )
    if unknown:
        name = f"llm.{unknown[0]}"
        raise ConfigError(
            f"--max-cost can't be checked: the price of {', '.join(unknown)} is"
            " unknown; give US dollars per million tokens, 0 if it is free,"
            f" as --set {name}.price_in=X and --set {name}.price_out=Y,"
            " or limit with --max-tokens"
        )
    if spent.unpriced:
        raise ConfigError(
            f"--max-cost can't be checked: the price of {spent.unpriced} earlier calls"
            " is unknown; limit with --max-tokens, or use another --work"
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """The reserved amounts of an unfinished call."""

    llm: str
    amounts: Amounts  # the bound, raised by the excess of earlier calls
    max_amounts: Amounts


class Budget:
    """The limits, the spending, and the reservations of unfinished calls."""

    _LIMITS = ("max_requests", "max_tokens", "max_cost")

    def __init__(self, settings: BudgetSettings, spent: Spending) -> None:
        max_picodollars = None
        if settings.max_cost is not None:
            max_picodollars = int(Fraction(repr(settings.max_cost)) * PICODOLLARS)
        self._limits = (settings.max_requests, settings.max_tokens, max_picodollars)
        self.spent = spent.amounts
        self._reserved = Amounts()
        self._kept_back = Amounts()  # for a later stage
        self._freed = asyncio.Event()  # reservations became less
        # Calls by LLM.
        self._in_flight = Counter[str]()
        self._settled = Counter[str]()
        # By LLM: the largest ratio of each used amount to the bound of a call.
        self._excess: dict[str, list[Fraction]] = {}

    def keep_back(self, share: float) -> None:
        """Keep a share of the rest of the budget for a later stage; 0 for none."""
        kept_back = []
        for limit, spent in zip(self._limits, self.spent, strict=True):
            left = 0 if limit is None else max(0, limit - spent)
            kept_back.append(ceil(left * share))
        self._kept_back = Amounts(*kept_back)

    def reserve(
        self,
        llm: str,
        max_usage: TokenUsage,
        cost: float | None,
        *,
        in_bulk: bool = False,
    ) -> Reservation | None:
        """Reserve the bound of a call; None if it has to wait for other calls."""
        max_amounts = Amounts(1, max_usage.total, picodollars(cost or 0.0))
        excess = self._excess.get(llm, _NO_EXCESS)
        amounts = Amounts(*map(ceil, map(mul, max_amounts, excess)))
        fits = self._fits(amounts, divisor=1 if in_bulk else _RESERVED_DIVISOR)
        if not fits or not (in_bulk or self._may_begin(llm, amounts)):
            return None
        self._reserved = self._reserved.plus(amounts)
        self._in_flight[llm] += 1
        return Reservation(llm, amounts, max_amounts)

    def _fits(self, amounts: Amounts, divisor: int) -> bool:
        """Whether a call fits beside the unfinished calls."""
        used = self.spent.plus(self._kept_back)
        fits = True
        for index, name in enumerate(self._LIMITS):
            limit = self._limits[index]
            amount = amounts[index]
            reserved = self._reserved[index]
            if limit is None or not amount:
                continue
            left = limit - used[index]
            if amount > left:
                raise BudgetSpent(name)
            allowed = left if name == "max_requests" else left // divisor
            if reserved and reserved + amount > allowed:
                fits = False
        return fits

    async def wait_and_reserve(
        self, llm: str, max_usage: TokenUsage, cost: float | None
    ) -> Reservation:
        """Reserve the bound of a call as soon as it fits; see `reserve`."""
        while (reservation := self.reserve(llm, max_usage, cost)) is None:
            await self.wait_for_release()
        return reservation

    async def wait_for_release(self) -> None:
        """Wait until a call of any LLM has ended."""
        self._freed.clear()
        await self._freed.wait()

    def settle(self, reservation: Reservation, spent: Spending) -> None:
        """Replace a reservation by the spending of the call."""
        self.release(reservation)
        self.spent = self.spent.plus(spent.amounts)
        if spent != UNBILLED:
            self._settled[reservation.llm] += 1
            self.raise_bounds(reservation.llm, reservation.max_amounts, spent.amounts)

    @property
    def needs_bounds(self) -> bool:
        """Whether tokens or cost are limited."""
        return any(limit is not None for limit in self._limits[1:])

    def correct(self, counted: Spending, used: Spending) -> None:
        """Replace the counted bound of an earlier session's calls by their usage."""
        self.spent = self.spent.minus(counted.amounts).plus(used.amounts)
        self._freed.set()

    def write_off(self, reservation: Reservation) -> None:
        """Count a call whose result is not awaited at its bound."""
        self.release(reservation)
        self.spent = self.spent.plus(reservation.max_amounts)

    def release(self, reservation: Reservation) -> None:
        """Remove a reservation."""
        self._reserved = self._reserved.minus(reservation.amounts)
        self._in_flight[reservation.llm] -= 1
        self._freed.set()

    def raise_bounds(self, llm: str, bounds: Amounts, used: Amounts) -> None:
        """Raise an LLM's bounds by the excess of a call."""
        excess = [*self._excess.get(llm, _NO_EXCESS)]
        for index, bound in enumerate(bounds):
            if bound:
                excess[index] = max(excess[index], Fraction(used[index], bound))
        self._excess[llm] = excess

    def _may_begin(self, llm: str, amounts: Amounts) -> bool:
        """Whether one more concurrent call is allowed.

        With limits, there are at most as many as were answered.
        """
        _, max_tokens, max_picodollars = self._limits
        spends_tokens = max_tokens is not None and amounts.tokens
        spends_money = max_picodollars is not None and amounts.picodollars
        if not spends_tokens and not spends_money:
            return True
        return self._in_flight[llm] < max(1, self._settled[llm])
