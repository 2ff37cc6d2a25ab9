"""Error responses and their causes: codes first, then words, then statuses, which gateways mix up."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar

from pairkit.base.printable import one_line

_MAX_BODY = 1 << 20  # bytes that are parsed
_MAX_VALUES = 500_000  # of a JSON text; an empty list takes 25 times its size in memory
_MAX_UPSTREAM = 500  # characters of the upstream's error that a gateway quotes
_MAX_CODE = 64  # characters of a code

# What a refusal is about: the account's credit, the key, the model or address, the token limit of answers,
# the question, or an answer that the server discarded. Empty: not known.
Cause = Literal["account", "key", "model", "limit", "question", "answer", ""]


@dataclass(frozen=True, slots=True)
class _Rule:
    """Words of codes and messages that show a cause, and the statuses that they are trusted with."""

    cause: Cause
    statuses: frozenset[int]
    words: re.Pattern[str]


def _rule(cause: Cause, statuses: Iterable[int], *words: str) -> _Rule:
    pattern = re.compile("|".join(words), re.IGNORECASE)
    return _Rule(cause, frozenset(statuses), pattern)


_OF_REQUESTS = {400, 422}
_OF_TEXTS = {400, 403, 413, 422, 451, 498}
_LACKING = (
    r"(?:not enough|insufficient|out of|no|any|all available|exceeded \w+ \w+ included)"
)
# In this order: a filter may add that no credits were charged, or quote the key. GLM's codes are numbers.
_RULES = (
    _rule(
        "limit",
        _OF_REQUESTS,
        r"max_(?:completion_|output_)?tokens\W{0,3}(?:\S+ ){0,3}(?:is )?(?:too (?:large|high)|at most|> \d)",
        r"(?:invalid|range of) max_(?:completion_|output_)?tokens",
    ),
    _rule(
        "question",
        _OF_TEXTS | {500},
        r"context.{0,3}(?:length|window|size|limit)|(?:maximum|max) (?:context|input|prompt|sequence)",
        r"(?:prompt|input|text|request|tokens) (?:is |was |are )?too (?:long|large)",
        r"too many (?:input |prompt )?tokens|inputs?`? tokens|input length|above max length|超长|过长",
        r"reduce (?:the |your )?(?:length|prompt|message)",
    ),
    _rule("question", {429}, "request too large|context length exceeded"),
    _rule(
        "question",
        _OF_TEXTS,
        r"\A(?:1261|1301) |content.{0,12}(?:polic|filter|risk)|policy ?violation|\bflagged\b|moderation",
        r"safety(?!.?setting)|(?<!case.)sensitive|inappropriate|usage guidelines|data ?inspection|unsafe",
        r"(?:prompt|content|input) (?:was |is |has been )?(?:blocked|rejected|prohibited)|invalid prompt",
        r"high risk|violat\w+ .{0,30}(?:polic|terms|guideline)|敏感|不安全|违规|违法|审核",
    ),
    _rule(
        "account",
        range(400, 430),
        r"\A(?:111[0-3]|1121|1304|1308|1309|1310) |free tier .{0,40}exhausted|arrearage|overdue",
        r"(?:credit|account) balance is (?:too low|insufficient)",
        rf"{_LACKING} (?:(?:user|account) )?(?:balance|credits?|funds|quota)\b(?! (?:were|was|will|have))",
        r"budget (?:has been )?exceeded|exceeded ?budget|(?:over|crossed) budget|exceeded current quota",
        r"free-models-per-day|calls / month|specified api usage limits|spending limit|account deactivated",
        r"billing (?:hard limit|not active|to be enabled)|余额不足|额度不足|欠费",
    ),
    _rule(
        "answer",
        _OF_REQUESTS,
        "json_?validate_?failed|tool_?use_?failed|failed[_ ](?:to )?generat",
    ),
    # Also of a URL without /v1.
    _rule(
        "model",
        {400, 403},
        r"\A1211 |valid model|model\b.{0,80}\bnot (?:found|exist|available)|model decommissioned",
        "unexpected endpoint",
    ),
)
# Gateways use these codes for any refusal of their own, so that other words come first.
_OF_KEYS = _rule(
    "key",
    {400},
    r"\A100[0-4] |api[ _-]?(?:secret )?key|auth_error|authenticat|unauthori[sz]ed|permission[ _]denied",
    r"invalid (?:proxy server |access )?token|token (?:is |has )?(?:expired|invalid)",
    r"invalid (?:subscription|credential)|身份验证",
)
_BY_STATUS: Mapping[int, Cause] = {
    401: "key",
    402: "account",
    403: "key",
    404: "model",
    405: "model",
    413: "question",
    451: "question",
}
_CERTAIN = frozenset((402, 413, 451))  # statuses with one meaning
# A gateway found the model, but no server that may be used.
_NO_ROUTE = re.compile(r"requested parameters|allowed providers|polic", re.IGNORECASE)
# 424: TGI's model failed; 498: Groq has no capacity, or Cohere blocks
_PASSING = frozenset((408, 409, 424, 425, 429, 498))
_PAGE = re.compile(r"\s*<(?:!doctype|html|head)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_WORD_ENDS = re.compile(r"_|(?<=[a-z])(?=[A-Z])")


def read_json(body: bytes | str) -> Any:
    """Decode JSON from a server; ValueError for anything that is not JSON, too deep or too large."""
    marks: Any = (b",", b"[", b"{") if isinstance(body, bytes) else (",", "[", "{")
    if sum(map(body.count, marks)) > _MAX_VALUES:
        raise ValueError(f"more than {_MAX_VALUES:,} values")
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status other than 200, with the details from the body."""

    status: int
    message: str = ""
    code: str = ""
    kind: str = ""
    param: str = ""
    more: str = ""
    wait_s: float | None = None  # as stated in the text
    is_page: bool = False  # HTML, so that a proxy refused the call

    @classmethod
    def of(cls, status: int, body: bytes | str) -> Refusal:
        """Parse a body: JSON as OpenAI's or other servers', or plain text."""
        start = body[:_MAX_BODY]
        text = start if isinstance(start, str) else start.decode("utf-8", "replace")
        try:
            value = read_json(text)
        except ValueError:
            value = text
            if _PAGE.match(text):
                title = _TITLE.search(text)
                message = one_line(f"a web page: {title[1] if title else text}")
                return cls(status, message, is_page=True)
        refusal = cls.from_value(status, value)
        if wait := _WAIT.search(text[:10_000]):
            return replace(refusal, wait_s=_span(wait[1].lower(), 0.0))
        return refusal

    @classmethod
    def from_value(cls, status: int, value: object) -> Refusal:
        """Parse a decoded body."""
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = value[0]
        outer = value if isinstance(value, dict) else {}
        inner = outer.get("error") or outer.get("detail") or value
        fields = {**outer, "message": inner}
        if isinstance(inner, dict):
            fields = inner
        more = ""
        upstream = fields.get("metadata")
        if isinstance(upstream, dict):
            more = _short(upstream.get("raw"), _MAX_UPSTREAM)
            if upstream.get("reasons"):
                more += " flagged"
        beneath = fields.get("innererror")
        if isinstance(beneath, dict):
            more += f" {_short(beneath.get('code'), _MAX_CODE)}"
        kind = _short(fields.get("type"), _MAX_CODE)
        return cls(
            status,
            message=_message(fields.get("message"), inner),
            code=_short(fields.get("code"), _MAX_CODE),
            kind=kind or _short(fields.get("error_type"), _MAX_CODE),
            param=_short(fields.get("param"), _MAX_CODE),
            more=more.strip(),
        )

    @property
    def cause(self) -> Cause:
        """What the refusal is about, by its codes, then by its words, then by its status."""
        if self.status in _CERTAIN:
            return _BY_STATUS[self.status]
        codes = f"{self.code} {self.kind} {self.more}"
        codes += f" {_WORD_ENDS.sub(' ', codes)}"
        by_code = self._named_in(codes, _RULES)
        cause = by_code or self._named_in(
            f"{codes} {self.message}", (*_RULES, _OF_KEYS)
        )
        if cause:
            return cause
        is_of_proxy = self.status == 403 and self.is_page
        has_no_route = self.status == 404 and _NO_ROUTE.search(self.message)
        if is_of_proxy or has_no_route:
            return ""
        return _BY_STATUS.get(self.status, "")

    def _named_in(self, text: str, rules: Iterable[_Rule]) -> Cause:
        for rule in rules:
            if self.status in rule.statuses and rule.words.search(text):
                return rule.cause
        return ""

    @property
    def may_pass(self) -> bool:
        """Whether the same call may succeed later."""
        is_passing = self.status in _PASSING or self.status >= 500
        return self.cause == "answer" or (is_passing and not self.cause)

    @property
    def is_explained(self) -> bool:
        """Whether the account, the key, the model, the limit or the question is known to be the cause."""
        return self.cause not in ("", "answer")


class RefusedCall(Exception):  # noqa: N818
    """The server responded with another status than 200."""

    def __init__(self, refusal: Refusal, headers: Mapping[str, str]) -> None:
        self.refusal = refusal
        self.headers = headers
        super().__init__(f"HTTP {refusal.status}: {refusal.message}")

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait, if the server states them."""
        stated = retry_after_s(self.headers, time.time())
        return self.refusal.wait_s if stated is None else stated


class NoAnswer(Exception):  # noqa: N818
    """There was no complete response."""

    def __init__(self, reason: str, detail: str, *, was_sent: bool) -> None:
        self.reason = reason
        self.detail = detail
        self.was_sent = was_sent
        super().__init__(detail)


def _message(message: object, inner: object) -> str:
    # FastAPI adds the refused input, which is the user's text.
    if isinstance(inner, list):
        inner = [_without_input(entry) for entry in inner]
    if not isinstance(message, str):
        try:
            message = json.dumps(inner, ensure_ascii=False)
        except (ValueError, RecursionError):
            message = "(nested too deeply)"
    return one_line(message)


def _without_input(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    return {
        name: value
        for name, value in entry.items()
        if name not in ("input", "ctx", "url")
    }


def _short(value: object, max_chars: int) -> str:
    """A text or number, cut; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:max_chars] if value else ""


_MAX_HEADER = 64  # characters; longer values are ignored
LONGEST_WAIT_S = 1e9  # thirty years
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,15})?) ?(ms|s|m|h|d)")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
# In the text of an error: Gemini's `"retryDelay": "41s"`, Groq's `try again in 1m2.5s`.
_WAIT = re.compile(
    rf"(?:retry_?delay\W{{1,9}}|(?:retry|try again) (?:in|after) )({_SPAN.pattern})",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9  # a reset time above this is a timestamp, below it a duration in seconds
_LIMITS = ("requests", "tokens")


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, at most `LONGEST_WAIT_S`; None if not stated."""
    short = {name: text for name, text in headers.items() if len(text) <= _MAX_HEADER}
    server_time = _moment(short.get("date", ""))  # this machine's clock may be wrong
    wait_s = _stated_wait(short, now if server_time is None else server_time)
    return None if wait_s is None else min(wait_s, LONGEST_WAIT_S)


def _stated_wait(headers: Mapping[str, str], now: float) -> float | None:
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if "retry-after" in headers:
        return _after(headers["retry-after"], now)
    # OpenAI states when each limit is restored; only exhausted limits matter.
    spent = [
        limit
        for limit in _LIMITS
        if headers.get(f"x-ratelimit-remaining-{limit}") == "0"
    ]
    waits = [_span(headers.get(f"x-ratelimit-reset-{limit}"), now) for limit in spent]
    waits.append(_span(headers.get("x-ratelimit-reset"), now))
    return max((wait for wait in waits if wait is not None), default=None)


def _after(value: str, now: float) -> float | None:
    if (seconds := _number(value)) is not None:
        return seconds
    moment = _moment(value)
    return None if moment is None else max(0.0, moment - now)


def _moment(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


def _span(value: str | None, now: float) -> float | None:
    """Seconds of `6m0s`, `20ms`, a plain number, or a Unix timestamp in seconds or milliseconds."""
    if value is None:
        return None
    if (number := _number(value)) is not None:
        moment = number / 1000 if number > _EPOCH * 1000 else number
        return max(0.0, moment - now) if moment > _EPOCH else number
    if not _SPAN.fullmatch(value):
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(value))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


T = TypeVar("T")

BACKOFF_S = 60.0  # at most, between two attempts
LONGEST_PAUSE_S = 60.0  # that a server states


async def patiently(
    call: Callable[[], Awaitable[T]], *, tries: int, pause_s: float
) -> T:
    """The result of `call`, retried with backoff after failures that may be temporary."""
    for tried in range(1, tries):
        server_wait_s = 0.0
        try:
            return await call()
        except RefusedCall as refused:
            server_wait_s = refused.retry_after_s or 0.0
            if not refused.refusal.may_pass or server_wait_s > LONGEST_PAUSE_S:
                raise
        except NoAnswer:
            pass
        backoff_s = pause_s * 2.0 ** (tried - 1) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        await asyncio.sleep(max(server_wait_s, min(BACKOFF_S, backoff_s)))
    return await call()
