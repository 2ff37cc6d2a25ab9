from __future__ import annotations

from pathlib import Path

import pytest

from llm_labeler.providers.keys import Key, find_key
from llm_labeler.settings import LlmSettings
from pairkit.errors import ConfigError

OPENAI = LlmSettings(kind="openai", model="m")


def test_a_key_comes_from_the_kinds_own_variable_or_the_one_that_is_named() -> None:
    assert find_key("c", OPENAI, {"OPENAI_API_KEY": " sk-1\n"}) == Key("sk-1", "OPENAI_API_KEY")
    named = OPENAI.model_copy(update={"api_key_env": "MINE"})
    assert find_key("c", named, {"OPENAI_API_KEY": "sk-1", "MINE": "sk-2"}) == Key("sk-2", "MINE")
    glm = LlmSettings(kind="glm", model="m")
    assert find_key("c", glm, {"ZHIPUAI_API_KEY": "z"}) == Key("z", "ZHIPUAI_API_KEY")


def test_a_key_comes_from_a_file_that_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-3\n")
    assert find_key("c", OPENAI, {"OPENAI_API_KEY_FILE": str(file)}) == Key("sk-3", "OPENAI_API_KEY_FILE")
    with pytest.raises(ConfigError, match="can't be read"):
        find_key("c", OPENAI, {"OPENAI_API_KEY_FILE": str(tmp_path / "none")})


def test_a_server_of_ones_own_needs_none_and_gets_none() -> None:
    own = LlmSettings(kind="openai_compatible", model="m", base_url="http://localhost:1/v1")
    assert find_key("llama", own, {"OPENAI_API_KEY": "sk-1"}) is None


def test_no_key_says_what_to_set() -> None:
    with pytest.raises(ConfigError) as caught:
        find_key("chatgpt", OPENAI, {"OPENAI_API_KEY": " "})
    assert str(caught.value) == "llm chatgpt: no key; set OPENAI_API_KEY or api_key_env in [llm.chatgpt]"


@pytest.mark.parametrize("secret", ["sk a", "sk-é", "sk\n-1"])
def test_what_no_header_can_carry_is_no_key_and_is_not_repeated(secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_key("c", OPENAI, {"OPENAI_API_KEY": secret})
    assert secret not in str(caught.value)


def test_a_printed_key_shows_where_it_is_from() -> None:
    assert repr(Key("sk-1", "V")) == "Key(source='V')"
