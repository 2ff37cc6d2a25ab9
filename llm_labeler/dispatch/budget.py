"""What a run may spend: a call leaves only if it fits, with all that is in flight counted at its worst.

The promise: as long as no server counts more for a call than its bound (a token for each byte of the prompt,
and the token limit of the answer), no limit is exceeded. One that counts more is found out by its first
answer: calls to an LLM begin one at a time and double from round to round. Its bounds are raised by the
largest excess seen, stored answers of earlier sessions included. Calls in flight hold at most a quarter of
what is left, a single one apart, so that all a limit can be exceeded by is what the calls of a moment take
beyond their bounds.

Money is counted in whole picodollars, since sums of floats drift, and a limit is no place for that. Prices of
up to six decimals per million tokens are exact so; what is finer is rounded up, call by call.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction
from math import ceil

from llm_labeler.records import Prices, TokenUsage
from llm_labeler.settings import BudgetSettings
from pairkit.app.errors import ConfigError

PROMISE = (
    "the bound by which limits are kept. A server that counts more has its\n"
    "bounds raised for the rest of the run; calls under way hold at most a quarter\n"
    "of what is left."
)
_PICO = 10**12
_SHARE = 4  # calls in flight hold at most so much of what is left: a quarter
_NONE = (Fraction(1), Fraction(1), Fraction(1))

MOST_MISFITS = 1000  # so many questions in a row that find no room, and the rest is not tried

Amounts = tuple[int, int, int]  # requests, tokens, picodollars


MOST = 1 << 62  # of any amount that is kept; two such still fit SQLite's whole numbers


def picodollars(cost: float) -> int:
    """US dollars as whole picodollars, rounded up once the noise of floats is gone; `MOST` at most."""
    return min(MOST, -(-round(cost * 1e15) // 1000))


def money(cost: float | None) -> str:
    """US dollars for people; an unknown price is said to be one."""
    if cost is None:
        return "unknown"
    return "$0" if not cost else f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


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
        return Spending(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

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


def charge(usage: TokenUsage | None, cost: float | None, *, estimated: bool = False) -> Spending:
    """One attempt as spending."""
    if usage is None:
        return Spending(requests=1)
    money = 0 if cost is None else picodollars(cost)
    tokens = (usage.prompt_tokens, usage.completion_tokens)
    return Spending(1, *tokens, money, unpriced=int(cost is None), estimated=int(estimated))


class BudgetSpent(Exception):  # noqa: N818 - named after what happened
    """A call can't fit any more, whatever those in flight turn out to cost."""

    def __init__(self, limit: str) -> None:
        self.limit = limit
        super().__init__(f"{limit} leaves no room for the call")


def check_prices(settings: BudgetSettings, prices: Mapping[str, Prices], spent: Spending) -> None:
    """See that a limit in dollars can be kept at all; an unknown price is not zero."""
    if settings.max_cost is None:
        return
    unknown = sorted(llm for llm, price in prices.items() if price.cost(TokenUsage(1, 1)) is None)
    if unknown:
        name = f"llm.{unknown[0]}"
        raise ConfigError(
            f"max_cost (--max-cost) can't be kept: the price of {', '.join(unknown)} is unknown; give US "
            "dollars per million tokens, 0 for what is free: "
            f"settings={{'{name}.price_in': X, '{name}.price_out': Y}} (--set {name}.price_in=X "
            f"--set {name}.price_out=Y), or limit with max_tokens (--max-tokens)"
        )
    if spent.unpriced:
        raise ConfigError(
            f"max_cost (--max-cost) can't be kept: {spent.unpriced} earlier calls of this run had no known "
            "price; limit with max_tokens (--max-tokens), or begin in another work folder (--work)"
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room held for a call in flight."""

    llm: str
    amounts: Amounts  # what is held
    bound: Amounts  # the same before it was raised by what earlier calls took beyond theirs


class Budget:
    """The limits, what is spent, and what calls in flight may still spend."""

    _LIMITS = ("max_requests", "max_tokens", "max_cost")

    def __init__(self, settings: BudgetSettings, spent: Spending) -> None:
        """Begin from what earlier sessions spent."""
        cost = settings.max_cost
        in_pico = None if cost is None else int(Fraction(repr(cost)) * _PICO)
        self._limits = (settings.max_requests, settings.max_tokens, in_pico)
        self._spent = _amounts(spent)
        self._held: Amounts = (0, 0, 0)
        self._kept_back: Amounts = (0, 0, 0)  # of each limit, for what is asked later
        self._changed = asyncio.Event()  # what is held became less
        self._flying, self._settled = Counter[str](), Counter[str]()  # calls by LLM
        self._excess: dict[
            str, tuple[Fraction, Fraction, Fraction]
        ] = {}  # by LLM: most that one took of its bound

    def keep_back(self, share: float) -> None:
        """Leave a share of what is left for what is asked later; 0 for none."""
        requests, tokens, money = (
            0 if limit is None else ceil(max(0, limit - spent) * share)
            for limit, spent in zip(self._limits, self._spent, strict=True)
        )
        self._kept_back = requests, tokens, money

    def reserve(
        self, llm: str, bound: TokenUsage, cost: float | None, *, in_bulk: bool = False
    ) -> Reservation | None:
        """Hold room for a call."""
        if cost is None and self._limits[2] is not None:
            raise ConfigError(
                f"max_cost can't be kept: {llm}'s price is unknown; set its price_in and price_out"
            )
        plain = (1, bound.prompt_tokens + bound.completion_tokens, picodollars(cost or 0.0))
        wanted = self._raised(llm, plain)
        share = 1 if in_bulk else _SHARE
        fits_now = True
        for name, limit, spent, kept_back, held, amount in zip(
            self._LIMITS, self._limits, self._spent, self._kept_back, self._held, wanted, strict=True
        ):
            if limit is None or not amount:
                continue
            left = limit - spent - kept_back
            if amount > left:
                raise BudgetSpent(name)
            most = left if name == "max_requests" else left // share
            fits_now &= held == 0 or held + amount <= most
        if not fits_now or not (in_bulk or self._may_begin(llm, wanted)):
            return None
        self._held = _plus(self._held, wanted)
        self._flying[llm] += 1
        return Reservation(llm, wanted, plain)

    async def room(self, llm: str, bound: TokenUsage, cost: float | None) -> Reservation:
        """Hold room for a call, as soon as it fits; see `reserve`."""
        while (reservation := self.reserve(llm, bound, cost)) is None:
            await self.change()
        return reservation

    async def change(self) -> None:
        """Wait until a call of any LLM has ended."""
        self._changed.clear()
        await self._changed.wait()

    def settle(self, reservation: Reservation, actual: TokenUsage | None, cost: float | None) -> None:
        """Put what a call took in place of what was held for it."""
        self.release(reservation)
        taken = _amounts(charge(actual, cost))
        self._spent = _plus(self._spent, taken)
        if actual is not None:
            self._settled[reservation.llm] += 1
            self._learn(reservation.llm, reservation.bound, taken)

    def recall(self, llm: str, bound: Spending, taken: Spending) -> None:
        """Raise an LLM's bounds by what an earlier call took beyond its own."""
        self._learn(llm, _amounts(bound), _amounts(taken))

    @property
    def needs_bounds(self) -> bool:
        """Whether a limit depends on how many tokens a call takes."""
        return any(limit is not None for limit in self._limits[1:])

    def correct(self, counted: Spending, taken: Spending) -> None:
        """Put what an earlier session's calls took in place of the bound that they were counted at."""
        self._spent = _plus(_plus(self._spent, _amounts(counted), -1), _amounts(taken))
        self._changed.set()

    def write_off(self, reservation: Reservation) -> None:
        """Count a call that may go on as spent at its bound: nobody waits for what it takes."""
        self.release(reservation)
        self._spent = _plus(self._spent, reservation.bound)

    def release(self, reservation: Reservation) -> None:
        """Give back the room of a call that never left."""
        self._held = _plus(self._held, reservation.amounts, -1)
        self._flying[reservation.llm] -= 1
        self._changed.set()

    def _may_begin(self, llm: str, wanted: Amounts) -> bool:
        """Whether the LLM may have one more call in flight: where that matters, as many as it answered."""
        limits = any(
            limit is not None and amount for limit, amount in zip(self._limits[1:], wanted[1:], strict=True)
        )
        return not limits or self._flying[llm] < max(1, self._settled[llm])

    def _raised(self, llm: str, plain: Amounts) -> Amounts:
        one, tokens, money = (ceil(n * f) for n, f in zip(plain, self._excess.get(llm, _NONE), strict=True))
        return one, tokens, money

    def _learn(self, llm: str, bounds: Amounts, taken: Amounts) -> None:
        one, tokens, money = (
            max(known, Fraction(took, bound)) if bound else known
            for known, took, bound in zip(self._excess.get(llm, _NONE), taken, bounds, strict=True)
        )
        self._excess[llm] = one, tokens, money


def _amounts(spending: Spending) -> Amounts:
    return spending.requests, spending.tokens, spending.picodollars


def _plus(one: Amounts, other: Amounts, sign: int = 1) -> Amounts:
    return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]
