"""Questions about a passage by rules."""

from __future__ import annotations

import pytest

from llm_labeler.clients.wordnet.question_rules import queries

CASES = [
    ("Blue knee fever is a rare disorder that begins at sea.", "What is blue knee fever?"),
    ("Blue knee fever is usually caused by a mite.", "What causes blue knee fever?"),
    ("Symptoms of blue knee fever include itching at night.", "What are the symptoms of blue knee fever?"),
    ("Blue knee fever is treated with warm salt water.", "How is blue knee fever treated?"),
    ("Blue knee fever affects about 1 in 9,000 sailors.", "How common is blue knee fever?"),
]


@pytest.mark.parametrize(("passage", "question"), CASES)
def test_positives_ask_for_the_stated_topic(passage: str, question: str) -> None:
    assert queries(passage, "positive", 3)[0] == question
    negatives = queries(passage, "negative", 9)
    assert negatives
    assert question not in negatives
    assert len(queries(passage, "negative", 1)) == 1


def test_negatives_avoid_mentioned_topics() -> None:
    passage = (
        "Blue knee fever is a rare disorder. It is treated with salt, and a test of the blood can tell it."
    )
    asked = " ".join(queries(passage, "negative", 9))
    for word in ("treated", "diagnosed", "common"):
        assert word not in asked
    assert "causes" in asked


@pytest.mark.parametrize(
    "passage",
    [
        "It is a rare disorder.",
        "The disorder is treated with salt.",
        "A nurse is a person who helps the ill.",  # not an illness
        "Blue knee fever is not a disorder.",
        "Preventing fires is a condition of safety.",
        "What is blue knee fever?",
        "",
    ],
)
def test_other_sentences_give_no_questions(passage: str) -> None:
    assert queries(passage, "positive", 3) == []
    assert queries(passage, "negative", 3) == []
