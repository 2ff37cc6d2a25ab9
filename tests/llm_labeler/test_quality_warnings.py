from __future__ import annotations

from collections import Counter
from dataclasses import replace

from llm_labeler.dataset.card import label_card
from llm_labeler.records import Proposal
from llm_labeler.runs.assemble import QualityWarnings
from llm_labeler.settings import LabelSettings

SETTINGS = LabelSettings.model_validate({"llms": ["wordnet"]})


def proposals(llm: str, *reasons: str | None) -> list[Proposal]:
    return [Proposal("t", llm, "positive", "", f"sentence {n}", reason) for n, reason in enumerate(reasons)]


def warnings(llm: str, *reasons: str | None, answers: int = 4) -> tuple[str, ...]:
    doubts = QualityWarnings(SETTINGS)
    doubts.add("A sentence.", proposals(llm, *reasons), Counter({llm: answers}))
    return doubts.warnings()


def test_an_llm_that_answers_instead_of_rewriting() -> None:
    (warning,) = warnings("ann", "not_a_question", "nothing_shared", "meta", None, "preamble")
    assert warning.startswith("ann: 3 of 4 sentences")
    assert "label show" in warning


def test_positives_that_share_no_word_with_their_text_are_kept_and_counted() -> None:
    doubts = QualityWarnings(SETTINGS)
    doubts.add("A plane is taking off.", proposals("ann", None, None, None), Counter({"ann": 1}))
    (warning,) = doubts.warnings()
    assert "3 of 3 sentences have little to do with their texts" in warning
    assert "no word in common" in warning


def test_negatives_that_repeat_their_texts() -> None:
    doubts = QualityWarnings(SETTINGS)
    reasons = ("unchanged", "near_copy", "copy", None, "too_long")
    said = [replace(one, polarity="negative") for one in proposals("ann", *reasons)]
    doubts.add("A sentence.", said, Counter({"ann": 1}))
    (warning,) = doubts.warnings()
    assert warning.startswith("ann: 3 of 4 negatives say what their texts say (copy, near_copy, unchanged)")


def test_rules_that_make_no_positives() -> None:
    (warning,) = warnings("wordnet", "too_short")
    assert warning.startswith("wordnet: made no positives; its rules are for English sentences only")
    assert warnings("wordnet", None) == ()
    assert warnings("ann", "too_short") == ()


def test_half_and_a_few_are_no_cause() -> None:
    assert warnings("ann", "not_a_question", "nothing_shared", "meta", None, None, None) == ()
    assert warnings("ann", "not_a_question", "meta") == ()
    assert warnings("ann") == ()


def test_a_limit_spent_on_reasoning() -> None:
    (warning,) = warnings("ann", "limit_spent", "limit_spent", "limit_spent", None)
    assert "3 of 4 answers" in warning
    assert "llm.ann.max_tokens" in warning
    assert warnings("ann", "limit_spent", "limit_spent", "limit_spent", None, answers=6) == ()


def test_each_llm_for_itself_in_order_of_names() -> None:
    doubts = QualityWarnings(SETTINGS)
    for llm in ("bob", "ann"):
        doubts.add("A sentence.", proposals(llm, "meta", "meta", "meta"), Counter({llm: 1}))
    doubts.add("A sentence.", proposals("cat", None, None, None), Counter({"cat": 1}))
    assert [warning.split(":")[0] for warning in doubts.warnings()] == ["ann", "bob"]


def test_the_card_warns() -> None:
    counts = {"splits": {}, "llms": {}, "warnings": ["ann: look"]}
    ensemble = {"strategy": "union"}
    run = {
        "llms": {"ann": {"kind": "openai", "model": "m"}},
        "prompts": {},
        "settings": {"ensemble": ensemble, "size": 1},
    }
    assert "* **Warning.** ann: look." in label_card(counts, run, {}, graded=False)
    assert "Warning" not in label_card(counts | {"warnings": []}, run, {}, graded=False)
