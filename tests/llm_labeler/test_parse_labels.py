from __future__ import annotations

import pytest

from llm_labeler._parse.labels import name_of, names_sentence, recurring_names
from llm_labeler._parse.names import role_of


@pytest.mark.parametrize(
    "line", ["Analysis: x", "**Analysis:** x", "**Analysis**: x", "- _Analysis_: x", "# analysis : x"]
)
def test_a_name_is_the_same_however_it_is_set(line: str) -> None:
    assert name_of(line) == "analysis"


@pytest.mark.parametrize(
    "line", ["The bridge is shut.", "This is what I have heard of it: x", "at 10:30", ""]
)
def test_lines_without_a_name(line: str) -> None:
    assert name_of(line) == ""


@pytest.mark.parametrize("name", ["sentence note", "output_id", "rewritten sentence score", "note", "score"])
def test_the_last_word_of_a_name_tells_what_stands_beside_sentences(name: str) -> None:
    assert role_of(name) == "side"


def test_names_that_recur_name_no_sentences() -> None:
    lines = ["**Analysis**: x", "Analysis: y", "Sentence: x", "Sentence: y", "Tone: z"]
    assert recurring_names(lines) == {"analysis"}


@pytest.mark.parametrize(
    ("piece", "expected"),
    [("Sentence 1", True), ("**Option B:**", True), ("Sentence", False), ("Bridge 1", False)],
)
def test_headings_that_name_a_sentence(piece: str, expected: bool) -> None:
    assert names_sentence(piece) is expected
