"""Faults on purpose: which request goes wrong, and how. A plan and a seed decide, so a serial run repeats.

A plan is a TOML file:

```toml
seed = 7              # decides every draw
retry_after_s = 60.0  # what Retry-After and the reset of a faked limit say
stall_s = 30.0        # how long a stalled connection hangs before it is dropped
clock_skew_s = 0.0    # the server's clock is ahead by this: Date and reset headers show it

[[rules]]
kind = "502"          # see the table of kinds
on = "any"            # any | graphql | rest | search | write
probability = 0.05    # of each request that the rule is about
limit = 10            # at most so often; left out: no limit

[[rules]]
kind = "secondary_403"
on = "graphql"
at = [3, 4]           # the 3rd and 4th GraphQL request, counted from 1
retry_after = true    # whether there is a Retry-After header

[[rules]]
kind = "502"
page_over = 50        # GraphQL queries with a larger first or last: a timeout of heavy queries
```

The first rule that strikes wins. A rule needs at least one of `probability`, `at` and `page_over`; with
`page_over` alone it strikes every such query.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from pairkit.config import Settings, load_settings

Scope = Literal["graphql", "rest", "search", "write"]


class Kind(StrEnum):
    """What goes wrong. Points are spent unless a limit is what is faked."""

    BAD_GATEWAY = "502"
    GATEWAY_TIMEOUT = "504"
    RATE_LIMITED = "rate_limited_200"  # REST has no such answer: it gets 403 with nothing remaining
    SECONDARY_403 = "secondary_403"
    SECONDARY_200 = "secondary_200"  # GraphQL only; REST gets the 403
    TOO_MANY = "too_many_429"
    PARTIAL = "partial"  # GraphQL only: some nodes are null, and an error says why; REST gets a 502
    TRUNCATED = "truncated"  # a whole HTTP answer, whose JSON breaks off
    DROPPED = "dropped"  # the connection closes before the answer or in its middle
    STALLED = "stalled"  # nothing comes, then the connection closes


class Rule(Settings):
    """One kind of fault and when it strikes."""

    kind: Kind  # what goes wrong
    # the requests that the rule is about; rest are those that read, write those that change something
    on: Literal["any", "graphql", "rest", "search", "write"] = "any"
    probability: float | None = Field(default=None, ge=0, le=1)  # how often such a request goes wrong
    at: tuple[int, ...] = ()  # which such requests go wrong, counted from 1
    # GraphQL queries whose first or last is larger go wrong
    page_over: int | None = Field(default=None, ge=0)
    limit: int | None = Field(default=None, ge=1)  # how often the rule strikes at most
    retry_after: bool = True  # whether a limit has a Retry-After header
    arrives: bool = False  # what was asked for is done all the same; only the answer is lost
    # the type of the error in rate_limited_200 and partial; unset: GitHub's usual one
    error_type: str | None = None

    @model_validator(mode="after")
    def _can_strike(self) -> Self:
        if self.probability is None and not self.at and self.page_over is None:
            raise ValueError("a rule needs probability, at or page_over")
        return self


class FaultPlan(Settings):
    """Every rule, and the figures that they share."""

    seed: int = 0  # decides every draw
    retry_after_s: float = Field(default=60.0, ge=0)  # what Retry-After and the reset of a faked limit say
    stall_s: float = Field(default=30.0, ge=0)  # how long a stalled connection hangs
    clock_skew_s: float = 0.0  # how far the server's clock is ahead
    rules: tuple[Rule, ...] = ()


def read_plan(path: Path) -> FaultPlan:
    """Read a plan from a TOML file.

    Raises:
        ConfigError: the file can't be read, or a key or value in it is wrong.
    """
    return load_settings(FaultPlan, file=path)


@dataclass(frozen=True)
class Fault:
    """One fault that strikes now."""

    rule: Rule
    draw: random.Random  # for what the fault itself leaves to chance


class Injector:
    """Decides for one request after another; safe to use from several threads."""

    def __init__(self, plan: FaultPlan) -> None:
        self._plan = plan
        self._seen: Counter[int] = Counter()  # by rule: requests that it is about
        self._struck: Counter[int] = Counter()
        self._lock = threading.Lock()

    def next_fault(self, scope: Scope, *, largest_page: int = 0) -> Fault | None:
        """The fault that strikes the next request, if any; `largest_page` is its largest first or last."""
        with self._lock:
            chosen: Fault | None = None
            for index, rule in enumerate(self._plan.rules):
                if rule.on not in {"any", scope}:
                    continue
                if rule.page_over is not None and largest_page <= rule.page_over:
                    continue
                # Every rule counts every request, so that one rule's strike does not shift another's draws.
                self._seen[index] += 1
                draw = random.Random(f"{self._plan.seed}:{index}:{self._seen[index]}")  # noqa: S311
                is_spent = rule.limit is not None and self._struck[index] >= rule.limit
                if chosen is None and not is_spent and self._strikes(rule, self._seen[index], draw):
                    self._struck[index] += 1
                    chosen = Fault(rule, draw)
            return chosen

    @staticmethod
    def _strikes(rule: Rule, request: int, draw: random.Random) -> bool:
        if request in rule.at:
            return True
        if rule.probability is not None:
            return draw.random() < rule.probability
        return not rule.at  # page_over alone
