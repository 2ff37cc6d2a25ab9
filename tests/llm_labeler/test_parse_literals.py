from __future__ import annotations

import pytest

from llm_labeler._parse.literals import Literal, read_code
from llm_labeler._parse.source import Source

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO = "The ancient bridge is shut.", "The old bridge was shut."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'print("{ONE}")\nprint("{TWO}")', [ONE, TWO]),
        (f"a = \"{ONE}\"\nb = 'It\\'s the old bridge.' # two", [{"a": ONE}, {"b": "It's the old bridge."}]),
        (f"insert into t values (1, 'It''s an old bridge.'), (2, '{TWO}');", ["It's an old bridge.", TWO]),
        (f'x = [\n "{ONE}", // first\n `{TWO}`,\n "no"]', [ONE, TWO]),
        (
            f'{{text: "{ONE}", more: "The old \\"bridge\\" was shut."}}',
            [{"text": ONE}, {"more": 'The old "bridge" was shut.'}],
        ),
        (f'say("{ONE}")\nsay("It is old.\\nIt is\\tshut.")', [ONE, "It is old.\nIt is\tshut."]),
        (f'print("{ONE}")', None),  # one string may be a quotation
        (f'He said "{ONE}" and "{TWO}" again', None),
        (f'["{ONE}", "{TWO}"]\nI hope that this helps you.', None),
        (f"{ONE}\n{TWO}", None),
    ],
)
def test_strings_by_hand(text: str, expected: list[Literal] | None) -> None:
    assert read_code(text, SOURCE) == expected
