"""The rules over WordNet: candidates and provider."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.clients.wordnet import WordnetProvider, language_warning
from llm_labeler.clients.wordnet.annotator import candidates
from llm_labeler.clients.wordnet.hard_negatives import hard_negatives
from llm_labeler.clients.wordnet.intents import intent_questions
from llm_labeler.clients.wordnet.question_rules import queries
from llm_labeler.records import CHANGES, Ask, AskKey, Polarity, Prices, Provider, Task, TokenUsage
from llm_labeler.settings import LlmSettings
from pairkit.base.errors import ConfigError
from tests.support.linear import assert_linear, repeated

_PLAIN = """
    if because the a doctor often treats large pain . , ? child children rises river slowly not no
    is are does do has been can cannot all some most with without before when In 3 12 percent more
    good ( ) ' don't it's which that to open harmless causes by caused such as and or How Open
"""
WORDS = [*_PLAIN.split(), "猫", "\x00", "é", "\ud800"]


def ask(text: str, task: Task = "positive", size: int = 3) -> Ask:
    return Ask(AskKey("t", "wordnet", task, "p", "q"), (), text=text, size=size)


def provider() -> WordnetProvider:
    return WordnetProvider("wordnet", LlmSettings(kind="wordnet"))


def same(text: str) -> list[str]:
    return candidates(text, "positive", 9)


def opposite(text: str) -> list[str]:
    return candidates(text, "negative", 9)


# Positives


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The doctor treats the child.", "The physician treats the child."),
        ("Doctors treat the child.", "Physicians treat the child."),
        ("The doctor often treats a child.", "The doctor frequently treats a child."),
        ("They saw a large house.", "They saw a big house."),
        ("She got worse because of the rain.", "She got worse due to the rain."),
        ("She got worse because of the rain.", "She worsened because of the rain."),
        ("He visits cities such as Paris.", "He visits cities like Paris."),
        ("The child cannot sleep.", "The child can't sleep."),
        ("I don't sleep.", "I do not sleep."),
        ("The ship is able to carry bread.", "The ship can carry bread."),
        ("In order to sleep, she reads.", "To sleep, she reads."),
        ("However, the river rises.", "Nevertheless, the river rises."),
        ("If the child eats bread, the rain stops.", "The rain stops if the child eats bread."),
        ("The light is red because the ship is late.", "Because the ship is late, the light is red."),
        ("In the village, the river rises.", "The river rises in the village."),
        ("A letter is written by the doctor.", "The doctor writes a letter."),
        ("Fever may be caused by a large river.", "A large river may cause fever."),
        ("The doctor treats the child.", "The child is treated by the doctor."),
        ("A cat is eating bread.", "Bread is being eaten by a cat."),
        ("I like cats and dogs.", "I like dogs and cats."),
        ("What are the symptoms of fever?", "Which symptoms does fever have?"),
        ("What causes fever ?", "What is the cause of fever?"),
        ("How to prevent fever", "How can fever be prevented"),
        ("How do I open a book?", "How can I open a book?"),
        ("The doctor often treats a child.", "The physician frequently treats a child."),  # two changes
    ],
)
def test_paraphrases(text: str, expected: str) -> None:
    assert expected in same(text)


def test_a_question_in_inverted_order_keeps_its_contraction() -> None:
    assert not any("Why is not" in text or "Why do not" in text for text in same("Why don't they sleep?"))


# Negatives


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The light is red.", "The light is not red."),
        ("The ship can carry bread.", "The ship cannot carry bread."),
        ("The ship has been seen.", "The ship has not been seen."),
        ("The doctor treats the child.", "The doctor does not treat the child."),
        ("Children sleep.", "Children do not sleep."),
        ("They saw the house.", "They did not see the house."),
        ("The doctor also visits the village.", "The doctor does not visit the village."),
        ("The bank has an old doctor.", "The bank does not have an old doctor."),
        ("If the child eats bread, the rain stops.", "If the child eats bread, the rain does not stop."),
        (
            "The doctor near the house, who is old, treats the child.",
            "The doctor near the house, who is old, does not treat the child.",
        ),
        ("There is a treatment.", "There is no treatment."),
        ("Open the house.", "Do not open the house."),
        ("They ate some bread.", "They did not eat any bread."),
        ("The light is not red.", "The light is red."),
        ("The child cannot sleep.", "The child can sleep."),
        ("The child doesn't often sleep.", "The child often sleeps."),
        ("They did not see the house.", "They saw the house."),
        ("There is no treatment.", "There is a treatment."),
        ("The doctor has no cats.", "The doctor has cats."),
        ("She no longer lives in a house.", "She still lives in a house."),
        ("The sentence is incorrect.", "The sentence is correct."),
        ("They did not find any bread.", "They found some bread."),
    ],
)
def test_negations_are_added_and_removed(text: str, expected: str) -> None:
    assert opposite(text)[0] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The river rises slowly.", "The river rises quickly."),
        ("They saw a large house.", "They saw a small house."),
        ("They saw larger houses.", "They saw smaller houses."),
        ("It is a dangerous book.", "It is a harmless book."),
        ("All children sleep.", "No children sleep."),
        ("The doctor always sleeps.", "The doctor never sleeps."),
        ("The rain got worse.", "The rain got better."),
        ("They closed the book.", "They opened the book."),
        ("He is an unhappy child.", "He is a happy child."),
    ],
)
def test_antonyms(text: str, expected: str) -> None:
    assert expected in opposite(text)


@pytest.mark.parametrize(
    "text",
    [
        "Is the river dangerous?",  # the antonym asks the same
        "How large is the house?",
        "Every child sleeps.",  # "every child does not" is ambiguous
        "It is only a book.",
        "old house",
        "",
        "   ",
        "?!",
    ],
)
def test_unsafe_opposites_are_left_out(text: str) -> None:
    assert not [
        result for result in opposite(text) if " not " in result or "harmless" in result or "small" in result
    ]


# Arbitrary texts


@given(
    st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)),
    st.sampled_from(("positive", "negative")),
    st.integers(1, 4),
)
def test_candidates_are_distinct_and_differ_from_the_text(text: str, polarity: Polarity, size: int) -> None:
    result = candidates(text, polarity, size)
    folded = [candidate.casefold() for candidate in result]
    assert len(result) <= size
    assert len(set(folded)) == len(result)
    assert " ".join(text.split()).casefold() not in folded
    assert all(candidate == " ".join(candidate.split()) for candidate in result)
    assert result == candidates(text, polarity, size)
    assert result == candidates(text, polarity, size + 5)[:size]  # by falling confidence
    for _, sentence in hard_negatives(text, size, CHANGES):
        assert sentence.casefold() != " ".join(text.split()).casefold()
    assert len(queries(text, polarity, size)) <= size
    assert not {*intent_questions(text, "positive")} & {*intent_questions(text, "negative")}


def test_a_long_list_is_left_alone_in_linear_time() -> None:
    assert same("the old doctor often sleeps " * 1800) == []
    assert_linear(same, repeated("the old doctor often sleeps "))


@pytest.mark.parametrize(
    "word", [repeated("a"), repeated("1", after="@a"), repeated("a/", "http://"), repeated("a-")]
)
def test_a_long_word_takes_linear_time(word: Callable[[int], str]) -> None:
    """The tagger is quadratic in the length of a word."""
    long = word(65_536)
    assert f"My physician said {long} is good." in same(f"My doctor said {long} is good.")
    assert_linear(same, lambda size: f"My doctor said {word(size)} is good.")


# As a provider


def test_rules_answer_like_an_llm() -> None:
    wordnet: Provider = provider()
    asyncio.run(wordnet.check())
    reply = asyncio.run(wordnet.reply(ask("The doctor often treats a child.", size=2)))
    assert re.fullmatch(r"1\. The .+\n2\. The .+", reply.raw)
    assert (reply.finish, reply.usage) == ("stop", TokenUsage(0, 0))
    assert asyncio.run(wordnet.reply(ask("old house", "negative"))).raw == ""
    asyncio.run(wordnet.close())


def test_rules_are_free_and_local() -> None:
    wordnet = provider()
    assert (wordnet.prices, wordnet.max_usage(ask("a")), wordnet.leaves_machine) == (
        Prices(0, 0),
        TokenUsage(0, 0),
        False,
    )
    assert '"llm": false' in wordnet.parameters_text


def test_rules_can_not_judge() -> None:
    with pytest.raises(ConfigError, match=r"llm\.wordnet: rules over WordNet can't judge.*judge\.llms"):
        asyncio.run(provider().reply(ask("a", "judge")))


def test_everyday_english() -> None:
    assert "The infants were born in the hospital." in same("The babies were born in the hospital.")
    assert "White blood cells fight infection." not in opposite("White blood cells fight infection.")
    assert opposite("Mutations cause deafness.")[0] == "Mutations do not cause deafness."
    text = "If you have a fever, you should see a doctor."
    assert same(text)[0] == "If you have a fever, you should see a physician."
    assert "You should see a doctor if you have a fever." in same(text)
    assert opposite(text)[0] == "If you have a fever, you should not see a doctor."


@pytest.mark.parametrize(
    ("texts", "is_english"),
    [
        (["How do I reset my card?", "a dog runs", "borrow checker fails on closures"], True),
        (["Wie kann ich mein Passwort ändern?", "Der Bildschirm wird schwarz", "How do I pay?"], False),
        (["如何更改我的密码？"], False),
        ([], True),
    ],
)
def test_other_languages_are_warned_of(texts: list[str], is_english: bool) -> None:
    assert (language_warning(texts) is None) == is_english
