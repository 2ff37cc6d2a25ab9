"""SIGKILL at any moment, run again: all answers are there, none was asked for twice, all calls charged."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from llm_labeler.dispatch.answers import AnswerStore
from llm_labeler.records import Ask, CallFailed, LlmReply, StoredAnswer

from .scripted_provider import ACTUAL, BOUND, Scripted, an_ask, answer_at_once, answers_in, ask_in

COUNT = 400


def script(ask: Ask, attempt: int) -> LlmReply | Exception:
    number = int(ask.text)
    if number % 7 == 0 and attempt == 1:
        return CallFailed("rate_limited" if number % 2 else "server_error", "", retry_after_s=0.01)
    return answer_at_once(ask, attempt)


def ask_all_in(path: Path, journal: Path, ready: int) -> None:
    """All that the child process does."""
    with AnswerStore.open(path, create=True) as store:
        store.recover()
        os.write(ready, b"1")
        provider = Scripted(script, latency_s=0.02, concurrency=16, journal=journal)
        asyncio.run(ask_in(store, provider, count=COUNT))


def label(path: Path, journal: Path, kill_after_s: float | None) -> bool:
    """Ask all in a process of its own, forked, as imports take longer; whether it came to its end."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            ask_all_in(path, journal, writer)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    assert os.read(reader, 1) == b"1"
    os.close(reader)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code == 0


def kept(path: Path) -> list[StoredAnswer]:
    with AnswerStore.open(path) as store:
        return answers_in(store)


def asked(journal: Path) -> list[str]:
    return journal.read_text().split() if journal.exists() else []


def check(tmp_path: Path, kills: int) -> None:
    start = time.monotonic()
    assert label(tmp_path / "undisturbed", tmp_path / "its journal", None)
    whole_s = time.monotonic() - start
    expected = kept(tmp_path / "undisturbed")
    assert len(expected) == COUNT
    draw, was_killed, cut_off = random.Random(11), 0, 0
    path, journal = tmp_path / "killed", tmp_path / "journal"
    answered: set[str] = set()
    for round_ in range(kills + 1):
        before = len(asked(journal))
        last = round_ == kills
        ended = label(path, journal, None if last else draw.uniform(0, whole_s / max(2, kills / 3)))
        was_killed += not ended
        assert not answered & set(asked(journal)[before:]), "asked again for what was answered"
        answered = {answer.key.text_id for answer in kept(path)}
        with AnswerStore.open(path) as store:
            ((in_flight,),) = store._connection.execute("SELECT COUNT(*) FROM in_flight")
            cut_off += in_flight
            # A call is noted before it is sent: one that was cut off may or may not have gone out.
            assert 0 <= store.spent().requests - len(asked(journal)) <= cut_off
    assert was_killed >= kills // 2
    assert kept(path) == expected
    with AnswerStore.open(path) as store:
        spent = store.spent()
        assert store.recover() == 0
    assert spent.prompt_tokens == COUNT * ACTUAL.prompt_tokens + spent.estimated * BOUND.prompt_tokens
    assert (
        spent.completion_tokens
        == COUNT * ACTUAL.completion_tokens + spent.estimated * BOUND.completion_tokens
    )
    if kills >= 10:  # a few may all fall between two calls
        assert spent.estimated > 0  # some call was cut off, or nothing was tested
    assert {answer.key for answer in expected} == {an_ask(number).key for number in range(COUNT)}


def test_killed_a_few_times(tmp_path: Path) -> None:
    check(tmp_path, kills=3)


@pytest.mark.slow
def test_killed_twenty_times(tmp_path: Path) -> None:
    check(tmp_path, kills=20)
