"""Normal forms: Unicode's own, but for towers of marks."""

from __future__ import annotations

import time
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.composing import normalize

FORMS: tuple[Literal["NFC", "NFKC"], ...] = ("NFC", "NFKC")


@given(st.text())
def test_a_text_without_towers_gets_unicodes_form(text: str) -> None:
    for form in FORMS:
        assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_thirty_marks_stay_on_a_letter(form: Literal["NFC", "NFKC"]) -> None:
    assert normalize(form, "x" + "\u0316" * 30 + "y") == "x" + "\u0316" * 30 + "y"
    assert normalize(form, "x" + "\u0316" * 31 + "y") == "x" + "\u0316" * 30 + "y"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unit", ["\u0316\u0301", "a\u0316\u0301", "\u0316", "…\u0301\u0316", "ﷺ\u0301"])
def test_a_tower_takes_no_time(form: Literal["NFC", "NFKC"], unit: str) -> None:
    text = "same " + unit * (200_000 // len(unit))
    start = time.process_time()
    normalize(form, text)
    assert time.process_time() - start < 5  # in order, two hundred thousand marks take minutes
