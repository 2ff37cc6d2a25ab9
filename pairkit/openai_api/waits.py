"""How long a server wants us to wait, in whichever of the many headers it says so."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LONGEST = 64  # characters of a header that says how long; a longer one says nothing
LONGEST_WAIT_S = 1e9  # thirty years: whoever wishes more means never
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|s|m|h|d)")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9  # a reset above this is a moment, below it a span of seconds
_LIMITS = ("requests", "tokens")


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, at most `LONGEST_WAIT_S`; None if the server does not say.

    Args:
        headers: With names in lower case, or that compare so.
        now: Seconds since 1970.
    """
    wait_s = _said({name: text for name, text in headers.items() if len(text) <= _LONGEST}, now)
    return None if wait_s is None else min(wait_s, LONGEST_WAIT_S)


def _said(headers: Mapping[str, str], now: float) -> float | None:
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if "retry-after" in headers:
        return _after(headers["retry-after"], now)
    # OpenAI tells when each of its limits is whole again; only the one that ran out matters.
    spent = [limit for limit in _LIMITS if headers.get(f"x-ratelimit-remaining-{limit}") == "0"]
    waits = [_span(headers.get(f"x-ratelimit-reset-{limit}"), now) for limit in spent]
    waits.append(_span(headers.get("x-ratelimit-reset"), now))
    return max((wait for wait in waits if wait is not None), default=None)


def _after(value: str, now: float) -> float | None:
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


def _span(value: str | None, now: float) -> float | None:
    """Of `6m0s`, `20ms`, seconds, or a moment since 1970 in seconds or milliseconds."""
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
