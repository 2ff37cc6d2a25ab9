"""Formats of answers."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.parsing.answer import parse_answer, parse_hard_negatives
from llm_labeler.parsing.filters import reject_rewrite
from llm_labeler.records import Item
from llm_labeler.settings import FilterSettings

from .answer_formats import NAMES, Format, read

FORMATS = [one for name in NAMES for one in read(name)]
# Known errors of the parser.
MISSES = (
    "answers the question",  # the filters drop it
    "comma list on one line without quotes",
    "remark behind a dash",
    "Spanish: bold items, cut inside the fifth, bold left open",
)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_the_sentences_of_an_answer(one: Format) -> None:
    assert (one.parsed() == one.expected) == (one.name not in MISSES)


def test_the_filters_keep_what_the_answers_hold() -> None:
    expected = [(one, sentence) for one in FORMATS for sentence in one.expected]
    kept = [
        reject_rewrite(Item(sentence), one.text, one.polarity, FilterSettings()) is None
        for one, sentence in expected
    ]
    assert sum(kept) >= 0.995 * len(expected)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_sentences_come_back_as_they_are(one: Format) -> None:
    items = parse_answer(json.dumps(one.expected), text=one.text, size=one.size)
    assert [item.text for item in items if item.reason is None] == [*one.expected]


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_every_part_of_an_answer_is_an_item(one: Format) -> None:
    """Items have all text of an answer but marks, labels and names."""
    items = parse_answer(one.raw, text=one.text, size=one.size, polarity=one.polarity)
    length = sum(len(item.text) for item in items)
    bare = " ".join(re.sub(r"<[^<>]*>|\"\w+\":|[{}|=\[\]\"-]", " ", one.raw).split())
    assert 3 * length >= len(bare)


TEXT = "The old pump may leak in winter."
NOT, SUMMER = "The old pump may not leak in winter.", "The old pump may leak in summer."


def read_changes(raw: str, size: int | None = None) -> list[tuple[str, str | None, str | None]]:
    items = parse_hard_negatives(raw, text=TEXT, finish="stop", size=size)
    return [(item.text, item.change, item.reason) for item in items]


WANTED = [(NOT, "negation", None), (SUMMER, "entity", None)]


@pytest.mark.parametrize(
    "raw",
    [
        f"1. negation: {NOT}\n2. entity: {SUMMER}",
        f"1. **Negation:** {NOT}\n2. **Entity:** {SUMMER}",
        f"- [negation] - {NOT}\n- [entity] - {SUMMER}",
        f'negation: "{NOT}"\nentity: "{SUMMER}"',
        json.dumps(
            {"sentences": [{"kind": "negation", "sentence": NOT}, {"kind": "entity", "sentence": SUMMER}]}
        ),
    ],
)
def test_the_kind_precedes_the_sentence(raw: str) -> None:
    assert read_changes(raw) == WANTED


def test_sentences_without_a_kind() -> None:
    assert read_changes(f"1. {NOT}\n2. entity: {SUMMER}") == [(NOT, None, None), (SUMMER, "entity", None)]


def test_hard_negatives_beyond_the_requested_size_are_dropped() -> None:
    result = read_changes(f"1. negation: {NOT}\n2. entity: {SUMMER}", size=1)
    assert [reason for _, _, reason in result] == [None, "beyond_size"]


@given(st.text(max_size=300))
def test_any_answer_is_parsed(raw: str) -> None:
    assert read_changes(raw)
