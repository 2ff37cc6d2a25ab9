from __future__ import annotations

import pytest

from llm_labeler._parse.marks import find_marks
from llm_labeler._parse.source import Source
from llm_labeler._parse.titles import titles_of

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO = "The ancient bridge is shut.", "The old bridge has been shut."


@pytest.mark.parametrize(
    ("number", "ordinal"), [("三", 3), ("十", 10), ("十九", 19), ("二十一", 21), ("九十", 90)]
)
def test_chinese_numbers(number: str, ordinal: int) -> None:
    assert find_marks([f"{number}、旧桥已经关闭。"], SOURCE)[0].ordinal == ordinal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"1. Another verb\n{ONE}\n2. Passive\n{TWO}", [0, 2]),
        (f"1. Another verb\n   - {ONE}\n2. Passive\n   - {TWO}", [0, 2]),
        (f"Variation 1:\n{ONE}", [0]),
        (f"1. {ONE}\n2. {TWO}", None),  # as long as sentences
        ("1. Another verb\nthe ancient bridge\n2. Passive\nis shut", None),  # broken lines
        ("1. Another verb\n2. Passive", None),  # nothing below
        (f"1. Another verb\n{ONE}", None),  # one alone
        (f"1. Opposites:\n{ONE}\n2. Others:\n{TWO}", None),  # headings, not titles
    ],
)
def test_titles_by_hand(text: str, expected: list[int] | None) -> None:
    lines = text.split("\n")
    assert titles_of(lines, find_marks(lines, SOURCE), SOURCE) == expected
