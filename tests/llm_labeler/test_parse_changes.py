"""Hard negatives as LLMs write them: with the kind before each, in lists and in JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.parsing.answer import parse_hard_negatives

TEXT = "The old pump may leak in winter."
NOT, SUMMER = "The old pump may not leak in winter.", "The old pump may leak in summer."


def read(raw: str, size: int | None = None) -> list[tuple[str, str | None, str | None]]:
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
def test_the_kind_stands_before_the_sentence(raw: str) -> None:
    assert read(raw) == WANTED


def test_what_names_no_kind_has_none() -> None:
    assert read(f"1. {NOT}\n2. entity: {SUMMER}") == [(NOT, None, None), (SUMMER, "entity", None)]


def test_a_kind_beyond_the_number_wanted_is_turned_down() -> None:
    found = read(f"1. negation: {NOT}\n2. entity: {SUMMER}", size=1)
    assert [reason for _, _, reason in found] == [None, "beyond_size"]


@given(st.text(max_size=300))
def test_any_answer_is_read(raw: str) -> None:
    assert read(raw)
