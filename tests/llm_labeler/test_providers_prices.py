from __future__ import annotations

from typing import Any

import pytest

from llm_labeler.provider import Prices
from llm_labeler.providers.address import read_address
from llm_labeler.providers.prices import find_prices
from llm_labeler.settings import BUILT_IN_LLMS, LlmSettings
from pairkit.errors import ConfigError


def prices(**fields: Any) -> Prices:
    entry = LlmSettings(**fields)
    return find_prices(entry, read_address("x", entry))


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
        # another server may ask another price for the same name
        ({"kind": "openai", "model": "gpt-4o-mini", "base_url": "https://x.example/v1"}, (None, None)),
        ({"kind": "glm", "model": "glm-4-flash"}, (0.0, 0.0)),
        ({"kind": "glm", "model": "glm-4.6"}, (None, None)),  # in yuan
        ({"kind": "glm", "model": "glm-4.6", "base_url": "https://api.z.ai/api/paas/v4"}, (0.60, 2.20)),
        ({"kind": "openai_compatible", "model": "m", "base_url": "http://localhost:8000/v1"}, (0.0, 0.0)),
        ({"kind": "openai_compatible", "model": "m", "base_url": "http://[::1]:8000/v1"}, (0.0, 0.0)),
        ({"kind": "openai_compatible", "model": "m", "base_url": "http://10.0.0.7:8000/v1"}, (None, None)),
        (
            {"kind": "openai_compatible", "model": "m", "base_url": "http://localhost:1/v1", "price_out": 2},
            (0.0, 2.0),
        ),
    ],
)
def test_prices(fields: dict[str, Any], expected: tuple[float | None, float | None]) -> None:
    assert prices(**fields) == Prices(*expected)


def test_the_built_in_members_have_known_prices() -> None:
    for name in ("chatgpt", "llama", "chatglm"):
        assert None not in (prices(**BUILT_IN_LLMS[name]).prompt, prices(**BUILT_IN_LLMS[name]).completion)


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://localhost:8000/v1", True),
        ("http://LOCALHOST/v1", True),
        ("http://127.0.0.1:1/v1/", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]/v1", True),
        ("http://0.0.0.0:8000/v1", False),
        ("http://localhost.example.com/v1", False),
        ("http://127.0.0.1.example.com/v1", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_loopback(url: str, is_loopback: bool) -> None:
    entry = LlmSettings(kind="openai_compatible", model="m", base_url=url)
    assert read_address("x", entry).is_loopback == is_loopback


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@host/v1",
        "http://hunter2@host/v1",
        "https://host/v1?api-key=hunter2",
        "https://host/v1#hunter2",
        "ftp://host/v1",
        "host:8000/v1",
        "http:///v1",
        "http://host:port/v1",
        "http://[::1/v1",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_base_url(url: str) -> None:
    entry = LlmSettings(kind="openai_compatible", model="m", base_url=url)
    with pytest.raises(ConfigError, match="llm x: base_url") as caught:
        read_address("x", entry)
    assert "hunter2" not in str(caught.value)


def test_a_server_of_ones_own_needs_an_address() -> None:
    with pytest.raises(ConfigError, match=r"no address; set base_url in \[llm.x\]"):
        read_address("x", LlmSettings(kind="openai_compatible", model="m"))
