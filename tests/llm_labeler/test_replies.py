"""Responses of servers: one run gets the response of each case to a text of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from pairkit import AuthError, PairkitError, RemoteError
from tests.support.llm import Options, reply, serve

USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
NESTED: Any = "a"
for _ in range(20):
    NESTED = [{"text": NESTED}]


def completion(message: Any, finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": finish}], **fields}


def events(*words: str) -> bytes:
    """A stream that breaks off."""
    parts = [{"model": "m-1", "choices": [{"delta": {"content": word}}]} for word in words]
    data = [*parts, {"choices": [None], "id": 1}]
    return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in data).encode()


WHOLE, DONE = json.dumps(completion({"content": "1. a"})).encode(), b"\r\n\r\ndata: [DONE]\r\n\r\n"
CALL = {"function": {"name": "answer", "arguments": ' {"1": "same"}\n'}}
FILTERED = {"content_filter_results": {"hate": {"filtered": True}}}
ANSWERS: list[tuple[Any, str, str]] = [  # response, raw answer, finish reason
    *(
        (completion(message, finish), *expected)
        for message, finish, expected in (
            ({"content": "<think>x</think>1. a"}, "stop", ("<think>x</think>1. a", "stop")),
            ({"content": None, "refusal": "No."}, "stop", ("No.", "refusal")),
            ({"content": "a", "refusal": None}, "length", ("a", "length")),
            ({"content": None}, "content_filter", ("", "content_filter")),
            ({"content": "", "reasoning_content": "so much"}, "length", ("", "length")),
            ({"content": "a"}, "sensitive", ("a", "sensitive")),
            ({"content": "a"}, None, ("a", "")),
            ({"content": "a"}, 3, ("a", "")),
            ({"content": "a"}, "MAX_TOKENS", ("a", "MAX_TOKENS")),
            ({"content": [{"type": "text", "text": "a"}, {"text": "b"}]}, "stop", ("ab", "stop")),
            ({"content": "\ud800"}, "stop", ("\ud800", "stop")),
            (
                None,
                "content_filter: PROHIBITED_CONTENT",
                ("", "content_filter: PROHIBITED_CONTENT"),
            ),
            ({}, "SAFETY", ("", "SAFETY")),
            (
                {"content": [{"type": "thinking", "thinking": NESTED}, {"text": "a"}]},
                "stop",
                ("a", "stop"),
            ),
            ({"content": None, "reasoning_content": '{"a": []}'}, "stop", ('{"a": []}', "stop")),
            (
                {"content": None, "tool_calls": [CALL]},
                "tool_calls",
                ('{"1": "same"}', "tool_calls"),
            ),
        )
    ),
    (
        {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}, "model": "m-1"},
        "",
        "content_filter",
    ),
    ({"choices": None, "prompt_filter_results": [FILTERED], "model": "m-1"}, "", "content_filter"),
    ({**completion({"content": ""}), "prompt_filter_results": [FILTERED]}, "", "content_filter"),
    (events("1. a", "b"), "1. ab", ""),
    *(
        (body, "1. a", "stop")
        for body in (
            b"data: " + WHOLE + DONE,
            WHOLE + DONE,
            json.dumps(completion({"content": "1. a"}), indent=1).encode() + DONE,
            b": PROCESSING\n\n" + WHOLE,
            b"event: message\nid: 1\ndata: " + WHOLE + b"\nretry: 5\n",
        )
    ),
    (
        b'data: {"model": "m-1", "choices": [{"delta": {"reasoning": "{\\"a\\": 1}"}}]}',
        '{"a": 1}',
        "",
    ),
]
USAGES: list[tuple[Any, tuple[int, int] | None]] = [  # as reported, and as counted; None: unknown
    (USAGE, (5, 7)),
    ({"total_tokens": 12}, (0, 12)),
    ({"input_tokens": 5, "output_tokens": 7}, (5, 7)),
    ({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 212}, (5, 207)),  # with reasoning
    ({"prompt_tokens": 5, "total_tokens": 12}, (5, 7)),
    ({"completion_tokens": 7, "total_tokens": 12}, (5, 7)),
    ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": 12}, (0, 12)),
    *(
        (usage, None)
        for usage in (
            {"prompt_tokens": 0, "completion_tokens": 0},  # some servers don't count
            {"prompt_tokens": 0, "completion_tokens": 7},
            None,
            {},
            {"prompt_tokens": 5},
            {"input_tokens": 5},
            {"prompt_tokens": -1, "completion_tokens": 1},
            {"prompt_tokens": "5", "completion_tokens": 1},
            {"prompt_tokens": True, "completion_tokens": 1},
            {"prompt_tokens": 1e30, "completion_tokens": 1},
            {"prompt_tokens": 10**8 + 1, "completion_tokens": 1},
            {"prompt_tokens": 1, "completion_tokens": 1 << 40},
            [1, 2],
        )
    ),
]
FAILURES: list[tuple[Any, str]] = [  # response and reason
    *(
        (body, "broken_reply")
        for body in (
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
            b'{"choices": [' + b"[]," * 1_000_000 + b"[]]}",
            b"data: [DONE]",
            b"data: {",
            b'data: {"error": {"message": "overloaded"}}',
            NESTED,
        )
    ),
    *(
        (completion({"content": "a"}, finish), "server_error")
        for finish in ("network_error", "error", "abort", "ERROR", "MALFORMED_FUNCTION_CALL")
    ),
    *(
        (completion(message, finish), "empty_answer")
        for message, finish in (
            ({"content": ""}, "stop"),
            ({"content": None}, None),
            ({"content": " \n"}, "eos"),
            ({}, "stop"),
            ({"content": NESTED}, "stop"),
            ({"content": None, "tool_calls": [None, 3], "reasoning": "so much"}, "stop"),
            ({"content": "<think>So much.</think>\n"}, "stop"),
            ({"content": "<think>So much."}, "stop"),
        )
    ),
    (
        b'data: {"choices": [{"delta": {"reasoning": "so much"}, "finish_reason": "stop"}]}',
        "empty_answer",
    ),
    (
        {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}},
        "broken_reply",
    ),
    *(
        ({"error": {"message": "upstream says no", "code": code}}, "broken_reply")
        for code in (502, "402", None)
    ),
    (
        completion({"content": ""}, error={"message": "upstream says no", "code": 502}),
        "broken_reply",
    ),
    (
        {"choices": [{"error": {"message": "no", "code": 502}, "finish_reason": "error"}]},
        "server_error",
    ),
]
RESPONSES = [
    *(response for response, *_ in ANSWERS),
    *(completion({"content": "a"}, usage=usage) for usage, _ in USAGES),
    *(response for response, _ in FAILURES),
]
GOOD = completion({"content": "1. So it is said."}, usage=USAGE)


def text_of(number: int) -> str:
    return f"This is case number {number}."


def run(
    out: Path, response: Callable[[str], Any], texts: list[str], **options: Any
) -> llm_labeler.Labelled:
    """Label texts with a server that responds to each question in this way."""

    def respond(path: str, body: Any) -> Any:
        if path.endswith("models"):
            return None
        value = response(json.loads(body["messages"][-1]["content"].rpartition("Sentence: ")[2]))
        return reply(200, value if isinstance(value, bytes) else json.dumps(value))

    with serve(Options(respond=respond)) as server:
        llm = {"kind": "server", "model": "emulated", "base_url": server.base_url, "attempts": 1}
        given = {"polarity": "positive", "keep_going": True, **options}
        return llm_labeler.generate(texts, llm={"mine": llm}, out=out, **given)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], llm_labeler.Shown]:
    """What was stored about a case."""
    texts = {text_of(number): response for number, response in enumerate(RESPONSES)}
    settings = {"breaker.max_failures": 1.0, "breaker.refusals": 10**6}
    result = run(
        tmp_path_factory.mktemp("replies") / "out",
        lambda text: texts.get(text, GOOD),
        [*texts, "A usual text."],
        settings=settings,
    )
    unknown = sum(usage is None for _, usage in USAGES) + len(ANSWERS)
    # Failures are charged, too, as they may have been billed.
    assert result.asked.spent.estimated == unknown + len(FAILURES)
    return cache(lambda number: llm_labeler.show(text_of(number), work=result.work))


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_answers(shown: Callable[[int], llm_labeler.Shown], number: int) -> None:
    (answer,) = shown(number).answers
    assert (answer.reply.raw, answer.reply.finish, answer.reply.model) == (
        *ANSWERS[number][1:],
        "m-1",
    )
    assert answer.estimated


@pytest.mark.parametrize("number", range(len(USAGES)))
def test_usage(shown: Callable[[int], llm_labeler.Shown], number: int) -> None:
    (answer,) = shown(len(ANSWERS) + number).answers
    usage, counted = USAGES[number][1], answer.reply.usage
    assert counted is not None
    assert answer.estimated == (usage is None)
    assert usage is None or (counted.prompt_tokens, counted.completion_tokens) == usage


@pytest.mark.parametrize("number", range(len(FAILURES)))
def test_unusable_responses(shown: Callable[[int], llm_labeler.Shown], number: int) -> None:
    (failure,) = shown(len(ANSWERS) + len(USAGES) + number).failures
    assert (failure.reason, failure.final) == (FAILURES[number][1], False)
    assert len(failure.detail) < 200


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (402, RemoteError, "the account is exhausted"),
        ("insufficient_quota", RemoteError, "the account is exhausted"),
        (403, AuthError, "refused a call without a key with HTTP 403"),
        (404, RemoteError, "HTTP 404 although the server lists emulated"),
    ],
)
def test_a_refusal_in_a_response_with_status_200(
    code: Any, error: type[PairkitError], message: str, tmp_path: Path
) -> None:
    fault = {"error": {"message": "upstream says no: no such model", "code": code}}
    empty = {**fault, **completion({"content": None})}
    for number, value in enumerate((fault, {**fault, "choices": []}, empty, {"choices": [fault]})):
        with pytest.raises(error, match=message):
            run(tmp_path / str(number), lambda _, value=value: value, ["A text."], keep_going=False)
