from __future__ import annotations

import pytest

from gis_builder.detect.lexicon import WORDS, code_of


@pytest.mark.parametrize(
    "word",
    [
        *(
            "duplicate",
            "dup",
            "dupe",
            "duplcate",
            "dupilcate",
            "duplicat",
            "duplciate",
            "dublicate",
            "dulpicate",
        ),
        *("duplikat", "doublon", "duplicado"),
    ],
)
def test_slips_of_the_pen_and_other_languages_are_the_word(word: str) -> None:
    assert code_of(word) == "D"


@pytest.mark.parametrize(
    "word", ["duplication", "duplicating", "deduplicate", "duplex", "replicate", "dump", "update", "double"]
)
def test_neighbours_of_the_word_are_not(word: str) -> None:
    assert code_of(word) not in ("D", "d")


def test_forms() -> None:
    assert [code_of(word) for word in ("duplicates", "dupilcates", "duplicated", "semi-dup")] == list("ddZD")


def test_every_code_is_one_sign_of_the_table() -> None:
    assert all(len(code) == 1 for code in WORDS.values())
