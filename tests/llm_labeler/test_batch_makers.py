"""What Anthropic's and Gemini's batches say, hostile answers among it, and that none does harm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llm_labeler._batch.anthropic import AnthropicBatches
from llm_labeler._batch.gemini import GeminiBatches
from llm_labeler._batch.lines import Line, custom_id
from llm_labeler._batch.results import read_results
from llm_labeler._batch.server import BatchServer, Seen
from llm_labeler._records import Usage
from llm_labeler._store import Batch
from pairkit.errors import BadReply
from pairkit.openai_api.channel import Channel
from tests.llm_labeler.llm_server import an_ask, finished, http, playing_back, provider, run

KEYS = {name: an_ask(number).key for number, name in enumerate("abcdefg")}
WAITING = Batch("llama", "batch_1", "completed", KEYS, Usage(700, 70), None)
DEEP = "[" * 100_000 + "]" * 100_000


def said_by_claude(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "model": "m"}


def said_by_gemini(text: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}


def batches(kind: str, url: str) -> BatchServer:
    asked = provider(url, kind=kind)
    return AnthropicBatches(asked, 0.01) if kind == "anthropic" else GeminiBatches(asked, 0.01)


def lines_of(kind: str, content: bytes, batch: Batch = WAITING) -> list[Line]:
    """What is read out of an answer's body."""
    with playing_back(http(200, content)) as url:
        server = batches(kind, url)
        return finished(server._provider, server.results(Seen("batch_1", "completed"), batch))


def test_a_question_to_claude_bears_the_tag_of_its_batch() -> None:
    server = batches("anthropic", "http://localhost:1/v1")
    line = json.loads(server.line(custom_id(an_ask().key), {"model": "m"}, "label-" + "f" * 32))
    assert line == {"custom_id": f"{custom_id(an_ask().key)}-{'f' * 32}", "params": {"model": "m"}}
    assert len(line["custom_id"]) <= 64


def test_results_of_claude_in_any_order_and_of_any_kind() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    too_long = {"type": "invalid_request_error", "message": "prompt is too long: 3 tokens > 2 maximum"}
    results: list[tuple[Any, Any]] = [
        ("b-1", {"type": "succeeded", "message": said_by_claude("1. b")}),
        ("stranger-1", {"type": "succeeded", "message": said_by_claude("1. x")}),
        ("a-1", {"type": "succeeded", "message": said_by_claude("1. a")}),
        ("a-1", {"type": "succeeded", "message": said_by_claude("1. another")}),
        ("b-1", {"type": "errored", "error": overloaded}),
        ("c-1", {"type": "errored", "error": overloaded}),
        ("d-1", {"type": "errored", "error": {"type": "error", "error": too_long}}),
        ("e-1", {"type": "expired"}),
        ("f-1", {"type": "canceled"}),
        (7, {"type": "succeeded"}),
        ("g-1", "succeeded"),
        ("g-1", {"type": "of another kind"}),
    ]
    lines = [json.dumps({"custom_id": name, "result": result}) for name, result in results]
    content = "\n".join([*lines, DEEP, "{", "[]", ""]).encode() + b"\xff\n"
    found = run(
        read_results(
            provider("http://x/v1", kind="anthropic"),
            WAITING,
            "completed",
            lines_of("anthropic", content),
            0.5,
        )
    )
    assert {name: answer.reply.raw for name, answer in found.answers.items()} == {"b": "1. b", "a": "1. a"}
    failures = {name: (failure.reason, failure.final) for name, failure in found.failures.items()}
    assert failures == {
        "c": ("server_error", False),
        "d": ("rejected", True),
        "e": ("timeout", False),
        "f": ("timeout", False),
        "g": ("timeout", False),
    }
    assert "expired before it was answered" in found.failures["e"].detail
    assert "cancelled" in found.failures["f"].detail
    assert found.problem is None


def operation(*responses: Any) -> bytes:
    return json.dumps(
        {"name": "batches/1", "done": True, "response": {"inlinedResponses": {"inlinedResponses": responses}}}
    ).encode()


def test_results_of_gemini_by_key_and_of_any_kind() -> None:
    content = operation(
        {"metadata": {"key": "b"}, "response": said_by_gemini("1. b")},
        {"metadata": {"key": "stranger"}, "response": said_by_gemini("1. x")},
        {"metadata": {"key": "b"}, "response": said_by_gemini("1. another")},
        {"response": said_by_gemini("1. nobody's")},
        {"metadata": {"key": 3}, "response": said_by_gemini("1. nobody's")},
        {"metadata": {"key": "c"}, "error": {"code": 8, "message": "Resource exhausted"}},
        {"metadata": {"key": "d"}, "error": {"code": "x"}},
        {"metadata": {"key": "e"}, "response": []},
        {"metadata": {"key": "f"}},
        "nothing",
    )
    found = run(
        read_results(
            provider("http://x/v1", kind="gemini"), WAITING, "completed", lines_of("gemini", content), 0.5
        )
    )
    assert {name: answer.reply.raw for name, answer in found.answers.items()} == {"b": "1. b"}
    reasons = {name: failure.reason for name, failure in found.failures.items()}
    assert reasons == {
        **dict.fromkeys("afg", "timeout"),
        "c": "rate_limited",
        "d": "server_error",
        "e": "broken_reply",
    }


def test_results_of_gemini_without_keys_go_by_their_order_if_all_are_there() -> None:
    """The API has left keys out; it keeps the order of the questions."""
    said = [{"response": said_by_gemini(f"1. {name}")} for name in KEYS]
    assert [(line.custom_id, line.status) for line in lines_of("gemini", operation(*said))] == [
        (name, 200) for name in KEYS
    ]
    assert lines_of("gemini", operation(*said[:-1])) == []
    in_metadata = {"metadata": {"output": {"inlinedResponses": {"inlinedResponses": said}}}}
    assert len(lines_of("gemini", json.dumps(in_metadata).encode())) == len(KEYS)


@pytest.mark.parametrize("kind", ["anthropic", "gemini"])
@pytest.mark.parametrize(
    "body",
    [
        "[]",
        DEEP,
        "{}",
        '{"id": "../keys", "processing_status": "ended"}',
        '{"id": "a", "processing_status": 3}',
        '{"name": "batches/../keys"}',
        '{"data": 1, "operations": 1}',
        '{"data": [1], "operations": [1]}',
    ],
)
def test_a_list_or_a_batch_that_is_none_is_one_line(kind: str, body: str) -> None:
    with playing_back(http(200, body)) as url:
        server = batches(kind, url)

        async def main() -> None:
            await server.look("1")
            await server.find("label-1", "", 3)

        with pytest.raises(BadReply):
            finished(server._provider, main())


@pytest.mark.parametrize("kind", ["anthropic", "gemini"])
def test_a_list_that_leads_in_a_circle_ends(kind: str) -> None:
    page = {
        "data": [{"id": "msgbatch_1", "processing_status": "ended", "request_counts": {"succeeded": 9}}],
        "has_more": True,
        "operations": [{"name": "batches/1"}],
        "nextPageToken": "again",
    }
    with playing_back(http(200, json.dumps(page))) as url:
        server = batches(kind, url)
        with pytest.raises(BadReply, match="the same batches again"):
            finished(server._provider, server.find("label-1", "", 3))


def test_results_are_fetched_from_the_server_itself_wherever_it_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    plain = Channel.get

    async def get(self: Channel, path: str, **more: Any) -> bytes:
        asked.append(path)
        return await plain(self, path, **more)

    monkeypatch.setattr(Channel, "get", get)
    elsewhere = {"id": "m_1", "processing_status": "ended", "results_url": "https://evil.example/results"}
    with playing_back(http(200, json.dumps(elsewhere))) as url:
        server = batches("anthropic", url)

        async def main() -> None:
            seen = await server.look("m_1")
            await server.results(seen, WAITING)

        finished(server._provider, main())
    assert asked == ["/messages/batches/m_1", "/messages/batches/m_1/results"]
