import asyncio
import json
import random
from email.utils import formatdate
from pathlib import Path

import pytest

from pairkit.base.openai_api.refusals import (
    NoAnswer,
    Refusal,
    RefusedCall,
    patiently,
    retry_after_s,
)
from tests.support.shorthand import approx, parametrize, raises, text_table

REFUSALS = Path(__file__).with_name("refusals.txt")


def about(refusal):
    """The cause; without one, whether the call may be repeated."""
    return refusal.cause or ("passing" if refusal.may_pass else "unknown")


def error(message, **fields):
    return {"error": {"message": message, **fields}}


@parametrize("expected, status, body", text_table(REFUSALS.read_text()))
def test_classes_of_refusals(expected, status, body):
    assert about(Refusal.of(int(status), body.encode())) == expected


@parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"error": ' * 100_000,
        b'{"error": {"code": ' + b"[" * 400 + b"]" * 400 + b"}}",
        b'{"error": {"code": ' + b"9" * 4000 + b"}}",
        b'{"error": {"code": ' + b"9" * 5000 + b"}}",
        b'{"error": {"message": "\\ud800", "code": "\\udfff", "type": 1e999, "param": NaN}}',
        b"\xff\xfe\x00",
        b"[[]]",
        b'{"error": [], "detail": {}}',
        b'{"error": {"message": {"a": null}, "metadata": [], "innererror": "x"}}',
        b"x" * (1 << 22),
    ],
)
def test_invalid_bodies(body):
    for status in (400, 403, 429, 500):
        refusal = Refusal.of(status, body)
        about(refusal)
        assert len(refusal.message) <= 300
        assert "\n" not in refusal.message
        refusal.message.encode()


def refused(status, **headers):
    return RefusedCall(
        Refusal(status),
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.fixture
def waits(monkeypatch):
    """The waits without jitter."""
    found = []

    async def note(seconds):
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    return found


def ask(*outcomes, tries=9, pause_s=1.0):
    left = list(outcomes)

    async def call():
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    answer = asyncio.run(patiently(call, tries=tries, pause_s=pause_s))
    assert not left
    return answer


def test_backoff(waits):
    assert ask(*[refused(500)] * 8, "answer") == "answer"
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    waits.clear()
    assert (
        ask(refused(429, retry_after="60"), refused(429, retry_after="0"), "answer")
        == "answer"
    )
    assert waits == [60, 2]


@parametrize(
    "outcomes, tries, waited",
    [
        ([refused(500)] * 3, 3, [1, 2]),
        ([refused(401)], 9, []),
        ([refused(429, retry_after="60.5")], 9, []),
        ([NoAnswer("timeout", "3 s", was_sent=True)], 1, []),
    ],
)
def test_failures_that_end_the_attempts(waits, outcomes, tries, waited):
    with raises(type(outcomes[0])):
        ask(*outcomes, tries=tries)
    assert waits == waited


NOW = 1_790_000_000.0
SPENT = "x-ratelimit-remaining-requests: 0 & x-ratelimit-remaining-tokens: 0"


@parametrize(
    "expected, headers",
    [
        *text_table(f"""
        # seconds to wait | headers
        None |
        7 | retry-after: 7
        0.5 | retry-after: 0.5
        0.25 | retry-after-ms: 250 & retry-after: 1
        90 | retry-after: {formatdate(NOW + 90, usegmt=True)}
        0 | retry-after: {formatdate(NOW - 90, usegmt=True)}
        # by the server's clock, from which this machine's differs by an hour
        90 | retry-after: {formatdate(NOW + 3690)} & date: {formatdate(NOW + 3600)}
        50 | x-ratelimit-reset: {NOW - 3550} & date: {formatdate(NOW - 3600)}
        90 | retry-after: {formatdate(NOW + 90)} & date: soon
        None | retry-after: soon
        None | retry-after: -3
        None | retry-after: nan
        72.5 | x-ratelimit-remaining-requests: 0 & x-ratelimit-reset-requests: 1m12.5s
        0.02 | x-ratelimit-remaining-tokens: 0 & x-ratelimit-reset-tokens: 20ms
        # a limit that isn't exhausted is ignored
        None | x-ratelimit-remaining-tokens: 9 & x-ratelimit-reset-tokens: 6m0s
        # the longest of two exhausted limits
        3 | {SPENT} & x-ratelimit-reset-requests: 2s & x-ratelimit-reset-tokens: 3s
        15 | x-ratelimit-reset: 15
        30 | x-ratelimit-reset: {int(NOW) + 30}
        30 | x-ratelimit-reset: {(int(NOW) + 30) * 1000}
        5400 | x-ratelimit-reset: 1h30m
        None | x-ratelimit-reset: 1h30
        # implausible values
        1e9 | retry-after: {"9" * 60}
        None | retry-after: 1e400
        """),
        ("None", f"x-ratelimit-reset: {'1' * 20_000}"),
        ("None", f"x-ratelimit-reset: {'1' * 20_000}s"),
        ("None", f"retry-after: {'9' * 400}"),
    ],
)
def test_stated_waits(expected, headers):
    given = dict(header.split(": ") for header in headers.split(" & ") if header)
    wait_s = retry_after_s(given, NOW)
    assert wait_s == (None if expected == "None" else approx(float(expected), abs=1e-6))


@parametrize(
    "body, expected",
    [
        (error("Quota", details=[{"@type": "RetryInfo", "retryDelay": "41s"}]), 41.0),
        (error("Rate limit reached. Please try again in 1m7.66s. Visit x"), 67.66),
        (error("Please retry after 26 seconds."), 26.0),
        (error("Please try again in a day, 5s."), None),
        (error("Please try again in " + "1" * 10_000), None),
    ],
)
def test_waits_stated_in_the_text(body, expected):
    refusal = Refusal.of(429, json.dumps(body))
    assert RefusedCall(refusal, {}).retry_after_s == expected
    assert RefusedCall(refusal, {"retry-after": "3"}).retry_after_s == 3.0
