from __future__ import annotations

import re

import pytest

from gis_builder.detection import lexicon
from gis_builder.detection.lexicon import WORDS, code_of
from gis_builder.detection.phrases import PHRASES, UNSPACED_PHRASES


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


def test_every_code_stands_once_in_the_table() -> None:
    table = re.findall(r"^\| `(.)` \|", lexicon.__doc__ or "", re.MULTILINE)
    phrases = {code for code, _ in (*PHRASES, *UNSPACED_PHRASES)}
    assert len(table) == len(set(table))
    assert set(WORDS.values()) | phrases | {"R", ",", "?", "&"} == set(table)
