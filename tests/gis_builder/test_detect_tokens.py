from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.references import find_references
from gis_builder.detection.tokens import hide_references, sentence_spans, tokenise


def codes(text: str) -> list[str]:
    references = find_references(text, "o/n")
    hidden = hide_references(text, references).lower()
    by_start = {reference.start: reference for reference in references}
    return [tokenise(hidden, span, by_start).codes for span in sentence_spans(hidden)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Closing as a dup of #1.", ["CaxDoR"]),
        ("Closing in favour of https://github.com/o/n/issues/1.", ["CFR"]),
        ("/duplicate of #1", ["DoR"]),
        ("same\nissue as #1", ["SR"]),
        ("See e.g. #1. Done!", ["eeR", "X"]),
        ("Dupe of ^---", ["DoO"]),
        ("和 #1 重复", ["wRD"]),
        ("- one #1\n- two #2", ["xR,", "wR"]),
    ],
)
def test_sentences_become_codes(text: str, expected: list[str]) -> None:
    assert [code.lstrip(",") for code in codes(text)] == expected


def test_a_question_is_told_from_a_statement() -> None:
    text = "Dup of #1 ? Yes."
    hidden = hide_references(text, find_references(text, "o/n")).lower()
    first, second = (tokenise(hidden, span, {}) for span in sentence_spans(hidden))
    assert first.is_question
    assert not second.is_question


@given(st.text(max_size=60))
def test_spans_are_in_order_and_within_the_text(text: str) -> None:
    lower = text.lower()
    spans = sentence_spans(lower)
    assert all(0 <= a < b <= len(lower) for a, b in spans)
    assert spans == sorted(spans)
    for span in spans:
        sentence = tokenise(lower, span, {})
        assert len(sentence.codes) == len(sentence.spans) == len(sentence.references)
