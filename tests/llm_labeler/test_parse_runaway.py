from __future__ import annotations

import pytest

from llm_labeler._parse.runaway import split_draft, split_turns
from llm_labeler._parse.source import Source

TEXT = "The old bridge is closed."
SOURCE = Source.of(TEXT)
ONE = "The ancient bridge is shut."


@pytest.mark.parametrize(
    ("before", "label", "answer", "after"),
    [
        ("", "", f"1. {ONE}\n", "Input sentence: Dogs bark.\nOutput:\n1. A dog barks."),
        (f"Input sentence: {TEXT}\n", "Output:\n", f"{ONE}\n", "Input sentence: Dogs bark.\nOutput: Dogs."),
        (f"**User:** {TEXT}\n", "**Assistant:** ", f"{ONE}\n", "**User:** Dogs bark.\n**Assistant:** Dogs."),
        (f"Input: {TEXT} ", "Output: ", ONE, ""),
        ("", "", f"{ONE}\n", "### Instruction:\nDogs bark."),
        ("", "", f"{ONE}\nOriginal: {TEXT}\n{ONE}", ""),  # the same question
        ("", "", f"{ONE}\nThe layout: it is shut.", ""),
    ],
)  # fmt: skip
def test_turns_by_hand(before: str, label: str, answer: str, after: str) -> None:
    assert split_turns(before + label + answer + after, SOURCE) == (before, answer, after)


def test_a_draft_ends_where_the_final_answer_is_announced() -> None:
    before, answer = split_draft(f"It was shut.\n\nFinal answer:\n{ONE}", SOURCE)
    assert ONE in answer
    assert "It was shut." in before
    assert split_draft(ONE, SOURCE) == ("", ONE)
