"""Sends HTTP requests and classifies their responses: each to one server only, with a deadline and a size limit.

The exceptions of `requests` contain the request, whose headers contain the token. They are not re-raised and
never become the cause or context of our errors; only their class names are reported.

GitHub reports the same condition in several ways (an exhausted quota is an HTTP 200 or a 403), so all of them
are mapped to one `AnswerKind`, and the client handles only these kinds.
"""

from __future__ import annotations

import io
import re
import threading
import time
import zlib
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cache
from http.client import HTTPResponse
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from msgspec import Raw
from msgspec.json import Decoder
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from gis_builder.crawling.github.access_tokens import Token
from gis_builder.store import RateLimit
from gis_builder.store.decoding import Malformed, Node, decode
from pairkit.base.printable import one_line
from pairkit.base.system.address import Address

Headers = Mapping[str, str]  # names in lower case

# A hundred comments of the maximum length with every character escaped are 40 MB.
_MAX_BYTES = 64 << 20
_CHUNK = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS
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
    message: str = ""  # of a response without data


_GRAPHQL_BODY = Decoder(_GraphQLBody)
_KINDS = {
    401: AnswerKind.AUTH,
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
        return one_line(decode(body, _GRAPHQL_BODY).message)
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


class _LimitedReader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        # A negative length of a chunk would be read without a limit.
        if size is None or size < 0:
            raise OSError("read without a limit")
        return super().read(size)


class _Response(HTTPResponse):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _LimitedReader(self.fp.detach())


@cache
def _limited(connection: type) -> type:
    return type(connection.__name__, (connection,), {"response_class": _Response})


class _Adapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        """See `HTTPAdapter`; the pool's connections read with `_LimitedReader`."""
        pool: Any = super().get_connection_with_tls_context(*args, **options)
        pool.ConnectionCls = _limited(type(pool).ConnectionCls)
        return pool


class Exchange:
    """Sends requests to one server with one token, over a persistent connection."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address = address
        self._url = address.join("/graphql")
        self._token = token
        self._timeout_s = timeout_s
        self._session = _open_session(address)

    def post(self, body: bytes) -> QueryAnswer:
        """Post a query as JSON; returns the classified response, or the reason why there is none."""
        answer: Future[QueryAnswer] = Future()
        # Timeouts of `requests` hold for each read. A late exchange ends in its own thread, without effect.
        threading.Thread(
            target=self._answer, args=(answer, self._session, body), daemon=True
        ).start()
        with suppress(TimeoutError):
            return answer.result(self._timeout_s)
        self.close()
        self._session = _open_session(self._address)
        return _LATE

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _answer(
        self, answer: Future[QueryAnswer], session: requests.Session, body: bytes
    ) -> None:
        try:
            answer.set_result(self._send(session, body))
        except requests.ReadTimeout:
            answer.set_result(_LATE)
        except (requests.RequestException, HTTPError) as error:
            message = f"the connection failed ({type(error).__name__})"
            answer.set_result(
                QueryAnswer(AnswerKind.TRANSIENT, message=message, has_response=False)
            )
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            answer.set_exception(error)

    def _send(self, session: requests.Session, body: bytes) -> QueryAnswer:
        end = time.monotonic() + self._timeout_s
        # A host may have several addresses, so an attempt to connect gets a part of the time.
        connect_timeout_s = self._timeout_s / 4
        with session.post(
            self._url,
            data=body,
            headers={"Accept": "application/json", "Content-Type": "application/json"},
            auth=self._token,
            timeout=(connect_timeout_s, self._timeout_s),
            allow_redirects=False,
            stream=True,
        ) as response:
            received = {
                name.lower(): self._token.mask(value)
                for name, value in response.headers.items()
            }
            encoding = received.get("content-encoding", "")
            content = _decompress(_read_body(response, end), encoding)
            if isinstance(content, QueryAnswer):
                return content
            # The server may have echoed the token.
            body = self._token.mask_bytes(content)
            return classify(response.status_code, received, body)


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None; otherwise `requests` prepares the redirected request, although it does not send it."""


def _open_session(address: Address) -> requests.Session:
    """A session without cookies and redirects."""
    session = _Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"User-Agent": "aoe-toolkit", "Accept-Encoding": "gzip"})
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter())
    session.trust_env = not address.is_loopback  # no proxy for this machine
    return session


def _read_body(response: requests.Response, end: float) -> bytes:
    """Read the encoded body; stops above the size limit and at the deadline."""
    body = bytearray()
    while len(body) <= _MAX_BYTES and (
        chunk := response.raw.read(_CHUNK, decode_content=False)
    ):
        body += chunk
        # An exception, because a truncated body whose length is unknown would look complete.
        if time.monotonic() > end:
            raise requests.ReadTimeout
    return bytes(body)


def _decompress(body: bytes, encoding: str) -> bytes | QueryAnswer:
    """Decompress a body, at most up to the size limit."""
    encoding = encoding.strip().lower()
    if encoding in ("gzip", "x-gzip"):
        decompressor = zlib.decompressobj(_GZIP)
        try:
            body = decompressor.decompress(body, _MAX_BYTES + 1)
        except zlib.error:
            return damaged("damaged gzip data")
        if len(body) <= _MAX_BYTES and not decompressor.eof:
            return damaged("truncated gzip data")
    elif encoding not in ("", "identity"):
        return damaged("an encoding that was not requested")
    return body if len(body) <= _MAX_BYTES else _TOO_LONG


# A query that timed out may succeed at half its size.
_LATE = QueryAnswer(AnswerKind.TOO_HEAVY, message="no response in time")
_TOO_LONG = QueryAnswer(
    AnswerKind.TOO_HEAVY, message=f"a response of more than {_MAX_BYTES >> 20} MiB"
)
