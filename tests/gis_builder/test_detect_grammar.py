"""How a text becomes sentences of codes, and which rule of the grammar reads which sentence."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection import might_matter
from gis_builder.detection.lexicon import Code, code_of
from gis_builder.detection.reader import find_markers
from gis_builder.detection.reading import read
from gis_builder.detection.rules import RULES, ClaimRule, compile_rule
from gis_builder.detection.tokens import (
    CodedSentence,
    find_references,
    hide_references,
    sentence_spans,
    tokenise,
)

from .detect_threads import ref


def sentences(text: str) -> list[CodedSentence]:
    references = find_references(text, "o/n")
    hidden = hide_references(text, references).lower()
    by_start = {reference.start: reference for reference in references}
    return [tokenise(hidden, span, by_start) for span in sentence_spans(hidden)]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("duplicate dup dupe duplcate dupilcate duplicat duplciate dublicate dulpicate", Code.DUPLICATE),
        ("duplikat doublon duplicado semi-dup", Code.DUPLICATE),
        ("duplicates dupilcates", Code.DUPLICATES),
        ("duplicated", Code.DUPLICATED),
        ("duplication duplicating deduplicate duplex replicate dump update double", Code.WORD),
    ],
)
def test_slips_of_the_pen_and_other_languages_are_the_word_and_its_neighbours_are_not(
    words: str, code: Code
) -> None:
    assert {word: code_of(word) for word in words.split()} == dict.fromkeys(words.split(), code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Closing as a dup of #1.", ["CLOSE AS ARTICLE DUPLICATE OF REFERENCE"]),
        ("Closing in favour of https://github.com/o/n/issues/1.", ["CLOSE FAVOUR REFERENCE"]),
        ("/duplicate of #1", ["DUPLICATE OF REFERENCE"]),
        ("same\nissue as #1", ["SAME_AS REFERENCE"]),
        ("See e.g. #1. Done!", ["SEE SEE REFERENCE", "FIXED"]),
        ("Dupe of ^---", ["DUPLICATE OF THAT_ONE"]),
        ("和 #1 重复", ["WORD REFERENCE DUPLICATE"]),
        ("- one #1\n- two #2", ["ARTICLE REFERENCE COMMA", "WORD REFERENCE"]),
    ],
)
def test_sentences_become_codes(text: str, expected: list[str]) -> None:
    found = [sentence.codes.lstrip(Code.COMMA) for sentence in sentences(text)]
    assert [" ".join(Code(code).name for code in codes) for codes in found] == expected


def test_a_question_is_told_from_a_statement() -> None:
    assert [sentence.is_question for sentence in sentences("Dup of #1 ? Yes.")] == [True, False]


@given(st.text(max_size=60))
def test_spans_are_in_order_and_within_the_text(text: str) -> None:
    lower = text.lower()
    spans = sentence_spans(lower)
    assert all(0 <= a < b <= len(lower) for a, b in spans)
    assert spans == sorted(spans)
    for span in spans:
        sentence = tokenise(lower, span, {})
        assert len(sentence.codes) == len(sentence.spans) == len(sentence.references)


def marker_starts(rule: ClaimRule, codes: str) -> list[int]:
    return [match.start("marker") for match in compile_rule(rule).finditer(codes)]


@pytest.mark.parametrize("rule", list(chain(*RULES.values())), ids=lambda rule: rule.example)
def test_the_example_is_read_by_the_rule_and_no_earlier_one(rule: ClaimRule) -> None:
    kind = next(kind for kind, rules in RULES.items() if rule in rules)
    earlier = RULES[kind][: RULES[kind].index(rule)]
    read = [(s.codes, start) for s in sentences(rule.example) for start in marker_starts(rule, s.codes)]
    assert any(
        (kind, start) in {(find.kind, find.start) for find in find_markers(codes)}
        and all(start not in marker_starts(other, codes) for other in earlier)
        for codes, start in read
    )


def test_rules_span_a_bounded_number_of_tokens() -> None:
    unbounded = re.compile(r"(?<!\\)[*+]|\{\d+,\}")
    for rule in chain(*RULES.values()):
        assert not unbounded.search(rule.pattern), rule.example


@pytest.mark.parametrize(
    "text",
    ["It works now.", "See #12 for the log", "Already on it.", "the same here", "I moved it to the tray"],
)
def test_talk_that_can_not_matter_is_not_read(text: str) -> None:
    assert not might_matter(text)
    assert read(text, ref(100)).claims == ()


@pytest.mark.parametrize(
    "text",
    [
        *("DUPLICATE OF #1", "dpulicate of #1", "closing in favor of that", "Same as #1", "It’s #1."),
        *("already reported in GH-1", "Doppelt zu #1", "#1 と同じ問題です"),
    ],
)
def test_what_might_claim_is_read(text: str) -> None:
    assert might_matter(text)
