"""What a run may spend: a call leaves only if it fits, with all that is in flight counted at its worst.

Money is counted in whole picodollars, since sums of floats drift, and a limit is no place for that. Prices of
up to six decimals per million tokens are exact so; what is finer is rounded up, call by call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from llm_labeler.provider import Prices
from llm_labeler.records import Usage
from llm_labeler.settings import BudgetSettings
from pairkit.errors import ConfigError

_PICO = 10**12


def picodollars(cost: float) -> int:
    """US dollars as whole picodollars, rounded up once the noise of float arithmetic is gone."""
    return -(-round(cost * 1e15) // 1000)


@dataclass(frozen=True, slots=True)
class Spending:
    """What calls have cost so far."""

    requests: int = 0  # each attempt is one
    prompt_tokens: int = 0
    completion_tokens: int = 0
    picodollars: int = 0  # of the calls whose price is known
    unpriced: int = 0  # calls that were, or may have been, charged at a price that nobody knows
    estimated: int = 0  # calls counted at their bound, since nobody told what they took

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.picodollars + other.picodollars,
            self.unpriced + other.unpriced,
            self.estimated + other.estimated,
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def known_cost(self) -> float:
        """US dollars of the calls whose price is known."""
        return self.picodollars / _PICO

    @property
    def cost(self) -> float | None:
        """US dollars; None where part of it can't be known."""
        return None if self.unpriced else self.known_cost


def charge(usage: Usage | None, cost: float | None, *, estimated: bool = False) -> Spending:
    """One attempt as spending.

    Args:
        usage: What it took; None: nothing is charged but the request.
        cost: US dollars; None: the price is unknown.
        estimated: The usage is a bound that nobody confirmed.
    """
    if usage is None:
        return Spending(requests=1)
    money = 0 if cost is None else picodollars(cost)
    tokens = (usage.prompt_tokens, usage.completion_tokens)
    return Spending(1, *tokens, money, unpriced=int(cost is None), estimated=int(estimated))


class BudgetSpent(Exception):  # noqa: N818 - named after what happened
    """A call can't fit any more, whatever those in flight turn out to cost.

    Attributes:
        limit: `max_cost`, `max_tokens` or `max_requests`.
    """

    def __init__(self, limit: str) -> None:
        self.limit = limit
        super().__init__(f"{limit} leaves no room for the call")


def check_prices(settings: BudgetSettings, prices: Mapping[str, Prices], spent: Spending) -> None:
    """See that a limit in dollars can be kept at all; an unknown price is not zero.

    Args:
        settings: The limits.
        prices: By LLM, all that will be asked.
        spent: What earlier sessions of the run spent.

    Raises:
        ConfigError: `max_cost` is set and a price is unknown; names the LLMs and what to set.
    """
    if settings.max_cost is None:
        return
    unknown = sorted(llm for llm, price in prices.items() if price.cost(Usage(1, 1)) is None)
    if unknown:
        raise ConfigError(
            f"--max-cost can't be kept: the price of {', '.join(unknown)} is unknown; set price_in and "
            f"price_out (US dollars per million tokens) under [llm.{unknown[0]}], or local = true if it runs "
            "on this machine, or limit with --max-tokens"
        )
    if spent.unpriced:
        raise ConfigError(
            f"--max-cost can't be kept: {spent.unpriced} earlier calls of this run had no known price; "
            "limit with --max-tokens, or begin in another folder"
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room held for a call in flight."""

    amounts: tuple[int, int, int]  # requests, tokens, picodollars


class Budget:
    """The limits, what is spent, and what calls in flight may still spend."""

    _LIMITS = ("max_requests", "max_tokens", "max_cost")

    def __init__(self, settings: BudgetSettings, spent: Spending) -> None:
        """Begin from what earlier sessions spent."""
        cost = settings.max_cost
        in_pico = None if cost is None else int(Fraction(repr(cost)) * _PICO)
        self._limits = (settings.max_requests, settings.max_tokens, in_pico)
        self._spent = [spent.requests, spent.tokens, spent.picodollars]
        self._held = [0, 0, 0]

    def reserve(self, bound: Usage, cost: float | None) -> Reservation | None:
        """Hold room for a call.

        Args:
            bound: The most tokens it can take.
            cost: The most US dollars it can cost; None: unknown.

        Returns:
            The reservation; None if it does not fit now, but may once a call in flight has ended.

        Raises:
            BudgetSpent: it can't fit any more.
            ConfigError: there is a limit in dollars and the price is unknown.
        """
        if cost is None and self._limits[2] is not None:
            raise ConfigError("--max-cost can't be kept: a price is unknown; set price_in and price_out")
        wanted = (1, bound.prompt_tokens + bound.completion_tokens, picodollars(cost or 0.0))
        fits_now = True
        for name, limit, spent, held, amount in zip(
            self._LIMITS, self._limits, self._spent, self._held, wanted, strict=True
        ):
            if limit is None or not amount:
                continue
            if spent + amount > limit:
                raise BudgetSpent(name)
            fits_now &= spent + held + amount <= limit
        if not fits_now:
            return None
        self._held = [held + amount for held, amount in zip(self._held, wanted, strict=True)]
        return Reservation(wanted)

    def settle(self, reservation: Reservation, actual: Usage | None, cost: float | None) -> None:
        """Put what a call took in place of what was held for it.

        Args:
            reservation: The room that was held.
            actual: Tokens charged; None: nothing but the request.
            cost: US dollars charged; None: unknown, which no limit in dollars lets happen.
        """
        self.release(reservation)
        spent = charge(actual, cost)
        self._spent[0] += spent.requests
        self._spent[1] += spent.tokens
        self._spent[2] += spent.picodollars

    def release(self, reservation: Reservation) -> None:
        """Give back the room of a call that never left."""
        self._held = [held - amount for held, amount in zip(self._held, reservation.amounts, strict=True)]
