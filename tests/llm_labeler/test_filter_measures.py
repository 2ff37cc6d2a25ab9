"""What the filters measure: words in common, order and script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.parsing.filters import reject, shared
from llm_labeler.parsing.scripts import differing, fold, is_other_script, order_similarity, shares, words
from llm_labeler.records import Polarity
from llm_labeler.settings import FilterSettings

TEXT = "The doctor gave the child two tablets yesterday."


def test_order_and_number_of_words() -> None:
    # Without articles, five of six words are in the same order: 2 · 5 / 12.
    moved = words("Yesterday the doctor gave the child two tablets.")
    assert order_similarity(words(TEXT), moved) == pytest.approx(5 / 6)
    assert differing(words("a b b c"), words("a b d")) == 3  # b, c, and d
    assert differing(words("It isn't so."), words("It is so")) == 1


def test_scripts() -> None:
    assert shares("Ab cd 中文 e1") == {"CJK": 0.4, "LATIN": 0.6}
    assert shares("123") == {}
    assert is_other_script("这个 bug 在 PyTorch 里", "There is a bug in PyTorch")
    assert not is_other_script("12 %", "十二")


def test_share_of_common_words() -> None:
    assert shared("the cats sleep", "A cat is sleeping.") == 1.0
    assert shared("cats bark", "dogs sleep") == 0.0
    assert shared("cats bark", "cats sleep") == pytest.approx(0.5)
    assert 0 < shared("unhappily", "happiness") < 1  # parts of words


@given(st.text(), st.text())
def test_the_share_is_symmetric_and_in_range(one: str, other: str) -> None:
    assert 0 <= shared(one, other) <= 1
    assert shared(one, other) == shared(other, one)


@settings(max_examples=60)
@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["positive", "negative"]))
def test_filters_accept_any_strings(candidate: str, text: str, polarity: Polarity) -> None:
    if reject(candidate, text, polarity, FilterSettings()) is None:
        assert fold(candidate) != fold(text)
        assert any(character.isalpha() for character in candidate)


@settings(max_examples=100)
@given(
    st.text(alphabet="aAbB not.,!? é中", min_size=1, max_size=30), st.sampled_from(["positive", "negative"])
)
def test_copies_are_rejected(text: str, polarity: Polarity) -> None:
    for candidate in (text, text.upper(), f"  {text}!", text.replace(" ", "  ")):
        assert reject(candidate, text, polarity, FilterSettings(max_length_ratio=9)) is not None
