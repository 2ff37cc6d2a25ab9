"""Anthropic's and Gemini's protocols: requests by hand, answers of every kind, and where keys go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llm_labeler._emulator import Faults, Options, serve
from llm_labeler._finish import ending_of
from llm_labeler._provider import CallFailed
from llm_labeler._providers.anthropic import AnthropicDialect
from llm_labeler._providers.gemini import GeminiDialect
from llm_labeler._providers.server import ServerProvider
from llm_labeler._records import Ask, Message, Usage
from llm_labeler._settings import LlmSettings
from pairkit.errors import AuthError, ConfigError, RemoteError
from pairkit.openai_api.refusals import Refused
from tests.llm_labeler.llm_server import (
    ENVIRON,
    KEY,
    SENTENCES,
    an_ask,
    check,
    http,
    playing_back,
    provider,
    replies,
    reply_of,
    run,
)

CHAT = (
    Message("system", "You rewrite."),
    Message("user", "One?"),
    Message("assistant", "1. Two."),
    Message("user", "Three?"),
)
KINDS = ("anthropic", "gemini")


def claude(**fields: Any) -> AnthropicDialect:
    return AnthropicDialect("claude", LlmSettings(kind="anthropic", model="claude-haiku-4-5", **fields))


def gemini(**fields: Any) -> GeminiDialect:
    return GeminiDialect("gemini", LlmSettings(kind="gemini", model="gemini-2.5-flash", **fields))


def test_a_question_to_claude() -> None:
    dialect = claude(temperature=0.5, max_tokens=100, extra={"output_config": {"effort": "low"}})
    ask = Ask(an_ask().key, CHAT, SENTENCES)
    assert dialect.body(ask, dialect.form) == {
        "model": "claude-haiku-4-5",
        "max_tokens": 100,
        "system": "You rewrite.",
        "messages": [
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "1. Two."},
            {"role": "user", "content": "Three?"},
        ],
        "temperature": 0.5,
        "output_config": {"format": {"type": "json_schema", "schema": SENTENCES}, "effort": "low"},
    }
    assert claude().body(an_ask(), dialect.form).keys() == {"model", "max_tokens", "messages"}


def test_a_question_to_gemini() -> None:
    thoughts = {"thinkingConfig": {"thinkingBudget": 0}}
    dialect = gemini(temperature=0.5, seed=3, max_tokens=100, extra={"generationConfig": thoughts})
    ask = Ask(an_ask().key, CHAT, SENTENCES, sample=1)
    assert dialect.path == "/models/gemini-2.5-flash:generateContent"
    assert dialect.body(ask, dialect.form) == {
        "systemInstruction": {"parts": [{"text": "You rewrite."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "One?"}]},
            {"role": "model", "parts": [{"text": "1. Two."}]},
            {"role": "user", "parts": [{"text": "Three?"}]},
        ],
        "generationConfig": {
            "maxOutputTokens": 100,
            "temperature": 0.5,
            "seed": 4,
            "responseMimeType": "application/json",
            "responseJsonSchema": SENTENCES,
            **thoughts,
        },
    }


def test_a_message_of_claude_without_its_thoughts() -> None:
    reply = claude().reply_of(
        {
            "type": "message",
            "model": "claude-haiku-4-5-20251001",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "1. a"},
                {"type": "text", "text": "\n2. b"},
            ],
            "stop_reason": "end_turn",
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": None,
                "output_tokens": 7,
            },
        }
    )
    assert (reply.raw, reply.usage) == ("1. a\n2. b", Usage(15, 7))
    assert (ending_of(reply.finish), reply.model) == ("complete", "claude-haiku-4-5-20251001")


def test_an_answer_of_gemini_without_its_thoughts() -> None:
    reply = gemini().reply_of(
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [{"text": "Hm.", "thought": True}, {"text": "1. a"}],
                    },
                    "finishReason": "MAX_TOKENS",
                }
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
            "modelVersion": "gemini-2.5-flash",
        }
    )
    assert (reply.raw, reply.usage, ending_of(reply.finish)) == ("1. a", Usage(10, 7), "cut")
    blocked = gemini().reply_of({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    assert (blocked.raw, ending_of(blocked.finish), blocked.usage) == ("", "filtered", None)


@pytest.mark.parametrize("dialect", [claude(), gemini()])
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"content": "text"},
        {"candidates": [[]]},
        {"promptFeedback": 3},
        {"error": "x"},
        json.loads("[" * 900 + "]" * 900),
    ],
)
def test_what_is_no_answer_is_a_broken_reply(dialect: Any, value: Any) -> None:
    with pytest.raises(CallFailed, match="broken_reply"):
        dialect.reply_of(value)


@pytest.mark.parametrize(
    ("dialect", "value"),
    [
        (
            claude(),
            {"content": [{"type": "text", "text": 3}, 7, {"type": "text"}], "usage": {"input_tokens": -1}},
        ),
        (gemini(), {"candidates": [{"content": {"parts": [{"text": 3}, 7]}}], "usageMetadata": {"x": 1}}),
        (gemini(), {"candidates": [{"content": 1}]}),
    ],
)
def test_what_stands_where_texts_and_counts_should_be_is_left_out(dialect: Any, value: Any) -> None:
    reply = dialect.reply_of(value)
    assert (reply.raw, reply.usage, reply.finish, reply.model) == ("", None, "", "")


def test_errors_in_the_place_of_answers() -> None:
    with pytest.raises(Refused) as refused:
        claude().reply_of({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    assert refused.value.refusal.may_pass
    with pytest.raises(Refused) as refused:
        gemini().reply_of({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}})
    assert refused.value.refusal.status == 429
    with pytest.raises(CallFailed, match="the model failed"):
        gemini().reply_of({"candidates": [{"finishReason": "MALFORMED_RESPONSE"}]})


@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_faults_through_the_emulator(kind: str) -> None:
    asks = [an_ask(number, schema=SENTENCES if number % 2 else None) for number in range(40)]
    with serve(Options(api_key=KEY), Faults(share=0.3, first=2, retry_after_s=0.01)) as server:
        asked = provider(server.base_url, kind=kind)
        found = run(replies(asked, asks))
        assert server.stats.asked_again == 0
    assert all("Patient" in reply.raw and reply.usage for reply in found)
    assert {reply.raw.startswith("{") for reply in found} == {True, False}


@pytest.mark.parametrize(("kind", "header"), [("anthropic", "x-api-key"), ("gemini", "x-goog-api-key")])
def test_the_key_goes_in_the_makers_header_alone(kind: str, header: str) -> None:
    with serve(Options(api_key=KEY)) as server:
        check(asked := provider(server.base_url, kind=kind))
        reply_of(provider(server.base_url, kind=kind))
        with pytest.raises(AuthError, match="OTHER_KEY"):
            check(provider(server.base_url, kind=kind, api_key_env="OTHER_KEY"))
        with pytest.raises(ConfigError, match="no such model 'another'"):
            check(provider(server.base_url, kind=kind, model="another"))
        heard = server.requests
    assert asked.key_variable == f"{kind.upper()}_API_KEY"
    assert all("authorization" not in request.headers for request in heard)
    assert {request.headers[header] for request in heard} == {KEY, "sk-wrong"}
    assert all(KEY not in request.path + str(request.query) for request in heard)


def test_a_key_that_nobody_named_goes_to_the_maker_alone() -> None:
    at_home = {
        kind: ServerProvider(kind, LlmSettings(kind=kind, model="m"), environ=ENVIRON) for kind in KINDS
    }
    assert [at_home[kind].address.host for kind in KINDS] == [
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
    ]
    assert [at_home[kind].key_variable for kind in KINDS] == ["ANTHROPIC_API_KEY", "GEMINI_API_KEY"]
    elsewhere = provider("https://gateway.example/v1", kind="anthropic", api_key_env=None)
    assert elsewhere.key_variable is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_schemas_is_asked_without_one(kind: str) -> None:
    said = {
        "anthropic": "output_config: Extra inputs are not permitted",
        "gemini": "Unknown name \"responseJsonSchema\" at 'generation_config'",
    }[kind]
    refused = http(
        400, json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    )
    good = {
        "anthropic": {"content": [{"type": "text", "text": "1. a"}], "stop_reason": "end_turn"},
        "gemini": {"candidates": [{"content": {"parts": [{"text": "1. a"}]}, "finishReason": "STOP"}]},
    }[kind]
    with playing_back(refused, http(200, json.dumps(good))) as url:
        assert reply_of(provider(url, kind=kind), an_ask(schema=SENTENCES)).raw == "1. a"
    with playing_back(refused) as url, pytest.raises(ConfigError, match='set structured = "auto"'):
        reply_of(provider(url, kind=kind, structured="strict"), an_ask(schema=SENTENCES))


REFUSALS: list[tuple[str, dict[str, Any], str, type[Exception], str]] = [
    (
        *("anthropic", {"temperature": 0.7}, "`temperature` is deprecated for this model."),
        *(ConfigError, "not take temperature"),
    ),
    (
        *("anthropic", {}, "max_tokens: 99999999 > 64000, which is the maximum allowed"),
        *(ConfigError, "not take max_tokens"),
    ),
    (
        *(
            "anthropic",
            {"extra": {"thinking": {"type": "disabled"}}},
            "thinking.type: disabled is not supported",
        ),
        *(ConfigError, "not take thinking"),
    ),
    (
        *("anthropic", {}, "Your credit balance is too low to access the Anthropic API."),
        *(RemoteError, "account is exhausted"),
    ),
    ("anthropic", {}, "prompt is too long: 210000 tokens > 200000 maximum", CallFailed, "rejected"),
    (
        *("gemini", {"temperature": 3}, "Invalid value at temperature: must be in [0, 2]"),
        *(ConfigError, "not take temperature"),
    ),
    ("gemini", {}, "API key not valid. Please pass a valid API key.", AuthError, "GEMINI_API_KEY"),
    ("gemini", {}, "The input token count exceeds the maximum context size", CallFailed, "rejected"),
]


@pytest.mark.parametrize(("kind", "fields", "message", "error", "match"), REFUSALS)
def test_what_a_refusal_means(
    kind: str, fields: dict[str, Any], message: str, error: type[Exception], match: str
) -> None:
    body = {"error": {"type": "invalid_request_error", "code": 400, "message": message}}
    with playing_back(http(400, json.dumps(body))) as url, pytest.raises(error, match=match):
        reply_of(provider(url, kind=kind, **fields))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"kind": "anthropic", "seed": 1}, "takes no seed"),
        ({"kind": "anthropic", "extra": {"system": "x"}}, "extra holds system"),
        ({"kind": "anthropic", "limit_field": "max_tokens"}, "limit_field is for servers of OpenAI"),
        ({"kind": "gemini", "extra": {"contents": []}}, "extra holds contents"),
        ({"kind": "gemini", "extra": {"generationConfig": {"seed": 1}}}, "generationConfig holds seed"),
        ({"kind": "gemini", "model": "../files"}, "is no name of a Gemini model"),
    ],
)
def test_entries_that_can_not_be(fields: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        provider("http://localhost:1/v1", **fields)
