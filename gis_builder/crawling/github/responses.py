"""Classifies responses.

GitHub reports the same condition in several ways (an exhausted quota is an HTTP 200 or a 403), so all of them
are mapped to one `AnswerKind` here, and the client handles only these kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from msgspec import Raw
from msgspec.json import Decoder

from gis_builder.store import RateLimit
from gis_builder.store.decoding import Malformed, Node, decode
from pairkit.base.printable import one_line

Headers = Mapping[str, str]  # names in lower case

_INTEGER = re.compile(r"\s*-?[0-9]{1,12}\s*", re.ASCII)
_MAX_DATE_CHARS = 100
_MAX_SHOWN = 20  # errors of one response
_HEAVY_TYPES = {"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED", "TIMEOUT"}
_HEAVY_WORDS = (
    "something went wrong while executing your query",
    "may be the result of a timeout",
    "couldn't respond to your request in time",
    "resource limits",
)
_LIMIT_TYPES = {"RATE_LIMITED", "RATE_LIMIT"}
_DENIED_TYPES = {"FORBIDDEN", "INSUFFICIENT_SCOPES", "SAML_FORBIDDEN"}
_HIDDEN_TYPES = {*_DENIED_TYPES, "NOT_FOUND"}
_TRANSIENT_TYPES = {"INTERNAL", "SERVICE_UNAVAILABLE", "LOADING"}
_LIMIT_WORDS = ("rate limit exceeded", "secondary rate limit", "abuse")


class AnswerKind(StrEnum):
    """The kinds of responses that the client handles differently."""

    OK = "ok"
    PARTIAL = "partial"  # GraphQL: data, and errors for the missing parts
    RATE_LIMITED = "rate_limited"  # the quota is exhausted, or too many requests
    TOO_HEAVY = "too_heavy"  # repeat with a smaller batch
    TRANSIENT = "transient"  # retry
    AUTH = "auth"  # the token is rejected
    FORBIDDEN = "forbidden"  # the token is valid but has no access
    NOT_FOUND = "not_found"
    DAMAGED = "damaged"  # not a whole response to this query; retry
    BAD_REPLY = "bad_reply"  # a retry would give the same response


@dataclass(frozen=True)
class GraphQLError:
    """One error of a GraphQL response."""

    path: tuple[str | int, ...]
    type: str
    message: str

    @property
    def is_heavy(self) -> bool:
        """Whether the server dropped this part because of its size."""
        lower = self.message.lower()
        return self.type in _HEAVY_TYPES or any(
            phrase in lower for phrase in _HEAVY_WORDS
        )

    @property
    def needs_retry(self) -> bool:
        """Whether its part must be requested again; otherwise it doesn't exist or is not accessible."""
        return self.is_heavy or self.type not in _HIDDEN_TYPES


@dataclass(frozen=True)
class QueryAnswer:
    """A classified response."""

    kind: AnswerKind
    data: Any = None  # GraphQL: a value for each alias
    errors: tuple[GraphQLError, ...] = ()
    wait_s: float | None = None  # requested by the server; None if it gives no time
    message: str = ""
    has_response: bool = True  # False: the connection failed
    rate_limit: RateLimit | None = None
    cost: int = 1  # points
    status: int | None = None  # HTTP status; None without a response


class _Extensions(Node):
    code: str = ""


class _Error(Node):
    message: str = ""
    type: str | None = None
    path: list[str | int] | None = None
    extensions: _Extensions | None = None


class _GraphQLBody(Node):
    data: dict[str, Raw] | None = None
    errors: list[_Error] | None = None


class _MessageBody(Node):
    message: str = ""


_GRAPHQL_BODY = Decoder(_GraphQLBody)
_MESSAGE_BODY = Decoder(_MessageBody)
_KINDS = {
    401: AnswerKind.AUTH,
    **dict.fromkeys((404, 410, 451), AnswerKind.NOT_FOUND),
    **dict.fromkeys((413, 502, 504), AnswerKind.TOO_HEAVY),
    **dict.fromkeys(
        (408, 425, 500, 503, 520, 521, 522, 523, 524), AnswerKind.TRANSIENT
    ),
}


def classify(status: int, headers: Headers, body: bytes) -> QueryAnswer:
    """Classify a response."""
    answer = _classify(status, headers, body)
    return replace(answer, rate_limit=_rate_limit(headers), status=status)


def _classify(status: int, headers: Headers, body: bytes) -> QueryAnswer:
    if 200 <= status < 300:
        return _classify_success(headers, body)
    message = f"HTTP {status} {_message(body)}".strip()
    if status in (403, 429):
        return _classify_refusal(status, headers, message)
    kind = _KINDS.get(status, AnswerKind.BAD_REPLY)
    return QueryAnswer(kind, wait_s=_retry_after(headers), message=message)


def requested_wait_s(headers: Headers) -> float | None:
    """Seconds to wait: `retry-after`, else the time to the reset of an exhausted quota."""
    after = _retry_after(headers)
    if after is not None:
        return after
    if not _is_spent(headers):
        return None
    reset = _number(headers.get("x-ratelimit-reset"))
    now = _http_date(headers.get("date"))
    # The date is truncated to whole seconds, so this is an upper bound.
    return None if reset is None or now is None else max(0.0, reset - now)


def _classify_success(headers: Headers, body: bytes) -> QueryAnswer:
    try:
        parsed = decode(body, _GRAPHQL_BODY)
    except Malformed as error:
        return damaged(f"not a GraphQL response ({error})")
    errors = tuple(map(_error, parsed.errors or ()))
    data = parsed.data
    if not errors:
        if not data:
            return damaged("a response without GraphQL data")
        return QueryAnswer(AnswerKind.OK, data=data)
    message = one_line("; ".join(error.message for error in errors[:_MAX_SHOWN]))
    types = {error.type for error in errors}
    if types & _LIMIT_TYPES or _names_limit(message):
        wait_s = requested_wait_s(headers)
        return QueryAnswer(AnswerKind.RATE_LIMITED, wait_s=wait_s, message=message)
    if data and any(bytes(value) != b"null" for value in data.values()):
        return QueryAnswer(
            AnswerKind.PARTIAL, data=data, errors=errors, message=message
        )
    kind = _kind_of(errors, types)
    if kind is AnswerKind.BAD_REPLY:
        message = f"the server refused the query: {message}"
    return QueryAnswer(kind, errors=errors, message=message)


def damaged(message: str) -> QueryAnswer:
    """An invalid response; a retry may succeed."""
    return QueryAnswer(AnswerKind.DAMAGED, message=message)


def _names_limit(message: str) -> bool:
    lower = message.lower()
    return any(phrase in lower for phrase in _LIMIT_WORDS)


def _kind_of(errors: Iterable[GraphQLError], types: Set[str]) -> AnswerKind:
    """The kind of a response that has errors but no data."""
    if any(error.is_heavy for error in errors):
        return AnswerKind.TOO_HEAVY
    if types & _DENIED_TYPES:
        return AnswerKind.FORBIDDEN
    if "NOT_FOUND" in types:
        return AnswerKind.NOT_FOUND
    if types & _TRANSIENT_TYPES:
        return AnswerKind.TRANSIENT
    return AnswerKind.BAD_REPLY


def _classify_refusal(status: int, headers: Headers, message: str) -> QueryAnswer:
    """Classify 403 and 429: a rate limit, or no access."""
    wait_s = requested_wait_s(headers)
    is_limit = status == 429 or wait_s is not None or _is_spent(headers)
    kind = AnswerKind.FORBIDDEN
    if is_limit or _names_limit(message):
        kind = AnswerKind.RATE_LIMITED
    return QueryAnswer(kind, wait_s=wait_s, message=message)


def _is_spent(headers: Headers) -> bool:
    """Whether the quota is exhausted."""
    return headers.get("x-ratelimit-remaining", "").strip() == "0"


def _message(body: bytes) -> str:
    try:
        return one_line(decode(body, _MESSAGE_BODY).message)
    except Malformed:  # such as an HTML page of a gateway
        return ""


def _error(raw: _Error) -> GraphQLError:
    return GraphQLError(
        path=tuple(raw.path or ()),
        type=one_line(raw.type or (raw.extensions.code if raw.extensions else "")),
        message=one_line(raw.message) or "error without a message",
    )


def _rate_limit(headers: Headers) -> RateLimit | None:
    known = []
    for name in ("limit", "remaining", "reset"):
        value = _number(headers.get(f"x-ratelimit-{name}"))
        if value is None:
            return None
        known.append(max(0, int(value)))
    return RateLimit(*known)


def _retry_after(headers: Headers) -> float | None:
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    then = _http_date(value)
    now = _http_date(headers.get("date"))
    return None if then is None or now is None else max(0.0, then - now)


def _number(text: str | None) -> float | None:
    return float(text) if text and _INTEGER.fullmatch(text) else None


def _http_date(text: str | None) -> float | None:
    with suppress(ValueError, OverflowError, TypeError):
        return parsedate_to_datetime((text or "")[:_MAX_DATE_CHARS]).timestamp()
    return None
