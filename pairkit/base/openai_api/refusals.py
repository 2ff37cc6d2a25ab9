"""Error responses, classified by text and status because gateways mix up statuses."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from pairkit.base.printable import one_line

_MAX_BODY = 1 << 20  # bytes that are parsed
_MAX_VALUES = 500_000  # of a JSON text; an empty list takes 25 times its size in memory
_MAX_UPSTREAM = 500  # characters of the upstream's error that a gateway quotes
_MAX_CODE = 64  # characters of a code

# Errors that waiting doesn't solve: unpaid or locked accounts, daily limits (GLM's codes are numbers).
_EXHAUSTED_CODES = """
    insufficient_quota billing_hard_limit_reached billing_not_active account_deactivated budget_exceeded
    exceeded_current_quota_error Arrearage 1110 1111 1112 1113 1121 1304 1308 1309 1310
"""
_EXHAUSTED = frozenset(_EXHAUSTED_CODES.split())
_CREDIT = re.compile(
    r"credit balance is too low|insufficient[ _](?:account )?(?:balance|credits?|funds|quota)"
    r"|(?:not enough|out of|no|any|all available) credits?\b|budget has been exceeded|exceeded ?budget"
    r"|(?:over|crossed) budget|free-models-per-day|calls / month"
    r"|billing hard limit|arrearage|余额不足|欠费",
    re.IGNORECASE,
)
_KEY_CODES = frozenset(
    ["invalid_api_key", "auth_error", "authentication_error", "1000", "1001", "1002", "1003", "1004"]
)
_KEY = re.compile(
    r"api[ _-]?key|authenticat|unauthori[sz]ed|permission[ _]denied|invalid (?:proxy server |access )?token"
    r"|token (?:is |has )?(?:expired|invalid)|invalid (?:subscription|credential)|身份验证",
    re.IGNORECASE,
)
_OF_QUESTIONS = """
    context_length_exceeded string_above_max_length exceed_context_size_error invalid_prompt content_filter
    content_policy_violation ResponsibleAIPolicyViolation data_inspection_failed DataInspectionFailed 1261
    1301
"""
_QUESTION_CODES = frozenset(_OF_QUESTIONS.split())
_QUESTION = re.compile(
    r"context.{0,3}(?:length|window|size|limit)|(?:maximum|max) (?:context|input|prompt|sequence)"
    r"|(?:prompt|input|text|request) (?:is |was )?too (?:long|large)|too many (?:input |prompt )?tokens"
    r"|inputs?`? tokens"
    r"|content.{0,12}(?:polic|filter)|\bflagged\b|moderation|safety|unsafe|sensitive|inappropriate"
    r"|usage guidelines"
    r"|敏感|超长|不安全",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"max_(?:completion_)?tokens\W{0,3}(?:\S+ ){0,3}(?:is )?(?:too large|at most)", re.IGNORECASE
)
_PASSING = frozenset((408, 409, 425, 429, 498))  # 498: Groq has no capacity, or Cohere blocks
_NO_MODEL = frozenset(
    ("model_not_found", "model_not_available", "model_decommissioned", "invalid_model", "1211")
)
# Also of a URL without /v1.
_MODEL = re.compile(
    r"valid model (?:id|name)|model\b.{0,80}\bnot (?:found|exist)|unexpected endpoint", re.IGNORECASE
)
# The server checked an answer, which another attempt may change.
_ANSWER = re.compile(r"json_validate_failed|tool_use_failed|failed[_ ](?:to )?generat", re.IGNORECASE)


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

    @classmethod
    def of(cls, status: int, body: bytes | str) -> Refusal:
        """Parse a body: JSON as OpenAI's or other servers', or plain text."""
        text = body[:_MAX_BODY].decode("utf-8", "replace") if isinstance(body, bytes) else body[:_MAX_BODY]
        try:
            value = read_json(text)
        except ValueError:
            value = text
        wait = _WAIT.search(text[:10_000])
        return replace(cls.from_value(status, value), wait_s=_span(wait[1].lower(), 0.0) if wait else None)

    @classmethod
    def from_value(cls, status: int, value: Any) -> Refusal:
        """Parse a decoded body."""
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = value[0]
        inner = value.get("error") or value.get("detail") or value if isinstance(value, dict) else value
        outer = value if isinstance(value, dict) else {}
        fields: Mapping[str, Any] = inner if isinstance(inner, dict) else {**outer, "message": inner}
        upstream, beneath = fields.get("metadata"), fields.get("innererror")
        more = [
            _short(upstream.get("raw"), _MAX_UPSTREAM) if isinstance(upstream, dict) else "",
            _short(beneath.get("code"), _MAX_CODE) if isinstance(beneath, dict) else "",
        ]
        code, kind, param = (_short(fields.get(name), _MAX_CODE) for name in ("code", "type", "param"))
        return cls(status, _message(fields.get("message"), inner), code, kind, param, " ".join(more).strip())

    @property
    def may_pass(self) -> bool:
        """Whether the same call may succeed later."""
        is_passing = self.status in _PASSING and not self.is_about_question
        return (is_passing or self.status >= 500 or self.is_about_answer) and not self.is_exhausted

    @property
    def is_exhausted(self) -> bool:
        """Whether the account has no quota or credit left."""
        return (
            self.status == 402
            or bool({self.code, self.kind} & _EXHAUSTED)
            or (400 <= self.status <= 429 and _CREDIT.search(self._words) is not None)
        )

    @property
    def is_about_question(self) -> bool:
        """Whether the prompt is too long or was filtered, so that other prompts may succeed."""
        if self.status == 413:
            return True
        if self.status not in (400, 403, 422, 498) or self.is_about_limit:
            return False
        names = {self.code, self.kind, *self.more.split()}
        return bool(names & _QUESTION_CODES) or _QUESTION.search(self._words) is not None

    @property
    def is_about_answer(self) -> bool:
        """Whether the server discarded the model's answer, so that another attempt may succeed."""
        return self.status in (400, 422) and _ANSWER.search(self._words) is not None

    @property
    def is_explained(self) -> bool:
        """Whether the account, the key, the model, the limit or the question is known to be the cause."""
        causes = (self.is_exhausted, self.is_about_key, self.is_about_model, self.is_about_limit)
        return any(causes) or self.is_about_question

    @property
    def is_about_key(self) -> bool:
        """Whether the key is missing, wrong or lacks rights."""
        if self.is_about_question or self.is_exhausted:
            return False
        named = bool({self.code, self.kind} & _KEY_CODES) or _KEY.search(self._words) is not None
        return self.status in (401, 403) or (self.status == 400 and named)

    @property
    def is_about_model(self) -> bool:
        """Whether the model or the URL doesn't exist."""
        named = bool({self.code, self.kind} & _NO_MODEL) or _MODEL.search(self.message) is not None
        return self.status in (404, 405) or (self.status == 400 and named)

    @property
    def is_about_limit(self) -> bool:
        """Whether max_tokens is above the model's limit."""
        return self.status in (400, 422) and _LIMIT.search(self.message) is not None

    @property
    def _words(self) -> str:
        return f"{self.code} {self.kind} {self.message} {self.more}"


class RefusedCall(Exception):  # noqa: N818
    """The server responded with another status than 200."""

    def __init__(self, refusal: Refusal, headers: Mapping[str, str]) -> None:
        self.refusal, self.headers = refusal, headers
        super().__init__(f"HTTP {refusal.status}: {refusal.message}")

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait, if the server states them."""
        stated = retry_after_s(self.headers, time.time())
        return self.refusal.wait_s if stated is None else stated


class NoAnswer(Exception):  # noqa: N818
    """There was no complete response."""

    def __init__(self, reason: str, detail: str, *, was_sent: bool) -> None:
        self.reason, self.detail, self.was_sent = reason, detail, was_sent
        super().__init__(detail)


def _message(message: Any, inner: Any) -> str:
    if not isinstance(message, str):
        try:
            message = json.dumps(inner, ensure_ascii=False)
        except (ValueError, RecursionError):
            message = "(nested too deeply)"
    return one_line(message)


def _short(value: Any, max_chars: int) -> str:
    """A text or number, cut; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    try:
        return str(value)[:max_chars] if value else ""
    except ValueError:  # a number of thousands of digits
        return ""


_MAX_HEADER = 64  # characters; longer values are ignored
LONGEST_WAIT_S = 1e9  # thirty years
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,15})?) ?(ms|s|m|h|d)")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
# In the text of an error: Gemini's `"retryDelay": "41s"`, Groq's `try again in 1m2.5s`.
_WAIT = re.compile(
    rf"(?:retry_?delay\W{{1,9}}|(?:retry|try again) (?:in|after) )({_SPAN.pattern})", re.IGNORECASE
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
    spent = [limit for limit in _LIMITS if headers.get(f"x-ratelimit-remaining-{limit}") == "0"]
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

BACKOFF_S = LONGEST_PAUSE_S = 60.0  # at most: between two attempts, and as stated by a server


async def patiently(call: Callable[[], Awaitable[T]], *, tries: int, pause_s: float) -> T:
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
