from __future__ import annotations

from collections import Counter

import pytest

from llm_labeler.dataset.label_card import label_card
from llm_labeler.records import Polarity, Proposal
from llm_labeler.runs.assemble import QualityWarnings
from llm_labeler.settings import LabelSettings

SETTINGS = LabelSettings.model_validate({"llms": ["wordnet"]})


UNLIKE = ["not_a_question", "nothing_shared", "meta"]
SPENT = ["limit_spent"] * 3


def warnings(
    reasons: list[str], kept: int = 0, *, llm: str = "ann", polarity: Polarity = "positive", answers: int = 4
) -> list[str]:
    """The warnings about one text; kept candidates equal it."""
    quality = QualityWarnings(SETTINGS)
    proposals = [
        Proposal("t", llm, polarity, "", "A sentence.", reason) for reason in (*reasons, *[None] * kept)
    ]
    quality.add("A sentence.", proposals, Counter({llm: answers}))
    return [*quality.warnings()]


@pytest.mark.parametrize(
    ("result", "begins", "says"),
    [
        (warnings([*UNLIKE, "preamble"], 1), "ann: 3 of 4 sentences have little to do", "label show"),
        (
            warnings(["unchanged", "near_copy", "copy", "too_long"], 1, polarity="negative"),
            "ann: 3 of 4 negatives repeat their texts (copy, near_copy, unchanged)",
            "--aggregation=vote",
        ),
        (warnings(["too_short"], llm="wordnet"), "wordnet: no positives", "English sentences"),
        (warnings(SPENT, 1), "ann: 3 of 4 answers reached the token limit", "llm.ann.max_tokens"),
    ],
)
def test_quality_warnings(result: list[str], begins: str, says: str) -> None:
    (warning,) = result
    assert warning.startswith(begins)
    assert says in warning


@pytest.mark.parametrize(
    "result",
    [
        warnings(UNLIKE, 3),  # a half
        warnings(UNLIKE[:2]),  # two
        warnings([]),
        warnings([], 1, llm="wordnet"),
        warnings(["too_short"]),
        warnings(SPENT, 1, answers=6),
    ],
)
def test_few_cases_give_no_warning(result: list[str]) -> None:
    assert result == []


def test_unlike_positives_are_kept_and_counted() -> None:
    quality = QualityWarnings(SETTINGS)
    proposals = [
        Proposal("t", llm, "positive", "", f"sentence {n}") for llm in ("bob", "ann") for n in range(3)
    ]
    quality.add("A plane is taking off.", proposals, Counter({"bob": 1, "ann": 1}))
    beginnings = [warning.split(" have ")[0] for warning in quality.warnings()]
    assert beginnings == ["ann: 3 of 3 sentences", "bob: 3 of 3 sentences"]
    assert "no word in common" in quality.warnings()[0]


def test_the_card_has_the_warnings() -> None:
    counts = {"splits": {}, "llms": {}, "warnings": ["ann: look"]}
    ensemble = {"aggregation": "union"}
    run = {
        "llms": {"ann": {"kind": "openai", "model": "m"}},
        "prompts": {},
        "settings": {"ensemble": ensemble, "size": 1},
    }
    assert "* **Warning.** ann: look." in label_card(counts, run, {}, graded=False)
    assert "Warning" not in label_card(counts | {"warnings": []}, run, {}, graded=False)
