"""LLMs: their prices, keys and addresses, and functions as LLMs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from llm_labeler import CallFailed
from pairkit import ConfigError

from .llm_server import KEY, address_and_key

TEXTS = ["The nurse takes a pill.", "A doctor drinks cold water."]
OWN = {"kind": "openai_compatible", "model": "m", "local": True}
GATEWAY = "http://localhost:4000/v1"
HERE = "http://localhost:8000/v1"
# Entries with US dollars per million prompt and answer tokens.
PRICES: list[tuple[dict[str, Any], tuple[float | None, float | None]]] = [
    ({"kind": "openai", "model": "gpt-4o-mini"}, (0.15, 0.60)),
    ({"kind": "openai", "model": "gpt-4o-mini-2024-07-18"}, (0.15, 0.60)),
    ({"kind": "openai", "model": "gpt-4o-2024-05-13"}, (5.0, 15.0)),
    ({"kind": "openai", "model": "gpt-99"}, (None, None)),
    ({"kind": "openai", "model": "ft:gpt-4o-mini:me"}, (None, None)),
    ({"kind": "openai", "model": "gpt-4o-mini", "price_in": 0.1}, (0.1, 0.60)),
    ({"kind": "openai", "model": "gpt-4o-mini", "price_in": 0.0, "price_out": 0.0}, (0.0, 0.0)),
    # gateways pass on the price, also local ones
    ({"kind": "openai", "model": "gpt-4o-mini", "base_url": "https://x.example/v1"}, (0.15, 0.60)),
    ({"kind": "openai", "model": "gpt-4o-mini", "base_url": GATEWAY}, (0.15, 0.60)),
    (
        {"kind": "server", "model": "openai/gpt-4o", "base_url": "http://127.0.0.1:4000/v1"},
        (2.5, 10.0),
    ),
    ({"kind": "openai", "model": "gpt-4o", "base_url": GATEWAY, "local": True}, (2.5, 10.0)),
    # closed models are never free, and a variant's price is unknown
    *(
        ({**OWN, "model": model, "base_url": GATEWAY}, expected)
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
        (
            {"kind": "openai_compatible", "model": model, "base_url": f"http://{host}/v1", **more},
            expected,
        )
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
    ({**OWN, "base_url": HERE}, (0.0, 0.0)),
    ({**OWN, "model": "glm-4.6", "base_url": HERE}, (0.0, 0.0)),
    ({**OWN, "base_url": "http://localhost:1/v1", "price_out": 2}, (0.0, 2.0)),
]


def listed(*entries: Mapping[str, Any]) -> dict[str, llm_labeler.Llm]:
    """The listed LLMs by name, with these entries as `llm-0`, `llm-1`, …"""
    fields = {
        f"llm.llm-{number}.{key}": value
        for number, entry in enumerate(entries)
        for key, value in entry.items()
    }
    return {llm.name: llm for llm in llm_labeler.llms(settings=fields)}


@cache
def priced() -> dict[str, llm_labeler.Llm]:
    return listed(*(entry for entry, _ in PRICES))


@pytest.mark.parametrize("number", range(len(PRICES)))
def test_prices(number: int) -> None:
    entry, expected = PRICES[number]
    llm = priced()[f"llm-{number}"]
    assert (llm.price_in, llm.price_out) == expected, entry
    built_in = [priced()[name] for name in ("chatgpt", "llama", "chatglm")]
    assert None not in [price for llm in built_in for price in (llm.price_in, llm.price_out)]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**OWN, "base_url": "http://10.0.0.7:8000/v1"}, "local = true, but .* is another machine"),
        (
            {**OWN, "base_url": "https://api.openai.com/v1"},
            "local = true, but .* is another machine",
        ),
        ({"kind": "openai_compatible", "model": "m"}, r"no address; set base_url in \[llm.llm-0\]"),
        (
            {"kind": "openai_compatible", "model": "m", "base_url": "host:8000/v1"},
            "llm llm-0: base_url",
        ),
        ({"kind": "openai"}, "no model"),
        (
            {"kind": "anthropic", "model": "m", "structured": "strict"},
            "Anthropic's endpoint ignores schemas",
        ),
        *(
            ({"kind": "openai", "model": "m", "extra": {name: 1}}, f"extra has {name}")
            for name in ("model", "n", "stream", "max_tokens")
        ),
        *(
            (
                {"kind": "openai", "model": "m", "extra": {"x": [{name: "?"}]}},
                f"has {name}; .* in api_key_env",
            )
            for name in (
                "api_key",
                "x-apiKey",
                "token",
                "access_token",
                "Authorization",
                "password",
                "secret",
            )
        ),
        (
            {"kind": "openai", "model": "m", "extra": {"x": float("nan")}},
            "extra can't be written as JSON",
        ),
        (
            {"kind": "openai", "model": "m", "extra": {"x": {1, 2}}},
            "extra can't be written as JSON",
        ),
    ],
)
def test_inconsistent_entries_are_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        listed(entry)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "url", "variable"),
    [
        ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("glm", "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY"),
        ("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    ],
)
def test_each_provider_has_its_own_address_and_key(
    kind: str, url: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def by_function(function: Any, out: Path, **options: Any) -> llm_labeler.Labelled:
    given = {"out": out, "polarity": "positive", "progress": False, **options}
    return llm_labeler.generate(TEXTS, llm={"mine": function}, **given)


def answer(prompt: str) -> str:
    assert "\n\nWrite 3 different sentences" in prompt  # the system message and the question
    return f"1. So it is, as they say: {prompt[-20:]}"


async def later(prompt: str) -> str:
    await asyncio.sleep(0)
    return answer(prompt)


class Answering:
    def __call__(self, prompt: str) -> str:
        return answer(prompt)


@pytest.mark.parametrize("function", [answer, later, Answering(), lambda prompt: later(prompt)])
def test_plain_async_and_objects(function: Any, tmp_path: Path) -> None:
    result = by_function(function, tmp_path / "out")
    assert (result.positives, result.asked.spent.estimated, result.cost) == (2, 2, None)


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (TimeoutError("slow"), "timeout"),
        (ConnectionError("gone"), "connection"),
        (CallFailed("x", "y"), "x"),
    ],
)
def test_temporary_failures_of_functions(raised: Exception, reason: str, tmp_path: Path) -> None:
    def fails(prompt: str) -> str:
        if "nurse" in prompt:
            raise raised
        return answer(prompt)

    settings = {"llm.mine.attempts": 1}
    result = by_function(fails, tmp_path / "out", settings=settings, keep_going=True)
    assert (result.positives, result.asked.unanswered) == (1, {reason: 1})
    with pytest.raises(ZeroDivisionError):
        by_function(lambda _: 1 / 0, tmp_path / "other")


def test_wrong_return_types_and_missing_functions(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="returned int; expected a str"):
        by_function(len, tmp_path / "out")
    with pytest.raises(ConfigError, match="no function; pass one from Python"):
        by_function({"kind": "function", "model": "m"}, tmp_path / "out")


def test_functions_are_priced_and_remote_unless_local(tmp_path: Path) -> None:
    for is_local, cost in ((False, None), (True, 0.0)):
        settings = {"llm.mine.local": is_local}
        plan = llm_labeler.plan(
            TEXTS, llm={"mine": answer}, settings=settings, out=tmp_path / "out"
        )
        (estimate,) = plan.estimates
        assert (estimate.cost, estimate.leaves_machine) == (cost, not is_local)
    with pytest.raises(ConfigError, match="mine may send text to another machine"):
        by_function(answer, tmp_path / "out", local_only=True)
