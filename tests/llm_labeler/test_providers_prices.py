from __future__ import annotations

from typing import Any

import pytest

from llm_labeler.clients.server import _find_address as find_address
from llm_labeler.clients.server import find_prices
from llm_labeler.records import Prices
from llm_labeler.settings import BUILT_IN_LLMS, LlmSettings
from pairkit.app.errors import ConfigError

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
        # a gateway passes the bill on, wherever it stands
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
        # whatever local says, nobody but its maker has it, and a variant's price is not the model's
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
        # a server of one's own is free: who sends a bill wants a key, or is elsewhere
        *(
            ({"kind": "openai_compatible", "model": model, "base_url": f"http://{host}/v1", **more}, expected)
            for host, model, more, expected in (
                ("localhost:8000", "m", {}, (0.0, 0.0)),
                ("127.9.9.9", "m", {}, (0.0, 0.0)),
                ("[::1]:8000", "m", {}, (0.0, 0.0)),
                ("10.0.0.7:8000", "m", {}, (0.0, 0.0)),
                ("192.168.1.2", "m", {}, (0.0, 0.0)),
                ("[fd00::7]:8000", "m", {}, (0.0, 0.0)),
                ("ollama:11434", "m", {}, (0.0, 0.0)),
                ("gpu.home.arpa", "m", {}, (0.0, 0.0)),
                ("localhost:8000", "z-ai/glm-4.6", {}, (0.0, 0.0)),
                ("localhost:8000", "m", {"api_key_env": "A_KEY"}, (None, None)),
                ("localhost:8000", "m", {"api_key_env": "A_KEY", "local": True}, (0.0, 0.0)),
                ("localhost:8000", "claude-sonnet-4.5", {}, (None, None)),
                ("8.8.8.8", "m", {}, (None, None)),
                ("localhost.example.com", "m", {}, (None, None)),
                ("127.0.0.1.example.com", "m", {}, (None, None)),
                ("api.example.com", "z-ai/glm-4.6", {}, (0.60, 2.20)),
            )
        ),
        ({**OWN, "base_url": "http://localhost:8000/v1"}, (0.0, 0.0)),
        ({**OWN, "base_url": "http://[::1]:8000/v1"}, (0.0, 0.0)),
        ({**OWN, "model": "glm-4.6", "base_url": "http://localhost:8000/v1"}, (0.0, 0.0)),
        ({**OWN, "base_url": "http://localhost:1/v1", "price_out": 2}, (0.0, 2.0)),
    ],
)
def test_prices(fields: dict[str, Any], expected: tuple[float | None, float | None]) -> None:
    assert prices(**fields) == Prices(*expected)


@pytest.mark.parametrize("field", ["price_in", "price_out"])
def test_a_price_has_a_limit(field: str) -> None:
    LlmSettings(**OWN, **{field: 10_000.0})
    with pytest.raises(ValueError, match="less than or equal to 10000"):
        LlmSettings(**OWN, **{field: 10_000.1})


def test_the_built_in_members_have_known_prices() -> None:
    for name in ("chatgpt", "llama", "chatglm"):
        found = prices(**BUILT_IN_LLMS[name])
        assert None not in (found.prompt, found.completion)


def test_local_is_this_machine() -> None:
    for url in ("http://10.0.0.7:8000/v1", "https://api.openai.com/v1"):
        with pytest.raises(ConfigError, match=r"local = true, but .* is another machine"):
            prices(**OWN, base_url=url)


def test_a_server_of_ones_own_needs_an_address() -> None:
    with pytest.raises(ConfigError, match=r"no address; set base_url in \[llm.x\]"):
        find_address("x", LlmSettings(kind="openai_compatible", model="m"))
    with pytest.raises(ConfigError, match="llm x: base_url"):
        find_address("x", LlmSettings(kind="openai_compatible", model="m", base_url="host:8000/v1"))
