from __future__ import annotations

import pytest

from llm_labeler._parse.listed import read_list
from llm_labeler._parse.source import Source
from llm_labeler._records import Item

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO = "The ancient bridge is shut.", "The old bridge was shut."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A line that was broken, whatever its second half looks like.
        ("1. Shut for such\n   as: cars.\n2. It was shut.", ["Shut for such as: cars.", "It was shut."]),
        ("1. It is shut\n  as follows:\n2. It was shut.", ["It is shut as follows:", "It was shut."]),
        # One at the margin that introduces the next.
        (f"1. {ONE}\nAnother one:\n2. {TWO}", [ONE, ("Another one:", "preamble"), TWO]),
        (f"1. {ONE}\n\n   It is old.\n2. {TWO}", [f"{ONE} It is old.", TWO]),
        (f"1. {ONE}\n\nOf age.\n2. {TWO}", [ONE, ("Of age.", "outside_list"), TWO]),
        # Titles, and what stands above the first.
        (
            f"Original: {SOURCE.text}\n1. Another verb\n{ONE}\n2. Passive\n{TWO}",
            [
                (f"Original: {SOURCE.text}", "echo"),
                ("1. Another verb", "preamble"),
                ONE,
                ("2. Passive", "preamble"),
                TWO,
            ],
        ),
        ("0) Shut and 1) open are the states of it.", None),  # its own numbers
        (f"{ONE}\n{TWO}", None),
    ],
)  # fmt: skip
def test_lists_by_hand(text: str, expected: list[str | tuple[str, str]] | None) -> None:
    wanted = expected and [Item(one) if isinstance(one, str) else Item(*one) for one in expected]
    assert read_list(text, SOURCE) == wanted
