from __future__ import annotations

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._parse.keyed import Record, read_keyed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sentence: |\n  The ancient\n  bridge is shut.", [{"sentence": "The ancient bridge is shut."}]),
        ("id: 1\ntext: >-\n  It is\n  shut.\n# end", [{"id": "1", "text": "It is shut."}]),
        ("id: 1\ntext: It is\n  shut.", [{"id": "1", "text": "It is shut."}]),
        (
            '- text: It is shut.\n  score: 0.9\n- text: "It is old."\n  score: 1',
            [{"text": "It is shut.", "score": "0.9"}, {"text": "It is old.", "score": "1"}],
        ),
        (
            "[[item]]\nid = 1\ntext = 'It is shut.'\n\n[[item]]\nid = 2\ntext = \"It is old.\"",
            [{"id": "1", "text": "It is shut."}, {"id": "2", "text": "It is old."}],
        ),
        (
            "id: 1\nsentences:\n  - It is shut.\n  - It is old.",
            [{"id": "1", "sentences": ["It is shut.", "It is old."]}],
        ),
        ("note: The bridge is shut.\nsentence: It is shut.", None),  # labels that prose may have
        ("id: 1\nHere is more.", None),
        ("count: 2\n- It is shut.\n- It is old.", None),
        ("", None),
    ],
)
def test_records_by_hand(text: str, expected: list[Record] | None) -> None:
    assert read_keyed(text) == expected


@pytest.mark.parametrize("side", ["register: formal", "tone: dry", "score: 0.8"])
def test_records_of_a_text_and_something_beside_it_are_no_new_turns(side: str) -> None:
    said = [
        "The landlord agreed to repair it.",
        "Warmth returned at once.",
        "He fixed everything without a fuss.",
    ]
    raw = "antonyms:\n" + "\n".join(f'  - text: "{one}"\n    {side}' for one in said)
    items = parse_answer(raw, text="The landlord refused to fix the heating.", size=3, polarity="negative")
    assert [item.text for item in items if item.reason is None] == said
