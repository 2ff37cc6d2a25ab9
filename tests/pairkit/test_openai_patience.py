"""How often and after which waits a call is made again; nobody waits here."""

from __future__ import annotations

import asyncio
import random

import pytest

from pairkit.openai_api.patience import patiently
from pairkit.openai_api.refusals import NoAnswer, Refusal, Refused


def refused(status: int, **headers: str) -> Refused:
    return Refused(Refusal(status), {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits asked for, without jitter."""
    found: list[float] = []

    async def note(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    return found


def ask(*outcomes: Exception | str, tries: int = 9, pause_s: float = 1.0) -> str:
    left = list(outcomes)

    async def call() -> str:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    answer = asyncio.run(patiently(call, tries=tries, pause_s=pause_s))
    assert not left
    return answer


def test_waits_double_up_to_a_minute(waits: list[float]) -> None:
    assert ask(*[refused(500)] * 8, "answer") == "answer"
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_no_answer_is_asked_for_again_as_often(waits: list[float]) -> None:
    lost = NoAnswer("timeout", "3 s", was_sent=True)
    assert ask(lost, lost, "answer", pause_s=0.5) == "answer"
    assert waits == [0.5, 1]


def test_the_last_try_decides(waits: list[float]) -> None:
    with pytest.raises(Refused):
        ask(refused(500), refused(500), refused(500), tries=3)
    assert waits == [1, 2]
    with pytest.raises(NoAnswer):
        ask(NoAnswer("timeout", "3 s", was_sent=True), tries=1)


def test_a_wish_up_to_a_minute_is_granted(waits: list[float]) -> None:
    assert ask(refused(429, retry_after="60"), refused(429, retry_after="0"), "answer") == "answer"
    assert waits == [60, 2]
    with pytest.raises(Refused):
        ask(refused(429, retry_after="60.5"))


def test_what_will_not_pass_is_not_asked_again(waits: list[float]) -> None:
    with pytest.raises(Refused):
        ask(refused(401))
    assert waits == []
