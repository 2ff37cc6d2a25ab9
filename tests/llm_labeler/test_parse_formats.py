"""Formats of answers."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.parsing.answer import parse_answer, parse_hard_negatives
from llm_labeler.parsing.filters import reject_rewrite
from llm_labeler.records import Item
from llm_labeler.settings import FilterSettings
from tests.support.shorthand import parametrize, text_lines

from .answer_formats import NAMES, read

# Known errors of the parser.
MISSES = (
    "answers the question",  # the filters drop it
    "comma list on one line without quotes",
    "remark behind a dash",
    "Spanish: bold items, cut inside the fifth, bold left open",
)


@parametrize("name", NAMES)
def test_the_sentences_of_answers(name):
    formats = [*read(name)]
    wrong = [answer.name for answer in formats if answer.parsed() != answer.expected]
    assert wrong == [answer.name for answer in formats if answer.name in MISSES]
    for answer in formats:
        items = parse_answer(
            json.dumps(answer.expected), text=answer.text, size=answer.size
        )
        assert [item.text for item in items if item.reason is None] == [
            *answer.expected
        ], answer.name


@parametrize("name", NAMES)
def test_items_have_all_text_of_an_answer_but_marks_labels_and_names(name):
    for answer in read(name):
        items = parse_answer(
            answer.raw, text=answer.text, size=answer.size, polarity=answer.polarity
        )
        bare = " ".join(
            re.sub(r"<[^<>]*>|\"\w+\":|[{}|=\[\]\"-]", " ", answer.raw).split()
        )
        assert 3 * sum(len(item.text) for item in items) >= len(bare), answer.name


def test_the_filters_keep_what_the_answers_hold():
    kept = [
        reject_rewrite(Item(sentence), answer.text, answer.polarity, FilterSettings())
        is None
        for name in NAMES
        for answer in read(name)
        for sentence in answer.expected
    ]
    assert sum(kept) >= 0.995 * len(kept)


TEXT = "The old pump may leak in winter."
NOT, SUMMER = "The old pump may not leak in winter.", "The old pump may leak in summer."


def read_changes(raw, size=None):
    items = parse_hard_negatives(raw, text=TEXT, finish="stop", size=size)
    return [(item.text, item.change, item.reason) for item in items]


WANTED = [(NOT, "negation", None), (SUMMER, "entity", None)]


@parametrize(
    "raw",
    [
        *text_lines(rf"""
        1. `negation`: {NOT}\n2. Entity (season): {SUMMER}
        ### Negation\n{NOT}\n\n### Entity\n{SUMMER}
        1. **Negation**\n   - {NOT}\n2. **Entity**\n   - {SUMMER}
        - kind: negation\n  sentence: {NOT}\n- kind: entity\n  sentence: {SUMMER}
        <negation>{NOT}</negation>\n<entity>{SUMMER}</entity>
        | Kind | New |\n|---|---|\n| Negation | {NOT} |\n| Entity | {SUMMER} |
        1. **Negation:** {NOT}\n2. **Entity:** {SUMMER}
        - [negation] - {NOT}\n- [entity] - {SUMMER}
        negation: "{NOT}"\nentity: "{SUMMER}"
    """),
        json.dumps([f"negation: {NOT}", f"entity: {SUMMER}"]),
        json.dumps({"negation": NOT, "entity": SUMMER}),
        json.dumps(
            [{"type": "negation", "text": NOT}, {"type": "entity", "text": SUMMER}]
        ),
        json.dumps(
            {
                "sentences": [
                    {"kind": "negation", "sentence": NOT},
                    {"kind": "entity", "sentence": SUMMER},
                ]
            }
        ),
    ],
)
def test_the_kind_precedes_the_sentence(raw):
    assert read_changes(raw) == WANTED


def test_sentences_without_a_kind_or_beyond_the_requested_size():
    assert read_changes(f"1. {NOT}\n2. entity: {SUMMER}") == [
        (NOT, None, None),
        (SUMMER, "entity", None),
    ]
    result = read_changes(f"1. negation: {NOT}\n2. entity: {SUMMER}", size=1)
    assert [reason for _, _, reason in result] == [None, "beyond_size"]


def test_a_kind_is_a_label_only_of_hard_negatives_of_a_text_that_begins_otherwise():
    five, six = (f"Number: {count} pumps leak." for count in ("five", "six"))
    for raw, kind in ((f"1. {six}", None), (f"1. number: {six}", "number")):
        (item,) = parse_hard_negatives(raw, text=five, finish="stop", size=1)
        assert (item.text, item.change) == (six, kind)
    for text in (TEXT, five):
        items = parse_answer(f"1. {six}\n2. {NOT}", text=text, polarity="positive")
        assert [item.text for item in items] == [six, NOT]


@given(st.text(max_size=300))
def test_any_answer_is_parsed(raw):
    assert read_changes(raw)
