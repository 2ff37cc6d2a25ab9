"""After SIGKILL and a rerun, all answers are stored and charged, and no answered question is repeated."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from pathlib import Path

import pytest

from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.records import Ask, CallFailed, LlmReply, StoredAnswer
from tests import forked

from .scripted_provider import ACTUAL, BOUND, Scripted, an_ask, answer_at_once, answers_in, ask_in

COUNT = 400


def script(ask: Ask, attempt: int) -> LlmReply | Exception:
    number = int(ask.text)
    if number % 7 == 0 and attempt == 1:
        return CallFailed("rate_limited" if number % 2 else "server_error", "", retry_after_s=0.01)
    return answer_at_once(ask, attempt)


def ask_all_in(path: Path, journal: Path) -> None:
    """The child process."""
    with AnswerStore.open(path, create=True) as store:
        store.recover()
        provider = Scripted(script, latency_s=0.02, concurrency=16, journal=journal)
        asyncio.run(ask_in(store, provider, count=COUNT))


def label(path: Path, journal: Path, kill_at: int | None) -> bool:
    """Run the child and kill it at a line of the journal; return whether it finished."""
    child = forked.context().Process(target=ask_all_in, args=(path, journal))
    child.start()
    while kill_at is not None and child.is_alive() and len(asked(journal)) < kill_at:
        time.sleep(0.001)
    if kill_at is not None:
        child.kill()
    child.join(300)
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode == 0


def kept(path: Path) -> list[StoredAnswer]:
    with AnswerStore.open(path) as store:
        return answers_in(store)


def asked(journal: Path) -> list[str]:
    return journal.read_text().split() if journal.exists() else []


@pytest.mark.slow  # `label` is killed once in tests/promises/test_label_promises.py
def test_many_kills_lose_no_answer(tmp_path: Path) -> None:
    kills = 20
    assert label(tmp_path / "undisturbed", tmp_path / "its journal", None)
    expected = kept(tmp_path / "undisturbed")
    assert len(expected) == COUNT
    draw, was_killed, cut_off = random.Random(11), 0, 0
    path, journal = tmp_path / "killed", tmp_path / "journal"
    answered: set[str] = set()
    for round_ in range(kills + 1):
        before = len(asked(journal))
        last = round_ == kills
        ended = label(path, journal, None if last else before + draw.randrange(COUNT // kills))
        was_killed += not ended
        assert not answered & set(asked(journal)[before:]), "asked again for what was answered"
        answered = {answer.key.text_id for answer in kept(path)}
        with AnswerStore.open(path) as store:
            ((in_flight,),) = store._connection.execute("SELECT COUNT(*) FROM in_flight")
            cut_off += in_flight
            # A call is recorded before it is sent, so an interrupted one may not have been sent.
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
    assert spent.estimated > 0  # some call was interrupted
    assert {answer.key for answer in expected} == {an_ask(number).key for number in range(COUNT)}
