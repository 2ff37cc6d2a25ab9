"""LLMs: their prices, keys and addresses, and functions as LLMs."""

import asyncio
import json
from functools import cache

import llm_labeler
from llm_labeler import CallFailed
from tests.support.shorthand import (
    config_error,
    each_line,
    parametrize,
    raises,
    text_table,
)

from .llm_server import KEY, address_and_key

TEXTS = ["The nurse takes a pill.", "A doctor drinks cold water."]
OWN = {"kind": "openai_compatible", "model": "m", "local": True}
# US dollars per million prompt and answer tokens of entries.
PRICES = text_table("""
    # in | out | kind | model | address | other fields
    0.15 | 0.6 | openai | gpt-4o-mini |  |
    0.15 | 0.6 | openai | gpt-4o-mini-2024-07-18 |  |
    5 | 15 | openai | gpt-4o-2024-05-13 |  |
    None | None | openai | gpt-99 |  |
    None | None | openai | ft:gpt-4o-mini:me |  |
    0.1 | 0.6 | openai | gpt-4o-mini |  | {"price_in": 0.1}
    0 | 0 | openai | gpt-4o-mini |  | {"price_in": 0.0, "price_out": 0.0}
    # gateways pass on the price, also local ones
    0.15 | 0.6 | openai | gpt-4o-mini | https://x.example/v1 |
    0.15 | 0.6 | openai | gpt-4o-mini | http://localhost:4000/v1 |
    2.5 | 10 | server | openai/gpt-4o | http://127.0.0.1:4000/v1 |
    2.5 | 10 | openai | gpt-4o | http://localhost:4000/v1 | {"local": true}
    # closed models are never free, and a variant's price is unknown
    2.5 | 10 | openai_compatible | GPT-4o | http://localhost:4000/v1 | {"local": true}
    2.5 | 10 | openai_compatible | OpenAI/GPT-4o-2024-08-06 | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | gpt-4o:extended | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | openai/gpt-4o@2024 | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | ft:gpt-4o-mini:me | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | gpt-5.1 | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | anthropic/claude-sonnet-4.5 | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | vertex_ai:gemini-2.5-pro | http://localhost:4000/v1 | {"local": true}
    None | None | openai_compatible | o3-mini | http://localhost:4000/v1 | {"local": true}
    0 | 0 | openai_compatible | openai/gpt-oss-20b | http://localhost:4000/v1 | {"local": true}
    # in yuan, but for z.ai
    0 | 0 | glm | glm-4-flash |  |
    None | None | glm | glm-4.6 |  |
    0.6 | 2.2 | glm | glm-4.6 | https://api.z.ai/api/paas/v4 |
    # private servers without a key are free
    0 | 0 | openai_compatible | m | http://localhost:8000/v1 |
    0 | 0 | openai_compatible | m | http://[::1]:8000/v1 |
    0 | 0 | openai_compatible | m | http://10.0.0.7:8000/v1 |
    0 | 0 | openai_compatible | m | http://[fd00::7]:8000/v1 |
    0 | 0 | openai_compatible | m | http://ollama:11434/v1 |
    0 | 0 | openai_compatible | m | http://gpu.home.arpa/v1 |
    0 | 0 | openai_compatible | z-ai/glm-4.6 | http://localhost:8000/v1 |
    None | None | openai_compatible | m | http://localhost:8000/v1 | {"api_key_env": "A_KEY"}
    0 | 0 | openai_compatible | m | http://localhost:8000/v1 | {"api_key_env": "A_KEY", "local": true}
    None | None | openai_compatible | claude-sonnet-4.5 | http://localhost:8000/v1 |
    None | None | openai_compatible | m | http://8.8.8.8/v1 |
    None | None | openai_compatible | m | http://localhost.example.com/v1 |
    0.6 | 2.2 | openai_compatible | z-ai/glm-4.6 | http://api.example.com/v1 |
    0 | 0 | openai_compatible | m | http://localhost:8000/v1 | {"local": true}
    0 | 0 | openai_compatible | glm-4.6 | http://localhost:8000/v1 | {"local": true}
    0 | 2 | openai_compatible | m | http://localhost:1/v1 | {"local": true, "price_out": 2}
""")


def listed(*entries):
    """The listed LLMs by name, with these entries as `llm-0`, `llm-1`, …"""
    fields = {
        f"llm.llm-{number}.{key}": value
        for number, entry in enumerate(entries)
        for key, value in entry.items()
    }
    return {llm.name: llm for llm in llm_labeler.llms(settings=fields)}


@cache
def priced():
    entries = []
    for _, _, kind, model, url, more in PRICES:
        address = {"base_url": url} if url else {}
        entries.append(
            {"kind": kind, "model": model, **address, **json.loads(more or "{}")}
        )
    return listed(*entries)


@parametrize("number", range(len(PRICES)))
def test_prices(number):
    llm = priced()[f"llm-{number}"]
    expected = [
        None if price == "None" else float(price) for price in PRICES[number][:2]
    ]
    assert [llm.price_in, llm.price_out] == expected, PRICES[number]


def test_built_in_llms_have_prices():
    built_in = [priced()[name] for name in ("chatgpt", "llama", "chatglm")]
    assert None not in [
        price for llm in built_in for price in (llm.price_in, llm.price_out)
    ]


@parametrize(
    "entry, message",
    [
        *(
            (json.loads(entry), message)
            for message, entry in text_table(r"""
        no address; set base_url in \[llm.llm-0\] | {"kind": "openai_compatible", "model": "m"}
        llm llm-0: base_url | {"kind": "openai_compatible", "model": "m", "base_url": "host:8000/v1"}
        no model | {"kind": "openai"}
        Anthropic's endpoint ignores schemas | {"kind": "anthropic", "model": "m", "structured": "strict"}
        extra has model | {"kind": "openai", "model": "m", "extra": {"model": 1}}
        extra has n | {"kind": "openai", "model": "m", "extra": {"n": 1}}
        extra has stream | {"kind": "openai", "model": "m", "extra": {"stream": 1}}
        extra has max_tokens | {"kind": "openai", "model": "m", "extra": {"max_tokens": 1}}
        has api_key; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"api_key": "?"}]}}
        has x-apiKey; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"x-apiKey": "?"}]}}
        has token; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"token": "?"}]}}
        has access_token; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"access_token": "?"}]}}
        has Authorization; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"Authorization": "?"}]}}
        has password; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"password": "?"}]}}
        has secret; .*api_key_env | {"kind": "openai", "model": "m", "extra": {"x": [{"secret": "?"}]}}
        """)
        ),
        *(
            ({**OWN, "base_url": url}, "local = true, but .* is another machine")
            for url in ("http://10.0.0.7:8000/v1", "https://api.openai.com/v1")
        ),
        *(
            (
                {"kind": "openai", "model": "m", "extra": {"x": value}},
                "extra can't be written as JSON",
            )
            for value in (float("nan"), {1, 2})
        ),
    ],
)
def test_inconsistent_entries_are_refused(entry, message):
    with config_error(message) as caught:
        listed(entry)
    assert "\n" not in str(caught.value)


@each_line("""
    kind, url, variable
    openai | https://api.openai.com/v1 | OPENAI_API_KEY
    glm | https://open.bigmodel.cn/api/paas/v4 | ZHIPUAI_API_KEY
    anthropic | https://api.anthropic.com/v1 | ANTHROPIC_API_KEY
    gemini | https://generativelanguage.googleapis.com/v1beta/openai | GEMINI_API_KEY
""")
def test_each_provider_has_its_own_address_and_key(kind, url, variable, monkeypatch):
    assert address_and_key(kind) == (url, KEY)
    assert address_and_key(kind, base_url="https://llm.example/v1") == (
        "https://llm.example/v1",
        None,
    )
    entries = (
        {"kind": kind, "model": "m"},
        {"kind": kind, "model": "m", "base_url": "https://llm.example/v1"},
    )
    for is_set in (False, True):
        monkeypatch.setenv(variable, KEY if is_set else "")
        own, elsewhere = (listed(*entries)[f"llm-{number}"] for number in (0, 1))
        assert (own.key_variable, own.has_key) == (variable, is_set)
        assert (elsewhere.key_variable, elsewhere.has_key) == (None, False)


# Functions


def by_function(function, out, **options):
    given = {"out": out, "polarity": "positive", **options}
    return llm_labeler.generate(TEXTS, llm={"mine": function}, **given)


def answer(prompt):
    # The system message and the question.
    assert "\n\nWrite 3 different sentences" in prompt
    return f"1. So it is, as they say: {prompt[-20:]}"


async def later(prompt):
    await asyncio.sleep(0)
    return answer(prompt)


class Answering:
    def __call__(self, prompt):
        return answer(prompt)


@parametrize("function", [answer, later, Answering(), lambda prompt: later(prompt)])
def test_plain_async_and_objects(function, out):
    result = by_function(function, out)
    assert (result.positives, result.asked.spent.estimated, result.cost) == (2, 2, None)


@parametrize(
    "raised, reason",
    [
        (TimeoutError("slow"), "timeout"),
        (ConnectionError("gone"), "connection"),
        (CallFailed("x", "y"), "x"),
    ],
)
def test_temporary_failures_of_functions(raised, reason, tmp_path):
    def fails(prompt):
        if "nurse" in prompt:
            raise raised
        return answer(prompt)

    settings = {"llm.mine.attempts": 1}
    result = by_function(fails, tmp_path / "out", settings=settings, keep_going=True)
    assert (result.positives, result.asked.unanswered) == (1, {reason: 1})
    with raises(ZeroDivisionError):
        by_function(lambda _: 1 / 0, tmp_path / "other")


def test_wrong_return_types_and_missing_functions(out):
    with config_error("returned int; expected a str"):
        by_function(len, out)
    with config_error("no function; pass one from Python"):
        by_function({"kind": "function", "model": "m"}, out)


def test_functions_are_priced_and_remote_unless_local(out):
    for is_local, cost in ((False, None), (True, 0.0)):
        settings = {"llm.mine.local": is_local}
        plan = llm_labeler.plan(TEXTS, llm={"mine": answer}, settings=settings, out=out)
        (estimate,) = plan.estimates
        assert (estimate.cost, estimate.leaves_machine) == (cost, not is_local)
    with config_error("mine may send text to another machine"):
        by_function(answer, out, local_only=True)
