from __future__ import annotations

from dataclasses import replace
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.parsing.filters import (
    REASONS,
    is_unchanged,
    reject,
    reject_hard_negative,
    reject_query,
    reject_rewrite,
    shared,
)
from llm_labeler.parsing.scripts import (
    differing,
    fold,
    is_other_script,
    order_similarity,
    shares,
    words,
)
from llm_labeler.records import Item, Polarity
from llm_labeler.settings import FilterSettings

TEXT = "The doctor gave the child two tablets yesterday."
DEFAULT = FilterSettings()


def reason(
    candidate: str, text: str = TEXT, polarity: Polarity = "positive", **options: object
) -> str | None:
    return reject(candidate, text, polarity, FilterSettings.model_validate(options))


@pytest.mark.parametrize("polarity", ["positive", "negative"])
@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ("A physician handed the child 2 pills the day before.", None),
        (TEXT, "copy"),
        ("the doctor gave the child two tablets, yesterday!!", "copy"),
        ("Ｔｈｅ doctor　gave the child two tablets yesterday", "copy"),
        ("The doctor gave the child \x1b[31mtwo pills.", "control_characters"),
        ("The doctor gave the\nchild two pills.", "control_characters"),
        ("The doctor gave the \ufffd two pills.", "control_characters"),
        ("The doctor \u202egave the child two pills.", "control_characters"),
        ("The doctor gave \ud800 the child pills.", "control_characters"),
        ("The doctor gave \ue000 the child pills.", "control_characters"),
        ("2 + 2 = 4 (100 %), 5 - 3 = 2! 1 + 1 = 2", "no_letters"),
        ("https://example.org/doctor/child/tablets", "markup_only"),
        ("[doctor](https://example.org/tablets)", "markup_only"),
        ("<img src='doctor.png' alt='a child with tablets'/>", "markup_only"),
        ("See https://example.org for the doctor's tablets.", None),
        ("The opposite of the sentence is that no tablet was given.", "meta"),
        ("This is the opposite of a doctor giving tablets.", "meta"),
        ("I would say, as an AI, that tablets were given.", "meta"),
        ("A synonymous sentence about tablets and a doctor.", "meta"),
        ("昨天医生给了孩子两片药,医生给了孩子两片药。", "wrong_script"),
        ("Врач вчера дал ребёнку две таблетки.", "wrong_script"),
        ("أعطى الطبيب الطفل قرصين أمس.", "wrong_script"),
        ("Two pills.", "too_short"),
        ("The doctor gave pills. " * 10, "too_long"),
    ],
)
def test_filters_of_both_polarities(candidate: str, polarity: Polarity, expected: str | None) -> None:
    assert reason(candidate, polarity=polarity) == expected
    assert expected is None or expected in REASONS


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ("The doctor did not give the child two tablets yesterday.", None),
        ("The doctor gave the child two tablets today.", None),
        ("The doctor gave the child three tablets yesterday.", None),
        ("No doctor gave the child two tablets yesterday.", None),
        ("A doctor gave a child two tablets yesterday.", "near_copy"),
        ("The doctors gave the child two tablet yesterday.", "near_copy"),
        ("The child gave the doctor two tablets yesterday.", None),
    ],
)
def test_a_negative_needs_another_word_or_order(candidate: str, expected: str | None) -> None:
    assert reason(candidate, polarity="negative") == expected
    assert reason(candidate) is None  # each is a valid positive


def test_one_word_can_make_a_negative() -> None:
    text = "It is known that " + "the dose and " * 40 + "the result are safe."
    assert reason(text.replace("safe", "unsafe"), text, "negative") is None
    assert reason(text.replace("are", "are not"), text, "negative") is None
    assert reason(text.replace("are safe", "aren't safe"), text, "negative") is None
    assert reason(text.replace("dose", "doses"), text, "negative") == "near_copy"


@pytest.mark.parametrize(
    ("text", "candidate", "expected"),
    [
        ("Hypertension is common.", "Hypotension is common.", None),
        ("It is legal.", "It is illegal.", None),
        ("He was careful.", "He was careless.", None),
        ("It rose in 2018.", "It rose in 2019.", None),
        ("You can enter.", "You cannot enter.", None),
        ("x > 5 holds.", "x < 5 holds.", None),
        ("这种药是安全的。", "这种药是不安全的。", None),
        ("The colour is organised.", "The color is organized.", "near_copy"),
        ("He doesn't know.", "He does not know.", "near_copy"),
        ("She can't swim.", "She cannot swim.", "near_copy"),
        ("He likes the dog.", "He liked a dog.", "near_copy"),
        ("He failed to reach the top.", "He reached the top.", None),
        ("Das Wasser ist nicht warm.", "Das Wasser ist warm.", None),
        ("Cats like milk.", "Cats like milk less than water.", None),
        ("She hardly eats meat.", "She eats meat.", None),
        ("这种药是不安全的。", "这种药是安全的。", None),
    ],
)
def test_small_differences_make_a_negative_unlike_spelling_and_inflection(
    text: str, candidate: str, expected: str | None
) -> None:
    assert reason(candidate, text, "negative") == expected
    assert reject_rewrite(Item(candidate), text, "negative", DEFAULT) == expected


@pytest.mark.parametrize(
    ("candidate", "is_same"),
    [
        ("The doctor gave the child tablets.", True),
        ("A doctor has given the child two tablets.", False),  # "given" is a new word here
        ("The doctor gave two tablets yesterday.", True),
        ("The doctor gave the child two tablets yesterday in the evening.", True),
        ("The doctor gave the child two tablets yesterday by mistake, but not today.", False),
        ("The doctor gave the child no tablets.", False),
        ("The doctor gave the child three tablets.", False),
        ("The child gave the doctor two tablets.", False),
        ("The doctor could give the child two tablets.", False),
        ("The doctor refused the child two tablets.", False),
        ("The doctor gave the child two sweets yesterday.", False),
        ("Yesterday the doctor failed.", False),
    ],
)
def test_a_negative_that_only_drops_or_adds_words_is_rejected(candidate: str, is_same: bool) -> None:
    assert is_unchanged(candidate, TEXT) == is_same
    reason = reject_rewrite(Item(candidate), TEXT, "negative", DEFAULT)
    assert (reason == "unchanged") == is_same
    assert reject_rewrite(Item(candidate), TEXT, "positive", DEFAULT) is None


def test_hard_negatives_of_some_kinds_may_keep_all_words() -> None:
    item = Item("The doctor gave the child tablets.", change="tense")
    assert reject_hard_negative(item, TEXT, DEFAULT, ("tense",)) is None
    assert reject_hard_negative(replace(item, change="negation"), TEXT, DEFAULT, ("negation",)) == "unchanged"
    assert reject_query("Two tablets, did the doctor give?", TEXT, "negative", DEFAULT) != "unchanged"


def test_the_order_of_words_is_measured() -> None:
    moved = "Yesterday the doctor gave the child two tablets."
    # Without articles, five of six words are in the same order: 2 · 5 / 12.
    assert order_similarity(words(TEXT), words(moved)) == pytest.approx(5 / 6)
    assert reason(moved, polarity="negative") is None
    assert reason(moved, polarity="negative", antonym_similarity=0.8) == "near_copy"


def test_differing_words_are_counted_with_repeats() -> None:
    assert differing(words("a b b c"), words("a b d")) == 3  # b, c, and d
    assert differing(words("It isn't so."), words("It is so")) == 1
    candidate = "The nurse gave the child two tablets yesterday."
    assert reason(candidate, polarity="negative", min_differing_words=2) is None
    assert reason(candidate, polarity="negative", min_differing_words=3) == "few_differing_words"
    assert reason(candidate, min_differing_words=3) is None


def test_scripts() -> None:
    assert shares("Ab cd 中文 e1") == {"CJK": 0.4, "LATIN": 0.6}
    assert shares("123") == {}
    mixed = "使用 PyTorch DataLoader 时 num_workers 会崩溃"
    assert not is_other_script("PyTorch 的 DataLoader 用 num_workers 就会崩", mixed)
    assert not is_other_script("数据加载器在多进程时会崩溃", mixed)
    assert is_other_script("The loader crashes with several workers", mixed)
    assert is_other_script("这个 bug 在 PyTorch 里", "There is a bug in PyTorch")
    assert is_other_script("東京の病院はとても大きいです", "北京的医院非常大")
    assert not is_other_script("β-blockers lower pressure", "Beta blockers lower pressure")
    assert not is_other_script("12 %", "十二")
    # A script is part of a text from a fifth on: one English word among three characters, not among five.
    assert not is_other_script("The GPS of 我", "我用GPS定")
    assert is_other_script("The GPS of 我", "我用GPS定位它")


def test_filters_can_be_disabled() -> None:
    assert reason("Врач вчера дал ребёнку две таблетки.", same_script=False) is None
    assert reason("Two pills.", min_length_ratio=0) is None


def test_a_candidate_may_have_words_that_its_text_has() -> None:
    text = "The opposite of the word hot is cold."
    assert reason("The opposite of the word cold is hot, too.", text) is None


@settings(max_examples=60)
@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["positive", "negative"]))
def test_filters_accept_any_strings(candidate: str, text: str, polarity: Polarity) -> None:
    result = reject(candidate, text, polarity, DEFAULT)
    assert result is None or result in REASONS
    if result is None:
        assert fold(candidate) != fold(text)
        assert any(character.isalpha() for character in candidate)
    assert fold(candidate) == fold(normalize("NFKC", candidate).upper().lower()) or not candidate.isascii()


@settings(max_examples=200)
@given(
    st.text(alphabet="aAbB not.,!? é中", min_size=1, max_size=30), st.sampled_from(["positive", "negative"])
)
def test_copies_are_rejected(text: str, polarity: Polarity) -> None:
    for candidate in (text, text.upper(), f"  {text}!", text.replace(" ", "  ")):
        assert reject(candidate, text, polarity, FilterSettings(max_length_ratio=9)) is not None


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
        ("Who are you?", "Who might that be?", "positive", None),  # only stop words
        ("这本书很有意思。", "此书颇为有趣。", "positive", None),
        ("这本书很有意思。", "今天天气晴朗。", "positive", "nothing_shared"),
        ("你吃饭了吗？", "我刚刚在家吃过饭。", "positive", "not_a_question"),
    ],
)
def test_off_topic_candidates(text: str, candidate: str, polarity: Polarity, reason: str | None) -> None:
    assert reject(candidate, text, polarity, FilterSettings(min_shared=0.2)) == reason
    lenient = FilterSettings(same_kind=False)
    assert reject(candidate, text, polarity, lenient) is None


def test_share_of_common_words() -> None:
    assert shared("the cats sleep", "A cat is sleeping.") == 1.0
    assert shared("cats bark", "dogs sleep") == 0.0
    assert shared("cats bark", "cats sleep") == pytest.approx(0.5)
    assert 0 < shared("unhappily", "happiness") < 1  # parts of words


@given(st.text(), st.text())
def test_the_share_is_symmetric_and_in_range(one: str, other: str) -> None:
    assert 0 <= shared(one, other) <= 1
    assert shared(one, other) == shared(other, one)
