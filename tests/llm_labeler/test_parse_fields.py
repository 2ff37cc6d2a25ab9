from __future__ import annotations

import json
from typing import Any

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._records import Item, Polarity

TEXT = "The old bridge is closed."
ONE, TWO = "The ancient bridge is shut.", "The old bridge is open."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"text": TEXT, "paraphrase": ONE}, [(TEXT, "echo"), (ONE, None)]),
        (
            {"original": "Another road is closed.", "text": ONE},
            [("Another road is closed.", "echo"), (ONE, None)],
        ),
        ({"sentence": TEXT}, [(TEXT, None)]),  # alone it is the answer, and judged as one later
        ({"text": ONE, "reason": "the verb differs"}, [(ONE, None), ("the verb differs", "side_field")]),
        ({"text": ONE, "score": 0.9}, [(ONE, None), ("0.9", "not_text")]),
        ({"notes": ["one", "two"], "text": ONE}, [("one", "side_field"), ("two", "side_field"), (ONE, None)]),
    ],
)
def test_fields_by_hand(value: Any, expected: list[tuple[str, str | None]]) -> None:
    assert parse_answer(json.dumps(value), text=TEXT) == [Item(*one) for one in expected]


@pytest.mark.parametrize(("polarity", "wanted", "other"), [("positive", ONE, TWO), ("negative", TWO, ONE)])
@pytest.mark.parametrize(
    "value",
    [
        [{"type": "synonym", "text": ONE}, {"type": "antonym", "text": TWO}],
        [{"text": TWO, "kind": "opposite"}, {"text": ONE, "kind": "paraphrase"}],
        {"synonyms": [ONE], "antonyms": [TWO]},
        {"same_meaning": ONE, "opposite_meaning": TWO},
    ],
)
def test_of_both_polarities_the_one_asked_for_counts(
    value: Any, polarity: Polarity, wanted: str, other: str
) -> None:
    items = parse_answer(json.dumps(value), text=TEXT, polarity=polarity)
    assert [item.text for item in items if item.reason is None] == [wanted]
    assert Item(other, "other_polarity") in items
