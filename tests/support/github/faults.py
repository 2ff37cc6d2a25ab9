"""Injected faults. A plan and its seed decide which request fails and how, so a serial run is repeatable.

A plan is a TOML file:

```toml
seed = 7
retry_after_s = 60.0  # value of Retry-After and of the reset of a faked rate limit
stall_s = 30.0        # seconds until a stalled connection is dropped
clock_skew_s = 0.0    # how far the server's clock is ahead, in Date and reset headers

[[rules]]
kind = "502"          # see `Kind`
probability = 0.05    # per request
limit = 10            # maximum number of faults; default: no limit

[[rules]]
kind = "secondary_403"
at = [3, 4]           # the 3rd and 4th request, counted from 1
retry_after = true    # whether there is a Retry-After header

[[rules]]
kind = "502"
page_over = 50        # only GraphQL queries with a larger first or last, as in timeouts of heavy queries
```

The first matching rule applies. A rule needs at least one of `probability`, `at` and `page_over`; with only
`page_over` it matches every such query.
"""

import json
import math
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

from pairkit.base.settings import Settings, load_settings


class Kind(StrEnum):
    """The kind of a fault. Points are spent unless a rate limit is faked."""

    BAD_GATEWAY = "502"
    GATEWAY_TIMEOUT = "504"
    RATE_LIMITED = "rate_limited_200"
    SECONDARY_403 = "secondary_403"
    TOO_MANY = "too_many_429"
    PARTIAL = "partial"  # some nodes are null, with an error
    TRUNCATED = "truncated"  # a complete HTTP response with incomplete JSON
    DROPPED = "dropped"  # the connection closes before or within the response
    STALLED = "stalled"  # no response, then the connection closes


class Rule(Settings):
    """One kind of fault and its conditions; see the module's docstring."""

    kind: Kind
    probability: float | None = None
    at: tuple[int, ...] = ()
    page_over: int | None = None
    limit: int | None = None
    retry_after: bool = True


class FaultPlan(Settings):
    """All rules and their common parameters; see the module's docstring."""

    seed: int = 0
    retry_after_s: float = 60.0
    stall_s: float = 30.0
    clock_skew_s: float = 0.0
    rules: tuple[Rule, ...] = ()


def read_plan(path):
    """Read a plan from a TOML file."""
    return load_settings(FaultPlan, config=path)


@dataclass(frozen=True)
class Fault:
    """The fault of one request."""

    rule: Rule
    draw: random.Random  # for random details of the fault


class Injector:
    """Chooses the fault of each request; thread-safe."""

    def __init__(self, plan):
        self._plan = plan
        self._seen = Counter()  # requests by rule
        self._struck = Counter()
        self._lock = threading.Lock()

    def next_fault(self, *, largest_page=0):
        """The fault of the next request, if any; `largest_page` is its largest first or last."""
        with self._lock:
            chosen = None
            for index, rule in enumerate(self._plan.rules):
                if rule.page_over is not None and largest_page <= rule.page_over:
                    continue
                # Every rule counts every request, so that a fault of one rule does not shift another's draws.
                self._seen[index] += 1
                draw = random.Random(f"{self._plan.seed}:{index}:{self._seen[index]}")
                is_spent = rule.limit is not None and self._struck[index] >= rule.limit
                if (
                    chosen is None
                    and not is_spent
                    and self._strikes(rule, self._seen[index], draw)
                ):
                    self._struck[index] += 1
                    chosen = Fault(rule, draw)
            return chosen

    @staticmethod
    def _strikes(rule, request, draw):
        if request in rule.at:
            return True
        if rule.probability is not None:
            return draw.random() < rule.probability
        return not rule.at  # page_over alone


class Delivery(Enum):
    """How a response is sent."""

    SENT = "sent"
    TRUNCATED = "truncated"
    DROPPED_BEFORE = "dropped before the answer"
    DROPPED_WITHIN = "dropped in the answer"
    STALLED = "stalled"


@dataclass
class Reply:
    """One HTTP response; `payload` is sent as JSON unless it is text."""

    status: int
    payload: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delivery: Delivery = Delivery.SENT

    def body(self):
        """The bytes to send."""
        if self.payload is None or isinstance(self.payload, str):
            return (self.payload or "").encode()
        # `replace`, because a lone surrogate in a dump can't be encoded in UTF-8.
        return json.dumps(
            self.payload, ensure_ascii=False, separators=(",", ":")
        ).encode(errors="replace")


_PARTIAL_SHARE = 4  # one of four nodes is null
# The query is executed, and its response damaged.
SPOILS_ANSWER = frozenset({Kind.PARTIAL, Kind.TRUNCATED})
# No points are spent.
FAKES_LIMIT = frozenset({Kind.RATE_LIMITED, Kind.SECONDARY_403, Kind.TOO_MANY})


def replacing_reply(fault, plan, quota, now):
    """The response of a fault that replaces the whole response."""
    kind = fault.rule.kind
    wait = (
        {"retry-after": str(math.ceil(plan.retry_after_s))}
        if fault.rule.retry_after
        else {}
    )
    if kind is Kind.GATEWAY_TIMEOUT:
        return Reply(
            504, "<html><body><h1>504 Gateway Time-out</h1></body></html>", _HTML
        )
    if kind is Kind.RATE_LIMITED:
        reset = math.ceil(now + plan.retry_after_s)
        return exhausted_reply(quota, reset=reset)
    if kind is Kind.SECONDARY_403:
        return Reply(403, {"message": _SECONDARY, "status": "403"}, wait)
    if kind is Kind.TOO_MANY:
        return Reply(429, {"message": _SECONDARY, "status": "429"}, wait)
    if kind is Kind.DROPPED:
        within = fault.draw.random() < 0.5
        return Reply(
            200, delivery=Delivery.DROPPED_WITHIN if within else Delivery.DROPPED_BEFORE
        )
    if kind is Kind.STALLED:
        return Reply(200, delivery=Delivery.STALLED)
    return Reply(502, "<html><body><h1>502 Bad Gateway</h1></body></html>", _HTML)


def exhausted_reply(quota, *, reset=None):
    """The response if the rate limit is exhausted."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-used": str(quota.limit)}
    if reset is not None:
        headers["x-ratelimit-reset"] = str(reset)
    message = "API rate limit exceeded for user ID 1."
    return Reply(
        200, {"errors": [{"type": "RATE_LIMITED", "message": message}]}, headers
    )


def spoil(reply, fault):
    """Damage a response in place."""
    if fault.rule.kind is Kind.TRUNCATED:
        reply.delivery = Delivery.TRUNCATED
        return
    answer = reply.payload
    _lose_nodes(answer.get("data"), fault.draw)
    error = {
        "message": "Something went wrong while executing your query. This may be the result of a timeout, "
        "or it could be a GitHub bug. Please include `E0E0:1F:0:0:0` when reporting this issue."
    }
    answer["errors"] = [*answer.get("errors", []), error]


_HTML = {"content-type": "text/html"}
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach "
    "out to GitHub Support for help, please include the request ID E0E0:1F:0:0:0."
)


def _lose_nodes(data, draw):
    """Set at least one node of each outermost list to null; without a list, one whole field."""
    lists = [nodes for nodes in _outermost_lists(data) if nodes]
    for nodes in lists:
        for position in draw.sample(
            range(len(nodes)), max(1, len(nodes) // _PARTIAL_SHARE)
        ):
            nodes[position] = None
    if lists or not isinstance(data, dict):
        return
    holder = next((value for value in data.values() if _has_objects(value)), data)
    fields = [key for key, value in holder.items() if isinstance(value, dict)]
    for key in draw.sample(
        fields, min(len(fields), max(1, len(fields) // _PARTIAL_SHARE))
    ):
        holder[key] = None


def _outermost_lists(value):
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key == "nodes" and isinstance(inner, list):
            yield inner
        else:
            yield from _outermost_lists(inner)


def _has_objects(value):
    return isinstance(value, dict) and any(
        isinstance(inner, dict) for inner in value.values()
    )
