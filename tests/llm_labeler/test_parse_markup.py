from __future__ import annotations

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._parse.markup import fenced
from llm_labeler._records import Item

TEXT = "The old bridge is closed."
ONE, TWO = "The ancient bridge is shut.", "The old bridge was shut."
INLINE = "b i u em strong code span mark small sup sub font a del ins big tt kbd q cite abbr"


@pytest.mark.parametrize("tag", INLINE.split())
def test_tags_within_a_sentence_go(tag: str) -> None:
    assert parse_answer(f"The <{tag}>ancient</{tag}> bridge is shut.", text=TEXT) == [Item(ONE)]
    assert parse_answer(f'The <{tag.upper()} id="x">ancient</{tag}> bridge is shut.', text=TEXT) == [
        Item(ONE)
    ]


@pytest.mark.parametrize("page", ["<!DOCTYPE html>\n<html>", "<html lang='en'>", "\n<HTML>"])
def test_the_head_of_a_page_says_nothing(page: str) -> None:
    raw = f"{page}<head><title>Of bridges</title></head><body><ul><li>{ONE}</li></ul></body></html>"
    assert parse_answer(raw, text=TEXT) == [Item(ONE)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sure:\n```\nA\n```\nBye.", ("Sure:", "\nA", "\nBye.")),
        ("Sure:\n```\nA\n```\nand\n```\nB\n```\nBye.", ("Sure:\n\nand", "\nA\n\n\nB", "\nBye.")),
        ("```text\nA", ("", "\nA", "")),
        ("```A```\nBye.", ("", "A", "Bye.")),
        ("~~~\nA\n~~~", ("", "\nA", "")),
        ("A\n```\n```\nB", ("", "A\n\n\nB", "")),  # nothing is fenced
        ("A `b`", ("", "A `b`", "")),
    ],
)
def test_fences_by_hand(text: str, expected: tuple[str, str, str]) -> None:
    assert fenced(text) == expected


def test_what_is_said_around_fences_is_no_sentence() -> None:
    raw = f"Two of them:\n```\n{ONE}\n```\nand also\n```\n{TWO}\n```\nI hope this helps!"
    items = parse_answer(raw, text=TEXT)
    assert [item.text for item in items if item.reason is None] == [ONE, TWO]
    assert [item.reason for item in items][-1] == "closing_note"
