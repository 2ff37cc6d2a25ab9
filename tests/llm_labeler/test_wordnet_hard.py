"""Hard negatives by rules."""

from __future__ import annotations

import pytest

from llm_labeler.clients.wordnet.hard_negatives import hard_negatives, same_meaning
from llm_labeler.records import CHANGES, ChangeKind

CASES: list[tuple[ChangeKind, str, str]] = [
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


@pytest.mark.parametrize(("kind", "text", "expected"), CASES)
def test_hard_negatives_of_each_kind(kind: ChangeKind, text: str, expected: str) -> None:
    assert (kind, expected) in hard_negatives(text, 9, (kind,))


def test_siblings_are_not_in_the_sentence() -> None:
    text = "The pills protect the liver, the stomach and the heart."
    result = [sentence for _, sentence in hard_negatives(text, 9, ("entity",))]
    assert result
    for sentence in result:
        organs = [word for word in sentence.strip(".").replace(",", "").split() if word in ORGANS]
        assert len(organs) == len(set(organs)) == 3
    (plural,) = hard_negatives("Both kidneys were swollen again.", 1, ("entity",))
    assert plural[1].split()[1].endswith("s")


@pytest.mark.parametrize(
    "text",
    [
        "On the other hand, it is cheap.",  # an idiom
        "The drug is taken by mouth.",
        "He has fatty liver.",  # a name
        "He has a low pulse (heart rhythm).",  # in brackets
    ],
)
def test_words_in_longer_names_are_kept(text: str) -> None:
    assert not hard_negatives(text, 9, ("entity",))


@pytest.mark.parametrize(
    "text",
    [
        "Symptoms - fever - cough - a rash that may spread.",
        "Heart problems in children",
        "Call 555 1234. Ask for a nurse.",
        "Yes.",
        "",
        "word " * 60 + "is here.",
    ],
)
def test_lists_and_headings_are_left_out(text: str) -> None:
    assert hard_negatives(text, 9, CHANGES) == []
    assert same_meaning(text, 9) == []


def test_references_are_not_changed() -> None:
    for text in ("See page 12 of the guide.", "Stage 0 is the first of them.", "Read chapter 3.1 for more."):
        assert not hard_negatives(text, 9, ("number",)), text


@pytest.mark.parametrize("digits", ["8" * 16, "8" * 400, "8" * 5000, "8" + ",888" * 200, "8" * 400 + ".5"])
def test_huge_numbers_are_not_changed(digits: str) -> None:
    for words in (f"{digits} users", f"a {digits}-year plan", f"about {digits} mg", f"{digits} percent"):
        assert not hard_negatives(f"The report speaks of {words} in it.", 9, ("number",))


def test_the_best_of_each_kind_come_first() -> None:
    text = "The doctor should see 20 children with asthma before the end of the year."
    kinds = [kind for kind, _ in hard_negatives(text, 20, CHANGES)]
    first = len(set(kinds))
    assert first >= 3
    assert len(set(kinds[:first])) == first
    assert hard_negatives(text, 2, CHANGES) == hard_negatives(text, 20, CHANGES)[:2]
    assert {kind for kind, _ in hard_negatives(text, 20, ("number",))} == {"number"}


def test_a_paraphrase_that_differs_by_an_apostrophe_comes_last() -> None:
    result = same_meaning("The tank is not often full.", 3)
    assert "'" in result[-1]
    assert "'" not in result[0]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Can stress cause a rash?", "Can a rash be caused by stress?"),
        ("How often should I water it?", "How frequently should I water it?"),
        ("What is the difference between a lake and a pond?", "How does a lake differ from a pond?"),
    ],
)
def test_questions_are_paraphrased(question: str, expected: str) -> None:
    assert same_meaning(question, 1) == [expected]


def test_questions_about_two_things_are_left_out() -> None:
    for question in (
        "What is the treatment of choice for gout?",
        "What is the difference between a lake and a pond and which is deeper?",
    ):
        assert same_meaning(question, 1) == []
