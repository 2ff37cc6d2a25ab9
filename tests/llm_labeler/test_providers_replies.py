from __future__ import annotations

import json
from typing import Any

import pytest

from llm_labeler.clients.chat_completions import read_body, reply_of
from llm_labeler.clients.llm_server import _find_address as find_address
from llm_labeler.clients.llm_server import find_prices
from llm_labeler.records import CallFailed, LlmReply, Prices, TokenUsage
from llm_labeler.settings import BUILT_IN_LLMS, LlmSettings
from pairkit.base.errors import ConfigError
from pairkit.base.openai_api.refusals import RefusedCall


def completion(message: Any, finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": finish}], **fields}


def test_a_plain_answer() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    result = reply_of(completion({"content": "<think>x</think>1. a"}, usage=usage))
    assert result == LlmReply("<think>x</think>1. a", "stop", TokenUsage(5, 7), "m-1")


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
        (None, "content_filter: PROHIBITED_CONTENT", ("", "content_filter: PROHIBITED_CONTENT")),
        ({}, "SAFETY", ("", "SAFETY")),
        (
            {"content": [{"type": "thinking", "thinking": [{"text": "b"}]}, {"text": "a"}]},
            "stop",
            ("a", "stop"),
        ),
        ({"content": None, "reasoning_content": '{"sentences": []}'}, "stop", ('{"sentences": []}', "stop")),
        (
            {
                "content": None,
                "tool_calls": [{"function": {"name": "answer", "arguments": ' {"1": "same"}\n'}}],
            },
            "tool_calls",
            ('{"1": "same"}', "tool_calls"),
        ),
        ({"content": None, "tool_calls": [None, 3], "reasoning": "so much"}, "stop", ("", "stop")),
    ],
)
def test_messages(message: Any, finish: Any, expected: tuple[str, str]) -> None:
    result = reply_of(completion(message, finish))
    assert (result.raw, result.finish) == expected


@pytest.mark.parametrize(
    "usage",
    [
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
    ],
)
def test_invalid_usage_is_ignored(usage: Any) -> None:
    assert reply_of(completion({"content": "a"}, usage=usage)).usage is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"total_tokens": 12}, (0, 12)),
        ({"input_tokens": 5, "output_tokens": 7}, (5, 7)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 212}, (5, 207)),  # with reasoning
        ({"prompt_tokens": 5, "total_tokens": 12}, (5, 7)),
        ({"completion_tokens": 7, "total_tokens": 12}, (5, 7)),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": 12}, (0, 12)),
    ],
)
def test_missing_counts_follow_from_the_total(usage: Any, expected: tuple[int, int]) -> None:
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
        b'{"choices": [' + b"[]," * 1_000_000 + b"[]]}",
        b"data: [DONE]",
        b"data: {",
        b'data: {"error": {"message": "overloaded"}}',
    ],
)
def test_a_broken_body_may_have_been_billed(body: bytes) -> None:
    with pytest.raises(CallFailed) as caught:
        reply_of(read_body(body))
    failed = caught.value
    assert (failed.reason, failed.retry, failed.maybe_billed) == ("broken_reply", True, True)
    assert len(failed.detail) < 200


@pytest.mark.parametrize("finish", ["network_error", "error", "abort", "ERROR", "MALFORMED_FUNCTION_CALL"])
def test_a_model_that_failed_during_its_answer(finish: str) -> None:
    with pytest.raises(CallFailed, match="server_error") as caught:
        reply_of(completion({"content": "a"}, finish))
    assert caught.value.retry
    assert caught.value.maybe_billed


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((402, RefusedCall), (403, RefusedCall), (429, RefusedCall), (502, CallFailed), ("402", CallFailed)),
        *(("insufficient_quota", RefusedCall), ("content_filter", RefusedCall), (None, CallFailed)),
    ],
)
def test_an_error_in_a_response_with_status_200(status: Any, expected: type[Exception]) -> None:
    fault = {"error": {"message": "upstream says no", "code": status}}
    for value in (fault, {**fault, "choices": []}, {"choices": [{**fault, "finish_reason": "error"}]}):
        with pytest.raises(expected, match=r"upstream says no|failed during its answer"):
            reply_of(value)


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}},
        {
            "choices": None,
            "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}],
        },
    ],
)
def test_a_prompt_that_was_filtered_without_a_choice(value: Any) -> None:
    assert reply_of({**value, "model": "m"}) == LlmReply("", "content_filter", None, "m")


def test_an_event_stream_that_breaks_off_has_no_finish_reason() -> None:
    events = [{"model": "m", "choices": [{"delta": {"content": word}}]} for word in ("1. a", "b")]
    body = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in [*events, {"choices": [None], "id": 1}])
    assert reply_of(read_body(body.encode())) == LlmReply("1. ab", "", None, "m")


def test_nested_parts_are_ignored() -> None:
    deep: Any = "a"
    for _ in range(900):
        deep = [{"text": deep}]
    assert reply_of(completion({"content": deep})).raw == ""
    with pytest.raises(CallFailed, match="not an object: list"):
        reply_of(deep)


OWN = {"kind": "openai_compatible", "model": "m", "local": True}


def prices(**fields: Any) -> Prices:
    entry = LlmSettings(**fields)
    return find_prices(entry, find_address("x", entry))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "openai", "model": "gpt-4o-mini"}, (0.15, 0.60)),
        ({"kind": "openai", "model": "gpt-4o-mini-2024-07-18"}, (0.15, 0.60)),
        ({"kind": "openai", "model": "gpt-4o-2024-05-13"}, (5.0, 15.0)),
        ({"kind": "openai", "model": "gpt-99"}, (None, None)),
        ({"kind": "openai", "model": "ft:gpt-4o-mini:me"}, (None, None)),
        ({"kind": "openai", "model": "gpt-4o-mini", "price_in": 0.1}, (0.1, 0.60)),
        ({"kind": "openai", "model": "gpt-4o-mini", "price_in": 0.0, "price_out": 0.0}, (0.0, 0.0)),
        # gateways pass on the price, also local ones
        ({"kind": "openai", "model": "gpt-4o-mini", "base_url": "https://x.example/v1"}, (0.15, 0.60)),
        ({"kind": "openai", "model": "gpt-4o-mini", "base_url": "http://localhost:4000/v1"}, (0.15, 0.60)),
        (
            {"kind": "openai_compatible", "model": "openai/gpt-4o", "base_url": "http://127.0.0.1:4000/v1"},
            (2.5, 10.0),
        ),
        (
            {"kind": "openai", "model": "gpt-4o", "base_url": "http://localhost:4000/v1", "local": True},
            (2.5, 10.0),
        ),
        # closed models are never free, and a variant's price is unknown
        *(
            ({**OWN, "model": model, "base_url": "http://localhost:4000/v1"}, expected)
            for model, expected in (
                ("GPT-4o", (2.5, 10.0)),
                ("OpenAI/GPT-4o-2024-08-06", (2.5, 10.0)),
                ("gpt-4o:extended", (None, None)),
                ("openai/gpt-4o@2024", (None, None)),
                ("ft:gpt-4o-mini:me", (None, None)),
                ("gpt-5.1", (None, None)),
                ("anthropic/claude-sonnet-4.5", (None, None)),
                ("vertex_ai:gemini-2.5-pro", (None, None)),
                ("o3-mini", (None, None)),
                ("openai/gpt-oss-20b", (0.0, 0.0)),
            )
        ),
        ({"kind": "glm", "model": "glm-4-flash"}, (0.0, 0.0)),
        ({"kind": "glm", "model": "glm-4.6"}, (None, None)),  # in yuan
        ({"kind": "glm", "model": "glm-4.6", "base_url": "https://api.z.ai/api/paas/v4"}, (0.60, 2.20)),
        # private servers without a key are free
        *(
            ({"kind": "openai_compatible", "model": model, "base_url": f"http://{host}/v1", **more}, expected)
            for host, model, more, expected in (
                ("localhost:8000", "m", {}, (0.0, 0.0)),
                ("[::1]:8000", "m", {}, (0.0, 0.0)),
                ("10.0.0.7:8000", "m", {}, (0.0, 0.0)),
                ("[fd00::7]:8000", "m", {}, (0.0, 0.0)),
                ("ollama:11434", "m", {}, (0.0, 0.0)),
                ("gpu.home.arpa", "m", {}, (0.0, 0.0)),
                ("localhost:8000", "z-ai/glm-4.6", {}, (0.0, 0.0)),
                ("localhost:8000", "m", {"api_key_env": "A_KEY"}, (None, None)),
                ("localhost:8000", "m", {"api_key_env": "A_KEY", "local": True}, (0.0, 0.0)),
                ("localhost:8000", "claude-sonnet-4.5", {}, (None, None)),
                ("8.8.8.8", "m", {}, (None, None)),
                ("localhost.example.com", "m", {}, (None, None)),
                ("api.example.com", "z-ai/glm-4.6", {}, (0.60, 2.20)),
            )
        ),
        ({**OWN, "base_url": "http://localhost:8000/v1"}, (0.0, 0.0)),
        ({**OWN, "model": "glm-4.6", "base_url": "http://localhost:8000/v1"}, (0.0, 0.0)),
        ({**OWN, "base_url": "http://localhost:1/v1", "price_out": 2}, (0.0, 2.0)),
    ],
)
def test_prices(fields: dict[str, Any], expected: tuple[float | None, float | None]) -> None:
    assert prices(**fields) == Prices(*expected)


def test_the_built_in_members_have_known_prices() -> None:
    for name in ("chatgpt", "llama", "chatglm"):
        result = prices(**BUILT_IN_LLMS[name])
        assert None not in (result.prompt, result.completion)


def test_local_servers_must_be_on_this_machine() -> None:
    for url in ("http://10.0.0.7:8000/v1", "https://api.openai.com/v1"):
        with pytest.raises(ConfigError, match=r"local = true, but .* is another machine"):
            prices(**OWN, base_url=url)


def test_private_servers_need_an_address() -> None:
    with pytest.raises(ConfigError, match=r"no address; set base_url in \[llm.x\]"):
        find_address("x", LlmSettings(kind="openai_compatible", model="m"))
    with pytest.raises(ConfigError, match="llm x: base_url"):
        find_address("x", LlmSettings(kind="openai_compatible", model="m", base_url="host:8000/v1"))
