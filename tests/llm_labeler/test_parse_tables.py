from __future__ import annotations

import pytest

from llm_labeler._parse.source import Source
from llm_labeler._parse.tables import read_table

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO = "The ancient bridge is shut.", "The old bridge was shut."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"| Sentence |\n|---|\n| {ONE} |", [ONE]),
        (f"| # | Sentence |\n|---|---|\n| 1 | {ONE} |\n| 2 | {TWO} |", [ONE, TWO]),
        (f"# | Sentence\n--|--\n1 | {ONE}\n2 | {TWO}", [ONE, TWO]),
        (f"sentence,score\n{ONE},0.9", [ONE]),
        (f"sentence,score\n{ONE},0.9\n{TWO},0.8", [ONE, TWO]),
        (f"id;sentence\n1;{ONE}\n2;{TWO}", [ONE, TWO]),
        (f'1,"{ONE}"\n2,"{TWO}"', [ONE, TWO]),
        (f"1\t{ONE}\n2\t{TWO}", [ONE, TWO]),
        ("|x| is smaller than |y|.", None),  # bars of mathematics
        (f"| {ONE} | {TWO} |", None),  # one row is no table
        (f"{ONE}\n{TWO}", None),
        (f"1\t{ONE}", None),
    ],
)
def test_sentences_of_tables_by_hand(text: str, expected: list[str] | None) -> None:
    items = read_table(text, SOURCE, None)
    assert (items and [item.text for item in items if item.reason is None]) == expected
