"""Questions with the same and with another intent by rules."""

from __future__ import annotations

import pytest

from llm_labeler.clients.wordnet.annotator import candidates
from llm_labeler.clients.wordnet.intents import intent_questions


def test_positives_keep_the_intent_and_negatives_the_thing() -> None:
    asked = "What are the treatments for blue knee fever ?"
    same = candidates(asked, "positive", 9)
    assert set(same) == {
        "How is blue knee fever treated?",
        "What is the treatment for blue knee fever?",
        "What can be done about blue knee fever?",
    }
    others = candidates(asked, "negative", 99)
    assert {"What causes blue knee fever?", "Who gets blue knee fever?"} <= set(others)
    assert all("blue knee fever" in other for other in others)
    assert not set(same) & set(others)
    assert candidates(asked, "negative", 2) == others[:2]


def test_general_questions_get_no_illness_negatives() -> None:
    others = " ".join(intent_questions("What causes a delay?", "negative"))
    assert "prevent a delay" in others
    assert "treat" not in others
    assert "diagnose" not in others


def test_plural_things_get_no_singular_questions() -> None:
    same = intent_questions("What are the symptoms of night sweats?", "positive")
    assert "What are the signs of night sweats?" in same
    assert not any("does" in one for one in same)


@pytest.mark.parametrize(
    "text",
    ["What causes it?", "What causes asthma - children?", "My card causes trouble.", "What is asthma?"],
)
def test_other_texts_have_no_intent(text: str) -> None:
    assert intent_questions(text, "positive") == intent_questions(text, "negative") == []
