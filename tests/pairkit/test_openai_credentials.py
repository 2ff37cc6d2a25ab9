from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit import ConfigError
from pairkit.base.openai_api.credentials import (
    Key,
    Masking,
    find_key,
    headers_for,
    key_variable,
    variable_name,
)


def test_default_keys_are_sent_only_to_their_provider() -> None:
    assert key_variable("api.openai.com", None) == "OPENAI_API_KEY"
    assert key_variable("open.bigmodel.cn", None) == key_variable("api.z.ai", None) == "ZHIPUAI_API_KEY"
    for host in ("evil.example", "localhost", "127.0.0.1", "api.openai.com.evil.example", "xapi.openai.com"):
        assert key_variable(host, None) is None
        assert key_variable(host, "MINE") == "MINE"
    for named in ("MINE", "MY_2ND_KEY", "_X", "team_api_key"):
        assert key_variable("api.openai.com", named) == named


@pytest.mark.parametrize(
    "key",
    [
        *("sk-proj-Ab1cD2eF", "gsk_Ab1cD2eF3gH4iJ5k", "hf_aBcDeFgHiJkLmNoP", "AIzaSyA1b2C3d4E5f6", "a.b"),
        *("", " ", "AKIAIOSFODNN7EXAMPLE", "0123456789abcdef0123456789abcdef", "A_" * 40),
    ],
)
def test_a_key_is_not_the_name_of_a_variable(key: str) -> None:
    with pytest.raises(ValueError, match="such as OPENAI_API_KEY, not a key") as caught:
        variable_name(key)
    assert not key.strip() or key not in str(caught.value)
    if key:
        with pytest.raises(ConfigError, match="api_key_env: expected the name"):
            key_variable("api.openai.com", key)


def test_openai_headers_are_sent_only_to_openai() -> None:
    environ = {"OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "project", "OPENAI_ADMIN_KEY": "sk-admin"}
    assert headers_for("api.openai.com", environ) == {
        "OpenAI-Organization": "org",
        "OpenAI-Project": "project",
    }
    assert headers_for("evil.example", environ) == headers_for("127.0.0.1", environ) == {}
    with pytest.raises(ConfigError, match="can't be sent"):
        headers_for("api.openai.com", {"OPENAI_ORG_ID": "Zoë"})


def test_key_from_variable_or_file(tmp_path: Path) -> None:
    assert find_key("llm c", "MINE", {"MINE": " sk-1\n"}, "") == Key("sk-1", "MINE")
    file = tmp_path / "key"
    file.write_text("sk-3\n")
    assert find_key("llm c", "MINE", {"MINE_FILE": str(file)}, "") == Key("sk-3", "MINE_FILE")
    assert "sk-3" not in repr(Key("sk-3", "MINE"))
    with pytest.raises(ConfigError, match="can't be read"):
        find_key("llm c", "MINE", {"MINE_FILE": str(tmp_path / "none")}, "")
    for environ in ({}, {"MINE": " "}, {"MINE_FILE": ""}):
        with pytest.raises(ConfigError, match="llm c: no key; set MINE"):
            find_key("llm c", "MINE", environ, "set MINE")
    for secret in ("sk-é", "two words", "a\nb", "nul\0"):
        with pytest.raises(ConfigError, match="MINE isn't a key") as caught:
            find_key("llm c", "MINE", {"MINE": secret}, "")
        assert secret not in str(caught.value)


KEY = "sk-9/Ab+c=%d.e_f~"
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


@pytest.mark.parametrize(
    "spelt",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        KEY.replace("/", "\\/"),
        "".join(f"\\u{ord(c):04x}" for c in KEY),
        "".join(f"\\u{ord(c):04X}" if not c.isalnum() else c for c in KEY),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower().replace("ab", "Ab"),
    ],
)
def test_masking_of_escaped_keys(spelt: str) -> None:
    assert Masking([KEY]).body(f'{{"a": "Bearer {spelt}"}}'.encode()) == b'{"a": "Bearer [key]"}'


@given(KEYS, st.text(max_size=20), st.text(max_size=20))
def test_masking_of_any_key(key: str, before: str, after: str) -> None:
    masking = Masking([key, "", "short"])
    for spelt in (key, quote(key, safe=""), json.dumps(key)[1:-1]):
        masked = masking.text(before + spelt + after)
        assert key not in masked.replace("[key]", "")
        assert "[key]" in masked


def test_short_keys_are_not_masked() -> None:
    for key in ("", "EMPTY", "ollama", "none", "sk-1234"):
        assert Masking([key]).text(f"The jar is {key}.") == f"The jar is {key}."
    assert Masking([]).body(b"\xff\x00 \\ %") == b"\xff\x00 \\ %"
    assert Masking(["abcdefgh", "abcdefghij"]).text("abcdefghij") == "[key]"


@pytest.mark.parametrize(
    "escape", [str, lambda text: text.replace("/", "\\/"), lambda text: quote(text, safe="")]
)
def test_masking_of_the_beginning_of_a_long_key(escape: Any) -> None:
    key = "sk-proj/Ab1cD2eF3gH4iJ5k"
    for shown in (key[:10], key[:13], key[:10] + "***5k", key):
        assert Masking([key]).text(f'"Wrong key {escape(shown)}."').startswith('"Wrong key [key]')
        assert key[8:10] not in Masking([key]).text(f"({escape(shown)})")
    assert Masking([key]).text(f"It begins with {key[:9]}") == f"It begins with {key[:9]}"
    assert Masking([key[:19]]).text(key[:18]) == key[:18]  # a short one may be words
