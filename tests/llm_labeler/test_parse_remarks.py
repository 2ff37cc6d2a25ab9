from __future__ import annotations

import pytest

from llm_labeler._parse.remarks import speaks_of_words, without_remarks
from llm_labeler._parse.source import Source

TEXT = "The old bridge is closed."
ONE = "The ancient bridge is shut."


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        (TEXT, f"{ONE} (another verb)", ([], ONE, ["(another verb)"])),
        (TEXT, f"(formal) {ONE}", (["(formal)"], ONE, [])),
        (TEXT, f"{ONE} 0.93", ([], ONE, ["0.93"])),
        (TEXT, f"{ONE} # synonym of closed", ([], ONE, ["synonym of closed"])),
        (TEXT, f"{ONE} 😊", ([], ONE, [])),
        (TEXT, ONE, ([], ONE, [])),
        # Brackets that hold a sentence, or nothing that is said.
        (TEXT, f"(It is shut.) {ONE}", ([], f"(It is shut.) {ONE}", [])),
        (TEXT, f"(1 2) {ONE}", ([], f"(1 2) {ONE}", [])),
        ("行。", "好(改写)", ([], "好", ["(改写)"])),  # one sign may be a sentence
        (TEXT, "The ancient (and long) bridge is shut.", ([], "The ancient (and long) bridge is shut.", [])),
    ],
)
def test_remarks_by_hand(text: str, said: str, expected: tuple[list[str], str, list[str]]) -> None:
    assert without_remarks(said, Source.of(text)) == expected


def test_of_words_speaks_what_is_not_about_the_same() -> None:
    source = Source.of(TEXT)
    assert speaks_of_words('The word "closed" was replaced.', source)
    assert not speaks_of_words("The old bridge is a synonym of it.", source)  # mostly its words
    assert not speaks_of_words(ONE, source)
    assert not speaks_of_words("Another word was used.", Source.of("The word is old."))
