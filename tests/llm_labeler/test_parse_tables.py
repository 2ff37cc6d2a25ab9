from __future__ import annotations

import pytest

from llm_labeler._parse.source import Source
from llm_labeler._parse.tables import read_table

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO = "The ancient bridge is shut.", "The old bridge was shut."


def test_a_cell_longer_than_the_csv_module_takes_is_no_error() -> None:
    text = f"id,sentence\n1,{'a' * 140_000}\n2,{ONE}"
    assert read_table(text, SOURCE, None) is None


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
        (f"{ONE} | {TWO}\n{TWO} | {ONE}", None),  # neither bars around nor a rule
        (f"{ONE}\n{TWO}", None),
        (f"1\t{ONE}", None),
    ],
)
def test_sentences_of_tables_by_hand(text: str, expected: list[str] | None) -> None:
    items = read_table(text, SOURCE, None)
    assert (items and [item.text for item in items if item.reason is None]) == expected
