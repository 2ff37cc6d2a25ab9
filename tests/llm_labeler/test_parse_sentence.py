from __future__ import annotations

import pytest

from llm_labeler._parse.sentence import strip_clothes
from llm_labeler._parse.source import Source

SOURCE = Source.of("The old bridge is closed.")
ONE = "The ancient bridge is shut."


@pytest.mark.parametrize(
    "said",
    [
        f"**{ONE}**",
        f"__{ONE}__",
        f"_{ONE}_",
        f"*{ONE}*",
        "The **ancient** bridge is shut.",
        "The *ancient* bridge is shut.",
        "__The__ ancient bridge is shut.",
        "The ~~old~~ ancient bridge is shut.",
        f'**Sentence:** "{ONE}"',
        f'print("{ONE}")',
        f'a = "{ONE}"',
    ],
)
def test_what_clothes_a_sentence_goes(said: str) -> None:
    assert strip_clothes(said, SOURCE) == ONE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Call __init__ of the class.", "__init__ of the class is to be called."),
        ("It is 2 ** 3.", "2 ** 3 is what it is."),
        ("It is 2 * 3.", "2 * 3 is what it is, or 3 * 2."),
        ("~~No~~ yes.", "~~No~~ of course."),
        ("The old bridge is closed.", "The snake_case_name is shut."),
    ],
)
def test_signs_of_the_source_stay(text: str, said: str) -> None:
    assert strip_clothes(said, Source.of(text)) == said
