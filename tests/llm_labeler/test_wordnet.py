"""Candidates by rules over WordNet: each table below is labelled in one run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import llm_labeler

from .stored_answers import raw_answers

Candidates = Callable[[str], list[str]]


def candidates(out: Path, texts: Iterable[str], **options: Any) -> dict[tuple[str, str], list[str]]:
    """The rules' sentences by text and polarity, the best first."""
    settings = {"input.max_chars": 10_000}
    given = {"size": 100, "progress": False, "settings": settings, **options}
    result = llm_labeler.generate([*texts], llm="wordnet", out=out, **given)
    return {
        asked: [line.partition(". ")[2] for line in raw.splitlines()]
        for asked, raw in raw_answers(result.work).items()
    }


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, str], list[str]]:
    """The sentences of a task for a text of a table, and a polarity."""

    @cache
    def of_task(task: str) -> dict[tuple[str, str], list[str]]:
        return candidates(tmp_path_factory.mktemp(task) / "out", TEXTS[task], task=task)

    return lambda task, text, polarity: of_task(task)[text, polarity]


@pytest.fixture(scope="module")
def same(rules: Callable[[str, str, str], list[str]]) -> Candidates:
    return lambda text: rules("paraphrase", text, "positive")


@pytest.fixture(scope="module")
def opposite(rules: Callable[[str, str, str], list[str]]) -> Candidates:
    return lambda text: rules("paraphrase", text, "negative")


PARAPHRASES = [
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
    ("The babies were born in the hospital.", "The infants were born in the hospital."),
    ("If you have a fever, you should see a doctor.", "You should see a doctor if you have a fever."),
]


@pytest.mark.parametrize(("text", "expected"), PARAPHRASES)
def test_paraphrases(same: Candidates, text: str, expected: str) -> None:
    assert expected in same(text)


INVERTED = "Why don't they sleep?"


def test_a_question_in_inverted_order_keeps_its_contraction(same: Candidates) -> None:
    assert not any("Why is not" in text or "Why do not" in text for text in same(INVERTED))


NEGATIONS = [
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
    ("Mutations cause deafness.", "Mutations do not cause deafness."),
    ("If you have a fever, you should see a doctor.", "If you have a fever, you should not see a doctor."),
]


@pytest.mark.parametrize(("text", "expected"), NEGATIONS)
def test_negations_are_added_and_removed(opposite: Candidates, text: str, expected: str) -> None:
    assert opposite(text)[0] == expected


ANTONYMS = [
    ("The river rises slowly.", "The river rises quickly."),
    ("They saw a large house.", "They saw a small house."),
    ("They saw larger houses.", "They saw smaller houses."),
    ("It is a dangerous book.", "It is a harmless book."),
    ("All children sleep.", "No children sleep."),
    ("The doctor always sleeps.", "The doctor never sleeps."),
    ("The rain got worse.", "The rain got better."),
    ("They closed the book.", "They opened the book."),
    ("He is an unhappy child.", "He is a happy child."),
]


@pytest.mark.parametrize(("text", "expected"), ANTONYMS)
def test_antonyms(opposite: Candidates, text: str, expected: str) -> None:
    assert expected in opposite(text)


UNSAFE = [
    "Is the river dangerous?",  # the antonym asks the same
    "How large is the house?",
    "Every child sleeps.",  # "every child does not" is ambiguous
    "It is only a book.",
    "old house",
]


@pytest.mark.parametrize("text", UNSAFE)
def test_unsafe_opposites_are_left_out(opposite: Candidates, text: str) -> None:
    assert not [it for it in opposite(text) if " not " in it or "harmless" in it or "small" in it]


COMPOUND = "White blood cells fight infection."
LIST = "the old doctor often sleeps " * 40 + "."


def test_compounds_and_long_lists_are_left_alone(same: Candidates, opposite: Candidates) -> None:
    assert COMPOUND not in opposite(COMPOUND)
    assert same(LIST) == opposite(LIST) == []


# Questions with the same and with another intent

TREATMENTS = "What are the treatments for blue knee fever ?"
DELAY = "What causes a delay?"
SWEATS = "What are the symptoms of night sweats?"
NO_INTENTS = [
    "What causes it?",
    "What causes asthma - children?",
    "My card causes trouble.",
    "What is asthma?",
]


def test_positives_keep_the_intent_and_negatives_the_thing(same: Candidates, opposite: Candidates) -> None:
    assert set(same(TREATMENTS)) == {
        "How is blue knee fever treated?",
        "What is the treatment for blue knee fever?",
        "What can be done about blue knee fever?",
    }
    others = opposite(TREATMENTS)
    assert {"What causes blue knee fever?", "Who gets blue knee fever?"} <= set(others)
    assert all("blue knee fever" in other for other in others)
    assert not set(same(TREATMENTS)) & set(others)


def test_general_questions_get_no_illness_negatives(opposite: Candidates) -> None:
    others = " ".join(opposite(DELAY))
    assert "prevent a delay" in others
    assert "treat" not in others
    assert "diagnose" not in others


def test_plural_things_get_no_singular_questions(same: Candidates) -> None:
    assert "What are the signs of night sweats?" in same(SWEATS)
    assert not any("does" in question for question in same(SWEATS))


@pytest.mark.parametrize("text", NO_INTENTS)
def test_other_texts_have_no_intent(same: Candidates, opposite: Candidates, text: str) -> None:
    assert not [it for it in (*same(text), *opposite(text)) if "complications" in it or "reason for" in it]


# Hard negatives

HARD = [
    ("negation", "The valve opens at night.", "The valve does not open at night."),
    (
        "negation",
        "The drops may cause itching in some people.",
        "The drops cannot cause itching in some people.",
    ),
    ("antonym", "Most of these lumps are benign.", "Most of these lumps are malignant."),
    ("antonym", "The new filter reduces the risk of leaks.", "The new filter increases the risk of leaks."),
    ("number", "Take it for 5 days.", "Take it for 15 days."),
    ("number", "About 30 percent of users agreed to it.", "About 70 percent of users agreed to it."),
    ("number", "It serves 12,000 users in one town.", "It serves 6,000 users in one town."),
    ("number", "She has type 2 diabetes since last spring.", "She has type 1 diabetes since last spring."),
    ("role", "Stress can cause insomnia.", "Insomnia can cause stress."),
    ("role", "Can a virus trigger asthma?", "Can asthma trigger a virus?"),
    ("role", "The rash is caused by a mite.", "A mite is caused by the rash."),
    ("role", "It is more common in towns than in villages.", "It is more common in villages than in towns."),
    ("tense", "The new pump has been tested.", "The new pump will be tested."),
    ("tense", "The museum was opened by a duke.", "The museum will be opened by a duke."),
    ("modality", "You should see a nurse.", "You need not see a nurse."),
    ("modality", "The seal may leak in winter.", "The seal will always leak in winter."),
]
ORGANS = ["bladder", "pancreas", "spleen", "liver", "stomach", "heart", "kidney", "lung", "brain"]
THREE_ORGANS = "The pills protect the liver, the stomach and the heart."
KIDNEYS = "Both kidneys were swollen again."
DIGITS = ["8" * 16, "8" * 400, "8" * 5000, "8" + ",888" * 200, "8" * 400 + ".5"]
HUGE = [
    f"The report speaks of {words} in it."
    for digits in DIGITS
    for words in (f"{digits} users", f"a {digits}-year plan", f"about {digits} mg", f"{digits} percent")
]
# No hard negative of this kind; "": of no kind, and no paraphrase.
NOT_HARD = [
    *(("entity", "On the other hand, it is cheap."), ("entity", "The drug is taken by mouth.")),  # idioms
    ("entity", "He has fatty liver."),  # a name
    ("entity", "He has a low pulse (heart rhythm)."),  # in brackets
    *(("number", "See page 12 of the guide."), ("number", "Stage 0 is the first of them.")),
    ("number", "Read chapter 3.1 for more."),
    *(("number", text) for text in HUGE),
    ("", "Symptoms - fever - cough - a rash that may spread."),
    *(("", "Heart problems in children"), ("", "Call 555 1234. Ask for a nurse."), ("", "Yes.")),
    ("", "word " * 60 + "is here."),
]
SEVERAL = "The doctor should see 20 children with asthma before the end of the year."
FULL = "The tank is not often full."
QUESTIONS = [
    ("Can stress cause a rash?", ["Can a rash be caused by stress?"]),
    ("How often should I water it?", ["How frequently should I water it?"]),
    ("What is the difference between a lake and a pond?", ["How does a lake differ from a pond?"]),
    # about two things
    ("What is the treatment of choice for gout?", []),
    ("What is the difference between a lake and a pond and which is deeper?", []),
]
Hard = Callable[[str], list[tuple[str, str]]]


@pytest.fixture(scope="module")
def hard(rules: Callable[[str, str, str], list[str]]) -> Hard:
    """Hard negatives as (kind, sentence)."""

    def of_text(text: str) -> list[tuple[str, str]]:
        lines = (line.partition(": ") for line in rules("triplet", text, "negative"))
        return [(kind, sentence) for kind, _, sentence in lines]

    return of_text


@pytest.mark.parametrize(("kind", "text", "expected"), HARD)
def test_hard_negatives_of_each_kind(hard: Hard, kind: str, text: str, expected: str) -> None:
    assert (kind, expected) in hard(text)


@pytest.mark.parametrize(("kind", "text"), NOT_HARD)
def test_names_references_and_headings_are_left_alone(
    rules: Callable[[str, str, str], list[str]], hard: Hard, kind: str, text: str
) -> None:
    assert not [found for found, _ in hard(text) if found == kind or not kind]
    assert kind or rules("triplet", text, "positive") == []


def test_siblings_are_not_in_the_sentence(hard: Hard) -> None:
    result = [sentence for kind, sentence in hard(THREE_ORGANS) if kind == "entity"]
    assert result
    for sentence in result:
        organs = [word for word in sentence.strip(".").replace(",", "").split() if word in ORGANS]
        assert len(organs) == len(set(organs)) == 3
    (plural, *_) = [sentence for kind, sentence in hard(KIDNEYS) if kind == "entity"]
    assert plural.split()[1].endswith("s")


def test_the_best_of_each_kind_come_first(hard: Hard) -> None:
    kinds = [kind for kind, _ in hard(SEVERAL)]
    first = len(set(kinds))
    assert first >= 3
    assert len(set(kinds[:first])) == first


def test_a_paraphrase_that_differs_by_an_apostrophe_comes_last(
    rules: Callable[[str, str, str], list[str]],
) -> None:
    result = rules("triplet", FULL, "positive")
    assert "'" in result[-1]
    assert "'" not in result[0]


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_questions_are_paraphrased(
    rules: Callable[[str, str, str], list[str]], question: str, expected: list[str]
) -> None:
    assert rules("triplet", question, "positive")[:1] == expected


# Questions about a passage

PASSAGES = [
    ("Blue knee fever is a rare disorder that begins at sea.", "What is blue knee fever?"),
    ("Blue knee fever is usually caused by a mite.", "What causes blue knee fever?"),
    ("Symptoms of blue knee fever include itching at night.", "What are the symptoms of blue knee fever?"),
    ("Blue knee fever is treated with warm salt water.", "How is blue knee fever treated?"),
    ("Blue knee fever affects about 1 in 9,000 sailors.", "How common is blue knee fever?"),
]
TWO_TOPICS = (
    "Blue knee fever is a rare disorder. It is treated with salt, and a test of the blood can tell it."
)
NO_TOPICS = [
    "It is a rare disorder.",
    "The disorder is treated with salt.",
    "A nurse is a person who helps the ill.",  # not an illness
    "Blue knee fever is not a disorder.",
    "Preventing fires is a condition of safety.",
    "What is blue knee fever?",
]


@pytest.mark.parametrize(("passage", "question"), PASSAGES)
def test_positives_ask_for_the_stated_topic(
    rules: Callable[[str, str, str], list[str]], passage: str, question: str
) -> None:
    assert rules("query", passage, "positive")[0] == question
    negatives = rules("query", passage, "negative")
    assert negatives
    assert question not in negatives


def test_negatives_avoid_mentioned_topics(rules: Callable[[str, str, str], list[str]]) -> None:
    asked = " ".join(rules("query", TWO_TOPICS, "negative"))
    assert not [word for word in ("treated", "diagnosed", "common") if word in asked]
    assert "causes" in asked


@pytest.mark.parametrize("passage", NO_TOPICS)
def test_other_sentences_give_no_questions(rules: Callable[[str, str, str], list[str]], passage: str) -> None:
    assert rules("query", passage, "positive") == rules("query", passage, "negative") == []


TEXTS = {
    "paraphrase": [
        *(text for table in (PARAPHRASES, NEGATIONS, ANTONYMS) for text, _ in table),
        *(*UNSAFE, *NO_INTENTS, INVERTED, COMPOUND, LIST, TREATMENTS, DELAY, SWEATS),
    ],
    "triplet": [
        *(text for _, text, _ in HARD),
        *(text for _, text in NOT_HARD),
        *(question for question, _ in QUESTIONS),
        *(THREE_ORGANS, KIDNEYS, SEVERAL, FULL),
    ],
    "query": [*(passage for passage, _ in PASSAGES), TWO_TOPICS, *NO_TOPICS],
}

# Any text

_PLAIN = """
    if because the a doctor often treats large pain . , ? child children rises river slowly not no
    is are does do has been can cannot all some most with without before when In 3 12 percent more
    good ( ) ' don't it's which that to open harmless causes by caused such as and or How Open
"""
WORDS = [*_PLAIN.split(), "猫", "é"]


@pytest.mark.parametrize("task", ["paraphrase", "triplet", "query"])
def test_candidates_are_distinct_and_differ_from_the_text(task: str, tmp_path: Path) -> None:
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, 14))) for _ in range(150)]
    texts += [TREATMENTS, PASSAGES[0][0], HARD[0][1]]
    few, many = (
        candidates(tmp_path / str(size), texts, size=size, task=task, samples=2) for size in (2, 100)
    )
    assert few == {asked: result[:2] for asked, result in many.items()}  # by falling confidence
    for (text, _), result in many.items():
        folded = [candidate.rpartition(": ")[2].casefold() for candidate in result]
        assert len(set(folded)) == len(result)
        assert " ".join(text.split()).casefold() not in folded
        assert all(candidate == " ".join(candidate.split()) for candidate in result)


# As an LLM


def test_rules_are_free_and_local_and_asked_once(tmp_path: Path) -> None:
    text = "The doctor often treats a child."
    (estimate,) = llm_labeler.plan([text], llm="wordnet", local_only=True).estimates
    assert (estimate.tokens, estimate.at_most, estimate.cost, estimate.leaves_machine) == (0, 0, 0.0, False)
    once, often = (
        llm_labeler.generate([text], llm="wordnet", out=tmp_path / str(n), samples=n, progress=False)
        for n in (1, 4)
    )
    assert (once.cost, once.asked.spent.requests) == (0.0, 2)
    assert once.statistics == often.statistics
    assert often.asked.spent.requests == 2
    run = json.loads((tmp_path / "1" / "run.json").read_text())
    assert run["llms"]["wordnet"]["parameters"]["llm"] is False
    assert "samples" not in run["settings"]


@pytest.mark.parametrize(
    ("texts", "is_english"),
    [
        (["How do I reset my card?", "a dog runs", "borrow checker fails on closures", "It is hot."], True),
        (["Wie kann ich mein Passwort ändern?", "Der Bildschirm wird schwarz", "It is hot."], False),
        (["如何更改我的密码？", "我的密码", "It is hot."], False),
    ],
)
def test_other_languages_are_warned_of(texts: list[str], is_english: bool, tmp_path: Path) -> None:
    result = llm_labeler.generate(texts, llm="wordnet", out=tmp_path / "out", progress=False)
    assert any("most sentences are not English" in line for line in result.messages) != is_english
