"""What each kind of fault looks like to a client."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from gis_builder._emulator.faults import Fault, FaultPlan, Kind, Scope
from gis_builder._emulator.limits import Standing
from gis_builder._emulator.reply import Fate, Reply

_DOCUMENTATION = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
_PARTIAL_SHARE = 4  # one node in so many is lost

# Of these the query or route is really executed, and its answer is spoilt on the way out.
SPOILS_ANSWER = frozenset({Kind.PARTIAL, Kind.TRUNCATED})
# Of these nothing is spent: the server says that a limit is reached.
FAKES_LIMIT = frozenset({Kind.RATE_LIMITED, Kind.SECONDARY_403, Kind.SECONDARY_200, Kind.TOO_MANY})


def replacing_reply(fault: Fault, plan: FaultPlan, scope: Scope, standing: Standing, now: float) -> Reply:
    """The answer in place of the true one, for faults that leave nothing of it.

    Args:
        fault: What strikes.
        plan: Holds the figures that the faults share.
        scope: What kind of request it is.
        standing: Towards the token's limit.
        now: Unix time by the server's clock.
    """
    kind = fault.rule.kind
    wait = {"retry-after": str(math.ceil(plan.retry_after_s))} if fault.rule.retry_after else {}
    if kind is Kind.GATEWAY_TIMEOUT:
        return Reply(504, "<html><body><h1>504 Gateway Time-out</h1></body></html>", _HTML)
    if kind is Kind.RATE_LIMITED:
        reset = math.ceil(now + plan.retry_after_s)
        return exhausted_reply(scope, standing, reset=reset, error_type=fault.rule.error_type)
    if kind is Kind.SECONDARY_200 and scope == "graphql":
        return Reply(200, {"errors": [{"type": "RATE_LIMITED", "message": _SECONDARY}]}, wait)
    if kind in {Kind.SECONDARY_403, Kind.SECONDARY_200}:
        return Reply(403, _message(_SECONDARY, 403), wait)
    if kind is Kind.TOO_MANY:
        return Reply(429, _message(_SECONDARY, 429), wait)
    if kind is Kind.DROPPED:
        within = fault.draw.random() < 0.5
        return Reply(200, fate=Fate.DROPPED_WITHIN if within else Fate.DROPPED_BEFORE)
    if kind is Kind.STALLED:
        return Reply(200, fate=Fate.STALLED)
    return Reply(502, "<html><body><h1>502 Bad Gateway</h1></body></html>", _HTML)


def exhausted_reply(
    scope: Scope, standing: Standing, *, reset: int | None = None, error_type: str | None = None
) -> Reply:
    """Nothing is left of the limit: 200 with an error from GraphQL, 403 from REST."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-used": str(standing.limit)}
    if reset is not None:
        headers["x-ratelimit-reset"] = str(reset)
    message = "API rate limit exceeded for user ID 1."
    if scope == "graphql":
        return Reply(200, {"errors": [{"type": error_type or "RATE_LIMITED", "message": message}]}, headers)
    return Reply(403, _message(message, 403), headers)


def spoil(reply: Reply, fault: Fault) -> None:
    """Take some of a true answer away, in place."""
    if fault.rule.kind is Kind.TRUNCATED:
        reply.fate = Fate.TRUNCATED
        return
    answer = reply.payload
    _lose_nodes(answer.get("data"), fault.draw)
    error: dict[str, Any] = {
        "message": "Something went wrong while executing your query. This may be the result of a timeout, "
        "or it could be a GitHub bug. Please include `E0E0:1F:0:0:0` when reporting this issue."
    }
    if fault.rule.error_type:
        error = {"type": fault.rule.error_type, **error}
    answer["errors"] = [*answer.get("errors", []), error]


_HTML = {"content-type": "text/html"}
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach "
    "out to GitHub Support for help, please include the request ID E0E0:1F:0:0:0."
)


def _message(text: str, status: int) -> dict[str, str]:
    return {"documentation_url": _DOCUMENTATION, "message": text, "status": str(status)}


def _lose_nodes(data: Any, draw: random.Random) -> None:
    """Null at least one node of each outermost list; where there is no list, one whole field."""
    lists = [nodes for nodes in _outermost_lists(data) if nodes]
    for nodes in lists:
        for position in draw.sample(range(len(nodes)), max(1, len(nodes) // _PARTIAL_SHARE)):
            nodes[position] = None
    if lists or not isinstance(data, dict):
        return
    holder = next((value for value in data.values() if _has_objects(value)), data)
    fields = [key for key, value in holder.items() if isinstance(value, dict)]
    for key in draw.sample(fields, min(len(fields), max(1, len(fields) // _PARTIAL_SHARE))):
        holder[key] = None


def _outermost_lists(value: Any) -> Iterator[list[Any]]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key == "nodes" and isinstance(inner, list):
            yield inner
        else:
            yield from _outermost_lists(inner)


def _has_objects(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values())
