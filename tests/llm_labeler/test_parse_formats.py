"""Answers in the many shapes that LLMs give them."""

from __future__ import annotations

import json
import re

import pytest

from llm_labeler._parse import parse_answer

from .answer_formats import Format, precision_and_recall, read

FORMATS = [
    one
    for name in (
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "runaway",
    )
    for one in read(name)
]


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_the_sentences_of_an_answer(one: Format) -> None:
    assert one.found() == one.expected


def test_over_all_formats() -> None:
    precision, recall = precision_and_recall(FORMATS)
    assert precision >= 0.95
    assert recall >= 0.90


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_sentences_come_back_as_they_are(one: Format) -> None:
    items = parse_answer(json.dumps(one.expected), text=one.text, size=one.size)
    assert [item.text for item in items if item.reason is None] == [*one.expected]


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_nothing_of_an_answer_is_lost_in_silence(one: Format) -> None:
    """What the answer says stands in an item, but for marks, labels and names."""
    items = parse_answer(one.raw, text=one.text, size=one.size, polarity=one.polarity)
    said = sum(len(item.text) for item in items)
    bare = " ".join(re.sub(r"<[^<>]*>|[{}|=\[\]\"-]", " ", one.raw).split())
    assert 3 * said >= len(bare)
