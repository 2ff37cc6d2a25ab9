from __future__ import annotations

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._parse.damage import is_left_bold, is_salad
from llm_labeler._parse.source import Source

SOURCE = Source.of("The old bridge is closed.")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("the the bridge of of old", True),
        ("The bridge ##ing is the ##ed old", True),
        ("the the bridge ��", True),
        (", , , , the", True),
        ("The bridge bridge bridge is shut.", False),  # no function words: an echo at most
        ("The the bridge is shut.", False),  # a slip
        ("What it is is a closed bridge.", False),
        ("The bridge , which is old , is shut .", False),  # signs as tokens
        ("Well . . . the bridge is shut.", False),
        ("Shut the caf� on the bridge.", False),
        ("New road ##bridge is open", False),
    ],
)
def test_words_without_order(said: str, expected: bool) -> None:
    assert is_salad(said, SOURCE) is expected


def test_what_the_source_has_is_no_damage() -> None:
    assert not is_salad("##one and ##two are tags.", Source.of("Both ##one and ##two are open."))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. **The bridge is shut.**\n2. **The bri", True),
        ("1. **The bridge is shut.**\n**2. The bri\n", True),
        ("1. **The bridge is shut.**\n2. **It is shut.", False),  # whole, its bold type forgotten
        ("1. **The bridge\n2. **The road", False),  # so the model writes
        ("1. **The bridge is shut**\n2. **It is shut**", False),
        ("**The bridge is shut.\nIt is old**", False),  # opened above
        ("1. The 2 ** 3 bri", False),
    ],
)
def test_bold_type_left_open(text: str, expected: bool) -> None:
    assert is_left_bold(text, SOURCE) is expected


def test_a_source_with_bold_type_of_its_own() -> None:
    assert not is_left_bold("1. **The bri", Source.of("The **old** bridge is closed."))


def test_reasons_of_what_is_broken() -> None:
    raw = "1. **The bridge is shut.**\n2. the the of ##ed , ,\n3. **The old bri"
    items = parse_answer(raw, text=SOURCE.text, finish="stop")
    assert [item.reason for item in items] == [None, "unparsable", "cut_off"]


@pytest.mark.parametrize("piece", ["**a ", "** ", "the ", "a a ", ", ", "##a ", " **a\n", "\n", "*a"])
def test_long_texts_are_read_once(piece: str) -> None:
    """Each takes milliseconds; a quadratic pattern would take hours."""
    text = piece * (1_000_000 // len(piece))
    is_salad(text, SOURCE)
    is_left_bold(text, SOURCE)
