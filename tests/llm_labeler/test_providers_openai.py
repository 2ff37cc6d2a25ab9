"""Calls to the emulated server: requests, replies and adaptation."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from llm_labeler.clients.llm_server import ServerProvider
from llm_labeler.clients.llms import build
from llm_labeler.records import Ask, CallFailed, Message, Provider, TokenUsage
from llm_labeler.settings import LlmSettings
from pairkit.base.errors import ConfigError
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
from tests.support.llm import Options, Server, serve


def sent(server: Server) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in server.requests if request.method == "POST"]


def test_request_and_reply_of_one_call() -> None:
    with serve() as server:
        asked = provider(server.base_url, temperature=0.2, top_p=0.9, seed=7, extra={"min_p": 0.1})
        reply = reply_of(asked)
        assert reply.raw.count("\n") == 2
        assert reply.raw.startswith("1. ")
        assert (reply.finish, reply.model) == ("stop", "emulated")
        assert reply.usage is not None
        max_usage = asked.max_usage(an_ask())
        assert reply.usage.prompt_tokens <= max_usage.prompt_tokens
        assert reply.usage.completion_tokens <= max_usage.completion_tokens == 512
        assert sent(server) == [
            {
                "model": "emulated",
                "messages": [{"role": "user", "content": an_ask().messages[0].content}],
                "max_tokens": 512,
                "temperature": 0.2,
                "top_p": 0.9,
                "seed": 7,
                "min_p": 0.1,
            }
        ]


def test_requests_differ_by_kind() -> None:
    with serve() as server:
        with_schema = an_ask(schema=SENTENCES)
        for kind in ("openai", "openai_compatible", "glm"):
            reply_of(provider(server.base_url, kind=kind), with_schema)
        openai, own, glm = sent(server)
        assert openai["max_completion_tokens"] == 512
        assert "max_tokens" not in openai
        expected = {"name": "answer", "schema": SENTENCES, "strict": True}
        assert openai["response_format"] == {"type": "json_schema", "json_schema": expected}
        assert own["max_tokens"] == 512
        assert own["response_format"] == openai["response_format"]
        assert glm["thinking"] == {"type": "disabled"}
        assert "response_format" not in glm  # the prompt doesn't describe the JSON
        says = Ask(with_schema.key, (Message("user", "Answer with JSON only."),), SENTENCES)
        reply_of(provider(server.base_url, kind="glm", extra={"thinking": {"type": "enabled"}}), says)
        assert sent(server)[-1]["response_format"] == {"type": "json_object"}
        assert sent(server)[-1]["thinking"] == {"type": "enabled"}


def test_refused_fields_are_not_sent_again() -> None:
    refuses = frozenset(("response_format", "max_completion_tokens"))
    with serve(Options(refuses=refuses)) as server:
        asked = provider(server.base_url, kind="openai")
        result = run(replies(asked, (an_ask(number, schema=SENTENCES) for number in range(40))))
        assert len(result) == 40
        assert server.stats.answered == server.stats.requests == 40
        # only the first 16 concurrent calls may meet both refusals
        assert len(sent(server)) <= 40 + 2 * 16
        assert sent(server)[-1].keys() == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("refuses", "fields", "says"),
    [
        ("response_format", {"structured": "strict"}, r'support json_schema .*structured = "auto" in \[llm'),
        ("temperature", {"temperature": 0.3}, r"refused the value of temperature .*\[llm.llama\]"),
    ],
)
def test_refused_settings_are_reported(refuses: str, fields: dict[str, Any], says: str) -> None:
    with serve(Options(refuses=frozenset((refuses,)))) as server, pytest.raises(ConfigError, match=says):
        reply_of(provider(server.base_url, **fields), an_ask(schema=SENTENCES))


@pytest.mark.parametrize(
    "message",
    [
        'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
        "[{'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'}]",
        "`seed` is not supported",
    ],
)
def test_a_setting_that_is_named_only_in_the_message(message: str) -> None:
    refused = http(400, json.dumps({"error": {"message": message}}))
    with playing_back(refused) as url, pytest.raises(ConfigError, match=r"the value of seed .*\[llm.llama\]"):
        reply_of(provider(url, seed=3), an_ask(schema=SENTENCES))


def test_lone_surrogates_are_rejected() -> None:
    with serve() as server:
        asked = provider(server.base_url)
        ask = Ask(an_ask().key, (Message("user", "a\ud800"),))
        assert asked.max_usage(ask).prompt_tokens > 4
        with pytest.raises(CallFailed) as caught:
            reply_of(asked, ask)
        assert (caught.value.reason, caught.value.retry) == ("rejected", False)
        odd = Ask(an_ask().key, (Message("user", 'nul \x00, emoji 🙂, "quotes"\r\n, {size}'),))
        assert reply_of(provider(server.base_url), odd).finish == "stop"
        assert sent(server)[-1]["messages"][0]["content"] == odd.messages[0].content


def test_successful_checks() -> None:
    with serve(Options(models=("emulated", "b"), api_key=KEY)) as server:
        check(provider(server.base_url, kind="openai"))
        check(provider(server.base_url + "/", api_key_env="OPENAI_API_KEY"))
    with serve(Options(lists_models=False)) as server:
        check(provider(server.base_url))
    with serve(Options(models=("emulated:latest",))) as server:
        check(provider(server.base_url))
        check(provider(server.base_url, kind="glm", model="glm-not-listed"))
    with serve(Options(("models/gemini-2.5-flash",))) as server:
        check(provider(server.base_url, kind="gemini", model="gemini-2.5-flash"))


def test_the_key_is_never_printed() -> None:
    asked = provider("http://localhost:1/v1", kind="openai")
    assert asked.channel.key is not None
    assert asked.channel.key.secret == KEY
    shown = f"{asked!r} {vars(asked)!r} {asked.channel.key!r} {asked.parameters_text}"
    assert KEY not in shown


def test_parameters_have_the_fields_that_affect_answers() -> None:
    def of(url: str = "http://localhost:1/v1", **fields: Any) -> str:
        return provider(url, **fields).parameters

    assert of() == of(concurrency=3, rpm=5, timeout_s=1.0, price_in=1.0, attempts=2)
    changes: list[dict[str, Any]] = [
        {"kind": "openai"},
        {"model": "b"},
        {"temperature": 0.5},
        {"top_p": 0.5},
        {"seed": 1},
        {"max_tokens": 9},
        {"structured": "off"},
        {"extra": {"min_p": 0.1}},
        {"url": "http://localhost:2/v1"},
    ]
    assert len({of(), *(of(**change) for change in changes)}) == len(changes) + 1
    assert of("http://localhost:1/v1/") == of()


def test_the_bound_counts_bytes_and_the_schema() -> None:
    asked = provider("http://localhost:1/v1", max_tokens=9)
    short = Ask(an_ask().key, (Message("user", "é"),))
    long = Ask(an_ask().key, (Message("user", "é" * 101),))
    assert asked.max_usage(long).prompt_tokens - asked.max_usage(short).prompt_tokens == 200
    assert asked.max_usage(short) == TokenUsage(asked.max_usage(short).prompt_tokens, 9)
    with_schema = Ask(short.key, short.messages, SENTENCES)
    assert asked.max_usage(with_schema).prompt_tokens > asked.max_usage(short).prompt_tokens + 50
    plain = provider("http://localhost:1/v1", structured="off")
    assert plain.max_usage(with_schema).prompt_tokens == plain.max_usage(short).prompt_tokens


def test_building_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = LlmSettings(kind="openai", model="gpt-4o-mini", rpm=500, tpm=9, concurrency=3, attempts=2)
    monkeypatch.setattr("os.environ", dict[str, str]())
    built: Provider = build("chatgpt", entry)  # the key is read later
    assert (built.name, built.model) == ("chatgpt", "gpt-4o-mini")
    assert (built.rpm, built.tpm, built.concurrency, built.attempts) == (500, 9, 3, 2)
    assert built.leaves_machine
    with pytest.raises(ConfigError, match="no key"):
        run(built.check())
    run(built.close())
    assert ServerProvider("chatgpt", entry, environ=ENVIRON).parameters == built.parameters
    with pytest.raises(ConfigError, match="no model"):
        build("mine", LlmSettings(kind="openai"))


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        *(({name: 1}, f"extra has {name}") for name in ("model", "n", "stream", "max_tokens", "api_key")),
        ({"since": time}, "llm llama: extra can't be written as JSON"),
        ({"x": float("nan")}, "llm llama: extra can't be written as JSON"),
    ],
)
def test_extra_can_not_set_reserved_fields(extra: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        provider("http://localhost:1/v1", extra=extra)


@pytest.mark.parametrize(
    ("kind", "url", "variable"),
    [
        ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("glm", "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY"),
        ("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    ],
)
def test_each_provider_has_its_own_address_and_key(kind: str, url: str, variable: str) -> None:
    asked = ServerProvider("mine", LlmSettings(kind=kind, model="m"), environ={variable: KEY})
    assert (asked.address.url, asked.key_variable) == (url, variable)
    assert (asked.channel.key and asked.channel.key.source) == variable
    elsewhere = LlmSettings(kind=kind, model="m", base_url="https://llm.example/v1")
    assert ServerProvider("mine", elsewhere, environ=ENVIRON).channel.key is None


def test_anthropics_endpoint_has_no_list_of_models_and_takes_no_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("llm_labeler.clients.llm_server.ANTHROPIC_HOST", "127.0.0.1")
    with serve() as server:
        check(provider(server.base_url, kind="anthropic"))
        assert server.requests == []
        with pytest.raises(ConfigError, match="ignores schemas"):
            provider(server.base_url, kind="anthropic", structured="strict")
