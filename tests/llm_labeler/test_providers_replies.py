from __future__ import annotations

from typing import Any

import pytest

from llm_labeler.clients.chat_completions import read_body, reply_of
from llm_labeler.records import CallFailed, LlmReply, TokenUsage
from pairkit.openai_api.refusals import RefusedCall


def completion(message: Any, finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": finish}], **fields}


def test_a_plain_answer() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    found = reply_of(completion({"content": "<think>x</think>1. a"}, usage=usage))
    assert found == LlmReply("<think>x</think>1. a", "stop", TokenUsage(5, 7), "m-1")


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": None, "refusal": "No."}, "stop", ("No.", "refusal")),
        ({"content": "a", "refusal": None}, "length", ("a", "length")),
        ({"content": None}, "content_filter", ("", "content_filter")),
        ({"content": "", "reasoning_content": "so much"}, "length", ("", "length")),
        ({"content": "a"}, "sensitive", ("a", "sensitive")),
        ({"content": "a"}, None, ("a", "")),
        ({"content": "a"}, 3, ("a", "")),
        ({"content": "a"}, "MAX_TOKENS", ("a", "MAX_TOKENS")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "stop", ("ab", "stop")),
        ({"content": "\ud800"}, "stop", ("\ud800", "stop")),
    ],
)
def test_messages(message: Any, finish: Any, expected: tuple[str, str]) -> None:
    found = reply_of(completion(message, finish))
    assert (found.raw, found.finish) == expected


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 0, "completion_tokens": 0},  # some servers count nothing
        {"prompt_tokens": 0, "completion_tokens": 7},
        None,
        {},
        {"prompt_tokens": 5},
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": "5", "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 1e30, "completion_tokens": 1},
        {"prompt_tokens": 10**8 + 1, "completion_tokens": 1},
        {"prompt_tokens": 1, "completion_tokens": 1 << 40},
        [1, 2],
    ],
)
def test_usage_that_is_none(usage: Any) -> None:
    assert reply_of(completion({"content": "a"}, usage=usage)).usage is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"total_tokens": 12}, (0, 12)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 212}, (5, 207)),  # with thoughts
        ({"prompt_tokens": 5, "total_tokens": 12}, (5, 7)),
        ({"completion_tokens": 7, "total_tokens": 12}, (5, 7)),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": 12}, (0, 12)),
    ],
)
def test_the_total_stands_in_for_counts_that_are_missing(usage: Any, expected: tuple[int, int]) -> None:
    assert reply_of(completion({"content": "a"}, usage=usage)).usage == TokenUsage(*expected)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Log in</body></html>",
        b'{"choices": [{"mess',
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"error": {"message": "overloaded"}}',
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": [null]}',
        b'{"choices": [{"text": "a"}]}',
        b"[" * 100_000,
    ],
)
def test_a_broken_body_may_have_been_paid_for(body: bytes) -> None:
    with pytest.raises(CallFailed) as caught:
        reply_of(read_body(body))
    failed = caught.value
    assert (failed.reason, failed.retry, failed.maybe_billed) == ("broken_reply", True, True)
    assert len(failed.detail) < 200


@pytest.mark.parametrize("finish", ["network_error", "error", "abort", "ERROR", "MALFORMED_FUNCTION_CALL"])
def test_a_model_that_failed_while_it_answered(finish: str) -> None:
    with pytest.raises(CallFailed, match="server_error") as caught:
        reply_of(completion({"content": "a"}, finish))
    assert caught.value.retry
    assert caught.value.maybe_billed


@pytest.mark.parametrize(
    ("status", "expected"),
    [(402, RefusedCall), (403, RefusedCall), (429, RefusedCall), (502, CallFailed), ("402", CallFailed)],
)
def test_an_error_in_the_place_of_an_answer(status: Any, expected: type[Exception]) -> None:
    with pytest.raises(expected, match="upstream says no"):
        reply_of({"error": {"message": "upstream says no", "code": status}})


def test_parts_within_parts_are_no_text() -> None:
    deep: Any = "a"
    for _ in range(900):
        deep = [{"text": deep}]
    assert reply_of(completion({"content": deep})).raw == ""
    with pytest.raises(CallFailed, match="not an object: list"):
        reply_of(deep)
