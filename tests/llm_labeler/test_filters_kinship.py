from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.parsing.filters import asks, is_question, shared, turned_down
from llm_labeler.records import Polarity
from llm_labeler.settings import FilterSettings

QUESTION = "How many words should a personal essay have?"


@pytest.mark.parametrize(
    ("text", "candidate", "polarity", "reason"),
    [
        (QUESTION, "The answer is 3200 words.", "positive", "not_a_question"),
        (QUESTION, "A personal essay should have 650 words.", "positive", "not_a_question"),
        (QUESTION, "How long should a personal essay be?", "positive", None),
        (QUESTION, "Tell me the right length of a personal essay.", "positive", None),
        (QUESTION, "Which mountain is the highest of all?", "positive", "nothing_shared"),
        (QUESTION, "A personal essay needs no fixed number of words.", "negative", None),
        (QUESTION, "Paris lies by the Seine.", "negative", "nothing_shared"),
        ("The old bakery closes at six.", "Certainly, happy to help today!", "positive", "nothing_shared"),
        ("The old bakery closes at six.", "At six the aged bakery shuts.", "positive", None),
        ("He runs fast.", "His running is speedy.", "positive", None),
        ("Who are you?", "Who might that be?", "positive", None),  # nothing but common words
        ("这本书很有意思。", "此书颇为有趣。", "positive", None),
        ("这本书很有意思。", "今天天气晴朗。", "positive", "nothing_shared"),
        ("你吃饭了吗？", "我刚刚在家吃过饭。", "positive", "not_a_question"),
    ],
)
def test_what_is_beside_the_question(
    text: str, candidate: str, polarity: Polarity, reason: str | None
) -> None:
    assert turned_down(candidate, text, polarity, FilterSettings(min_shared=0.2)) == reason
    lenient = FilterSettings(same_kind=False)
    assert turned_down(candidate, text, polarity, lenient) is None


def test_what_is_shared() -> None:
    assert shared("the cats sleep", "A cat is sleeping.") == 1.0
    assert shared("cats bark", "dogs sleep") == 0.0
    assert shared("cats bark", "cats sleep") == pytest.approx(0.5)
    assert 0 < shared("unhappily", "happiness") < 1  # parts of words


def test_questions() -> None:
    assert is_question("Is it far")
    assert is_question("为什么？")
    assert not is_question("It is far.")
    assert asks("I wonder how far it is.")
    assert not asks("It is two miles away.")


@given(st.text(), st.text())
def test_sharing_is_mutual_and_a_share(one: str, other: str) -> None:
    assert 0 <= shared(one, other) <= 1
    assert shared(one, other) == shared(other, one)
