"""Servers that refuse or break the requested format, through the dispatcher and its store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

import pytest

from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.workers import AskOutcome
from llm_labeler.parsing.answer import parse_answer
from llm_labeler.records import Ask
from pairkit import RemoteError
from tests.llm_labeler.llm_server import SENTENCES, an_ask, provider
from tests.llm_labeler.scripted_provider import answers_in, ask_in
from tests.support.llm import Faults, Options, Server, serve

WORDINGS = (
    "JSON Schema not supported: could not understand the instance `{'type': 'object'}`.",  # Fireworks
    "Request contains an invalid argument.",  # Gemini
    'Invalid JSON payload received. Unknown name "additionalProperties": Cannot find field.',
    "Input validation error",  # Together
    "We could not make sense of your request.",
    "response_format: json_schema is not available",
)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_labeler.dispatch.workers._MIN_BACKOFF_S", 0.001)


def asked(server: Server, store: AnswerStore, numbers: Iterable[int], **fields: object) -> AskOutcome:
    """Ask questions with a schema, as one process."""

    def questions(name: str) -> Iterable[Ask]:
        return (an_ask(number, schema=SENTENCES, llm=name) for number in numbers)

    async def main() -> AskOutcome:
        llm = provider(server.base_url, **fields)
        try:
            return await ask_in(store, llm, questions=questions)  # type: ignore[arg-type]
        finally:
            await llm.close()

    return asyncio.run(main())


def formats(server: Server) -> list[bool]:
    return ["response_format" in json.loads(request.body) for request in server.requests]


@pytest.mark.parametrize("words", WORDINGS)
def test_a_refused_format_is_left_out_and_remembered(words: str, store: AnswerStore) -> None:
    with serve(Options(format_error=words)) as server:
        outcome = asked(server, store, range(24), concurrency=4, attempts=1)
        assert (outcome.done, outcome.failed, outcome.spent.requests) == (24, 0, 24)
        first = formats(server)
        assert 1 <= sum(first) <= 4  # of the first concurrent calls
        assert asked(server, store, range(30)).done == 6  # another process
        assert not any(formats(server)[len(first) :])


@pytest.mark.parametrize("share", [0.66, 1.0])
def test_answers_that_break_the_format_are_asked_again_and_then_without_it(
    share: float, store: AnswerStore
) -> None:
    with serve(faults=Faults(share, ("invalid_json",))) as server:
        outcome = asked(server, store, range(24), structured="auto")
        assert (outcome.done, outcome.failed, server.stats.answered) == (24, 0, 24)
        assert max(server.stats.asked.values()) == 3
        is_json = [answer.reply.raw.startswith("{") for answer in answers_in(store)]
        assert any(is_json) == (share < 1)
        assert not all(is_json)
        assert store.refused("llama", provider(server.base_url).parameters) == set()


def test_a_strict_format_is_never_left_out(store: AnswerStore) -> None:
    with serve(faults=Faults(0.5, ("invalid_json",))) as server:
        assert asked(server, store, range(24), structured="strict", attempts=30).done == 24
        assert all(formats(server))
    with (
        serve(faults=Faults(1.0, ("invalid_json",))) as server,
        pytest.raises(RemoteError, match=r"50 of the last 50 calls failed, .*Failed to generate JSON"),
    ):
        asked(server, store, range(24, 48), structured="strict")


def test_a_400_after_answers_in_the_format_is_about_the_question(store: AnswerStore) -> None:
    with serve(Options(context_chars=200, context_error=("Bad request.", ""))) as server:
        outcome = asked(server, store, [1, 2, 10**99, 3], concurrency=1)
        assert (outcome.done, outcome.failed) == (3, 1)
        assert formats(server) == [True, True, True, True, True, False]
    assert [(failure.reason, failure.attempts) for failure in store.failures()] == [("rejected", 3)]


def test_filtered_answers_are_stored_and_not_asked_again(store: AnswerStore) -> None:
    with serve(faults=Faults(0.5, ("filtered",))) as server:
        outcome = asked(server, store, range(24))
        assert (outcome.done, outcome.failed, server.stats.requests) == (24, 0, 24)
        assert asked(server, store, range(24)).cached == 24
        assert server.stats.requests == 24
    filtered = [answer.reply for answer in answers_in(store) if not answer.reply.raw]
    assert len(filtered) == server.stats.faults["filtered"] > 0
    (item,) = parse_answer("", text="A plane.", finish=filtered[0].finish)
    assert item.reason == "filtered"
