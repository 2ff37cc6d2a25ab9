"""Paraphrases and opposites by rules over WordNet: one run labels the texts of all tables."""

import json
import random

import llm_labeler
from tests.support.shorthand import (
    module_fixture,
    parametrize,
    table,
    text_table,
    values,
)

from .stored_answers import by_rules


@module_fixture
def answers(tmp_path_factory):
    return by_rules(tmp_path_factory.mktemp("rules") / "out", TEXTS)


@module_fixture
def same(answers):
    return lambda text: answers[text, "positive"]


@module_fixture
def opposite(answers):
    return lambda text: answers[text, "negative"]


PARAPHRASES = values("""
    The doctor treats the child. | The physician treats the child.
    Doctors treat the child. | Physicians treat the child.
    The doctor often treats a child. | The doctor frequently treats a child.
    They saw a large house. | They saw a big house.
    She got worse because of the rain. | She got worse due to the rain.
    She got worse because of the rain. | She worsened because of the rain.
    He visits cities such as Paris. | He visits cities like Paris.
    The child cannot sleep. | The child can't sleep.
    I don't sleep. | I do not sleep.
    The ship is able to carry bread. | The ship can carry bread.
    In order to sleep, she reads. | To sleep, she reads.
    However, the river rises. | Nevertheless, the river rises.
    If the child eats bread, the rain stops. | The rain stops if the child eats bread.
    The light is red because the ship is late. | Because the ship is late, the light is red.
    In the village, the river rises. | The river rises in the village.
    A letter is written by the doctor. | The doctor writes a letter.
    Fever may be caused by a large river. | A large river may cause fever.
    The doctor treats the child. | The child is treated by the doctor.
    A cat is eating bread. | Bread is being eaten by a cat.
    I like cats and dogs. | I like dogs and cats.
    What are the symptoms of fever? | Which symptoms does fever have?
    What causes fever ? | What is the cause of fever?
    How to prevent fever | How can fever be prevented
    How do I open a book? | How can I open a book?
    # two changes
    The doctor often treats a child. | The physician frequently treats a child.
    The babies were born in the hospital. | The infants were born in the hospital.
    If you have a fever, you should see a doctor. | You should see a doctor if you have a fever.
""")


@parametrize("text, expected", PARAPHRASES)
def test_paraphrases(same, text, expected):
    assert expected in same(text)


INVERTED = "Why don't they sleep?"


NEGATIONS = values("""
    The light is red. | The light is not red.
    The ship can carry bread. | The ship cannot carry bread.
    The ship has been seen. | The ship has not been seen.
    The doctor treats the child. | The doctor does not treat the child.
    Children sleep. | Children do not sleep.
    They saw the house. | They did not see the house.
    The doctor also visits the village. | The doctor does not visit the village.
    The bank has an old doctor. | The bank does not have an old doctor.
    If the child eats bread, the rain stops. | If the child eats bread, the rain does not stop.
    The man near a house, who is old, treats the child. | The man near a house, who is old, does not treat the child.
    There is a treatment. | There is no treatment.
    Open the house. | Do not open the house.
    They ate some bread. | They did not eat any bread.
    The light is not red. | The light is red.
    The child cannot sleep. | The child can sleep.
    The child doesn't often sleep. | The child often sleeps.
    They did not see the house. | They saw the house.
    There is no treatment. | There is a treatment.
    The doctor has no cats. | The doctor has cats.
    She no longer lives in a house. | She still lives in a house.
    The sentence is incorrect. | The sentence is correct.
    They did not find any bread. | They found some bread.
    Mutations cause deafness. | Mutations do not cause deafness.
    If you have a fever, you should see a doctor. | If you have a fever, you should not see a doctor.
""")


@parametrize("text, expected", NEGATIONS)
def test_negations_are_added_and_removed(opposite, text, expected):
    assert opposite(text)[0] == expected


ANTONYMS = text_table("""
    The river rises slowly. | The river rises quickly.
    They saw a large house. | They saw a small house.
    They saw larger houses. | They saw smaller houses.
    It is a dangerous book. | It is a harmless book.
    All children sleep. | No children sleep.
    The doctor always sleeps. | The doctor never sleeps.
    The rain got worse. | The rain got better.
    They closed the book. | They opened the book.
    He is an unhappy child. | He is a happy child.
    Plan A decreases costs. | Plan A increases costs.
    Plan-A decreases costs. | Plan-A increases costs.
    "A small child sleeps." | "A large child sleeps."
""")


@parametrize("text, expected", ANTONYMS)
def test_antonyms(opposite, text, expected):
    assert expected in opposite(text)


UNSAFE = [
    "Is the river dangerous?",  # the antonym asks the same
    "How large is the house?",
    "Every child sleeps.",  # "every child does not" is ambiguous
    "It is only a book.",
    "old house",
]


@parametrize("text", UNSAFE)
def test_unsafe_opposites_are_left_out(opposite, text):
    assert not [
        it
        for it in opposite(text)
        if " not " in it or "harmless" in it or "small" in it
    ]


COMPOUND = "White blood cells fight infection."
LIST = "the old doctor often sleeps " * 40 + "."


def test_compounds_lists_and_inverted_questions(same, opposite):
    assert not any(
        "Why is not" in text or "Why do not" in text for text in same(INVERTED)
    )
    assert COMPOUND not in opposite(COMPOUND)
    assert same(LIST) == opposite(LIST) == []


# Questions with the same and with another intent

TREATMENTS = "What are the treatments for blue knee fever ?"
DELAY = "What causes a delay?"
SWEATS = "What are the symptoms of night sweats?"
NO_INTENTS = [
    "What causes it?",
    "What causes you?",
    "What causes asthma - children?",
    "What causes asthma and how is it treated?",
    "My card causes trouble.",
    "What is gout?",
]


def test_positives_keep_the_intent_and_negatives_the_thing(same, opposite):
    assert set(same(TREATMENTS)) == {
        "How is blue knee fever treated?",
        "What is the treatment for blue knee fever?",
        "What can be done about blue knee fever?",
    }
    others = opposite(TREATMENTS)
    assert {"What causes blue knee fever?", "Who gets blue knee fever?"} <= set(others)
    assert all("blue knee fever" in other for other in others)
    assert not set(same(TREATMENTS)) & set(others)


def test_general_questions_and_plural_things(same, opposite):
    others = " ".join(opposite(DELAY))
    assert "prevent a delay" in others
    assert "treat" not in others
    assert "diagnose" not in others
    assert "What are the signs of night sweats?" in same(SWEATS)
    assert not any("does" in question for question in same(SWEATS))


@parametrize("text", NO_INTENTS)
def test_other_texts_have_no_intent(same, opposite, text):
    assert not [
        it
        for it in (*same(text), *opposite(text))
        if "complications" in it or "reason for" in it
    ]


TEXTS = [
    *(text for table in (PARAPHRASES, NEGATIONS, ANTONYMS) for text, _ in table),
    *UNSAFE,
    *NO_INTENTS,
    INVERTED,
    COMPOUND,
    LIST,
    TREATMENTS,
    DELAY,
    SWEATS,
]

# Any text

_PLAIN = """
    if because the a doctor often treats large pain . , ? child children rises river slowly not no
    is are does do has been can cannot all some most with without before when In 3 12 percent more
    good ( ) ' don't it's which that to open harmless causes by caused such as and or How Open
"""
WORDS = [*_PLAIN.split(), "猫", "é"]


def test_candidates_are_distinct_and_differ_from_the_text(tmp_path):
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, 14))) for _ in range(150)]
    texts.append(TREATMENTS)
    few, many = (by_rules(tmp_path / str(size), texts, size=size) for size in (2, 100))
    # By falling confidence.
    assert few == {asked: result[:2] for asked, result in many.items()}
    for (text, _), result in many.items():
        folded = [candidate.casefold() for candidate in result]
        assert len(set(folded)) == len(result)
        assert " ".join(text.split()).casefold() not in folded
        assert all(candidate == " ".join(candidate.split()) for candidate in result)


# As an LLM


def test_rules_are_free_and_local_and_asked_once(tmp_path):
    text = "The doctor often treats a child."
    (estimate,) = llm_labeler.plan([text], llm="wordnet", local_only=True).estimates
    assert estimate.tokens == estimate.at_most == estimate.cost == 0
    assert not estimate.leaves_machine
    once, often = (
        llm_labeler.generate([text], llm="wordnet", out=tmp_path / str(n), samples=n)
        for n in (1, 4)
    )
    assert (once.cost, once.asked.spent.requests) == (0.0, 2)
    assert once.statistics == often.statistics
    assert often.asked.spent.requests == 2
    assert llm_labeler.show(text, work=often.work).prompts == {}
    run = json.loads((tmp_path / "1" / "run.json").read_text())
    assert run["llms"]["wordnet"]["parameters"]["llm"] is False
    assert "samples" not in run["settings"]


@table("""
    texts, is_english
    ['How do I reset my card?', 'a dog runs', 'borrow checker fails on closures', 'It is hot.'] | True
    ['Wie kann ich mein Passwort ändern?', 'Der Bildschirm wird schwarz', 'It is hot.'] | False
    ['如何更改我的密码？', '我的密码', 'It is hot.'] | False
""")
def test_other_languages_are_warned_of(texts, is_english, out):
    result = llm_labeler.generate(texts, llm="wordnet", out=out)
    assert (
        any("most sentences are not English" in line for line in result.messages)
        != is_english
    )
