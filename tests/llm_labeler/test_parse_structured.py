from __future__ import annotations

import json
from typing import Any

import pytest

from llm_labeler._parse.source import Source
from llm_labeler._parse.structured import read_data

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO = "The ancient bridge is shut.", "The old bridge was shut."
LONG = " ".join(["It is very old."] * 50)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (json.dumps([ONE, TWO]), [[ONE, TWO]]),
        (f'{{"a": "{ONE}"}}\n{{"a": "{TWO}"}}', [{"a": ONE}, {"a": TWO}]),
        (f"['{ONE}', '{TWO}',]", [[ONE, TWO]]),
        # Apostrophes that are not escaped, beside strings without a sign.
        ("['', 'It's the man's bridge.', '.']", [["", "It's the man's bridge.", "."]]),
        # Length alone makes nothing unreadable.
        (f"{{'texts': ('{LONG}', '{TWO}')}}", [{"texts": [LONG, TWO]}]),
        (f'{{texts: ["{LONG}", "{TWO}"]}}', [{"texts": [LONG, TWO]}]),
    ],
)
def test_values_by_hand(text: str, values: list[Any]) -> None:
    found = read_data(text, SOURCE)
    assert found is not None
    assert (found.before, found.values, found.after, found.is_closed) == ("", values, "", True)


def test_what_stands_around_data() -> None:
    found = read_data(f'Sure:\n["{ONE}"]\nBye.', SOURCE)
    assert found is not None
    assert (found.before, found.values, found.after) == ("Sure:\n", [[ONE]], "\nBye.")
    assert read_data("No data at all.", SOURCE) is None
