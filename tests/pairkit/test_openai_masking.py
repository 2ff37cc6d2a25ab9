"""A secret that comes back is masked, however the server spells it."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.openai_api.masking import Masking

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
def test_spellings(spelt: str) -> None:
    assert Masking([KEY]).body(f'{{"a": "Bearer {spelt}"}}'.encode()) == b'{"a": "Bearer [key]"}'


@given(KEYS, st.text(max_size=20), st.text(max_size=20))
def test_no_key_comes_through(key: str, before: str, after: str) -> None:
    masking = Masking([key, "", "short"])
    for spelt in (key, quote(key, safe=""), json.dumps(key)[1:-1]):
        masked = masking.text(before + spelt + after)
        assert key not in masked.replace("[key]", "")
        assert "[key]" in masked


def test_what_is_no_secret_is_left_alone() -> None:
    for key in ("", "EMPTY", "ollama", "none", "sk-1234"):
        assert Masking([key]).text(f"The jar is {key}.") == f"The jar is {key}."
    assert Masking([]).body(b"\xff\x00 \\ %") == b"\xff\x00 \\ %"


def test_one_secret_within_another() -> None:
    assert Masking(["abcdefgh", "abcdefghij"]).text("abcdefghij") == "[key]"
